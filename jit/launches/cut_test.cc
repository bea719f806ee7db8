#include "jit/launches/cut.h"

#include "absl/algorithm/container.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// The state that a launch updates, which a later launch of its chain reads; "": none.
std::string SeenHalfNew(const PlacedLaunches& u, const PlacedLaunches::Chain& chain) {
  const auto nodes = [&](int launch) -> const std::vector<NodeId>& { return u[launch].nodes; };
  for (int maker = chain.first; maker < chain.last; ++maker) {
    for (NodeId store : nodes(maker)) {
      if (!Is<Update>(u.graph(), store)) continue;
      const NodeId state = u.graph().nodes[store].inputs[0];
      for (int reader = maker + 1; reader <= chain.last; ++reader) {
        const bool reads = absl::c_any_of(nodes(reader), [&](NodeId id) {
          return absl::c_linear_search(ValueOperands(u.graph(), id), state);
        });
        if (reads) return ValueText(u.graph(), state);
      }
    }
  }
  return "";
}

TEST(PlacedLaunches, StoreAStateAfterTheChunksThatReadIt) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
input g : f32[64] local
state s : f32[64] replicated
h = all_reduce(max, g * 0.5)
update(s, exp(h))
k = all_reduce(sum, g)
output y = relu(h) - s * k
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*program, {.by_node = true});
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  int chains = 0;
  for (const Schedule& s : *schedules) {
    const absl::StatusOr<PlacedLaunches> launches = CutIntoLaunches(s, LibraryDoes::kAll);
    ASSERT_TRUE(launches.ok()) << launches.status();
    for (const PlacedLaunches::Chain& chain : launches->chains) {
      ++chains;
      EXPECT_EQ(SeenHalfNew(*launches, chain), "") << Print(s) << TraceText(s.trace());
    }
  }
  EXPECT_GT(chains, 0);
}

}  // namespace
}  // namespace coconet
