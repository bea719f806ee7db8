// COCONET_DEBUG=2 compares what the ranks pass as replicated, and names each variant when it is
// lowered. In a process of its own: the environment is read once.
#include <cstdlib>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "autotune/session/session.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

class SessionDebugTest : public SessionTest {
 protected:
  SessionDebugTest() {
    setenv("COCONET_DEBUG", "2", 1);
    program_ = Parse(kAccumulate);
  }
};

TEST_F(SessionDebugTest, ReplicatedInputsMustBeEqual) {
  const absl::Status status =
      Run(2, [](Session& session, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
        ASSIGN_OR_RETURN(const ScalarRef s, bound.Scalar("s"));
        RETURN_IF_ERROR(bound.Set(s, 3));
        RETURN_IF_ERROR(bound.Run());
        RETURN_IF_ERROR(bound.Set(s, session.rank()));
        const absl::Status refused = bound.Run();
        EXPECT_EQ(refused.message(),
                  "Run: input s is declared replicated, but ranks 0 and 1 pass different values");
        EXPECT_EQ(bound.Run(), refused)
            << "the session is poisoned: its first error is what everybody gets";
        EXPECT_EQ(tuned.Bind({}).status(), refused);
        EXPECT_EQ(session.Allocate(DType::kF32, 1).status(), refused);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionDebugTest, CountsAndIndicesMustBeEqual) {
  program_ = Parse(R"(coconet 1
program routed
input x : f32[N, 2] sliced(0)
input n : i32[N] replicated
input i : i32[N] replicated
output y = all_reduce(sum, scatter_add(keep_rows(x, n), shard(i, 0), [3, 2]))
)");
  size_ = 4;
  for (const absl::string_view name : {"n", "i"}) {
    const absl::Status status =
        Run(2, [&](Session& session, const TunedProgram& tuned) -> absl::Status {
          ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
          const std::vector<float> x(8, 1);
          std::vector<int32_t> counts = {0, 1, 2, 1};
          RETURN_IF_ERROR(bound.Write("x", x.data(), 8));
          RETURN_IF_ERROR(bound.Write("n", counts.data(), 4));
          RETURN_IF_ERROR(bound.Write("i", counts.data(), 4));
          RETURN_IF_ERROR(bound.Run());
          counts[3] += session.rank();
          RETURN_IF_ERROR(bound.Write(name, counts.data(), 4));
          EXPECT_EQ(bound.Run().message(),
                    absl::StrCat("Run: input ", name,
                                 " is declared replicated, but ranks 0 and 1 pass different "
                                 "values"));
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(SessionDebugTest, NamesIndicesThatAreOutOfRange) {
  program_ = Parse(R"(coconet 1
program lookup
input table : f32[N, 2] sliced(0)
input i : i32[2, 3] replicated
input j : i32[4] local
output y = all_reduce(sum, gather(table, i + 1, 0))
output z = gather(all_gather(table), j, 0)
)");
  size_ = 5;
  const absl::Status status =
      Run(2, [](Session& session, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
        const std::vector<float> table(10, 1);
        std::vector<int32_t> i = {0, 1, 2, 3, 0, 1}, j = {0, 4, 2, 1};
        RETURN_IF_ERROR(bound.Write("table", table.data(), 10));
        RETURN_IF_ERROR(bound.Write("i", i.data(), 6));
        RETURN_IF_ERROR(bound.Write("j", j.data(), 4));
        RETURN_IF_ERROR(bound.Run());
        i[4] = 4;
        j[3] = session.rank() == 1 ? -1 : 1;
        RETURN_IF_ERROR(bound.Write("i", i.data(), 6));
        RETURN_IF_ERROR(bound.Write("j", j.data(), 4));
        RETURN_IF_ERROR(bound.Run());
        RETURN_IF_ERROR(bound.Run());
        std::vector<float> y(12);
        RETURN_IF_ERROR(bound.Read("y", y.data(), 12));
        EXPECT_EQ(y, (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1}));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> indices;
  for (const std::string& text : warnings_) {
    if (absl::StrContains(text, "gather")) indices.push_back(text);
  }
  EXPECT_THAT(indices, ::testing::UnorderedElementsAre(
                           ::testing::HasSubstr("[1, 1] is 5, want an index from 0 to below 5; the "
                                                "result has zeros there"),
                           ::testing::HasSubstr("j[3] is -1, want an index from 0 to below 5")));
}

/// How often each variant was lowered, by the lines that Lower writes.
std::map<std::string, int> CountLowered(const std::string& log) {
  std::map<std::string, int> count;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StartsWith(line, "coconet: lowered ")) ++count[std::string(line)];
  }
  return count;
}

TEST_F(SessionDebugTest, AVariantIsLoweredOncePerRank) {
  own_cache_ = true;
  size_ = 7;  // no smaller size is worth checking, so that nothing is lowered for one
  for (const bool warm : {false, true}) {
    ::testing::internal::CaptureStderr();
    std::string best;
    size_t variants = 0;
    const absl::Status status =
        Run(2, [&](Session& session, const TunedProgram& tuned) -> absl::Status {
          if (session.rank() != 0) return absl::OkStatus();
          EXPECT_EQ(tuned.from_cache(), warm);
          best = Text(tuned.record().best.config);
          variants = warm ? 1 : tuned.variants().size();
          return absl::OkStatus();
        });
    const std::map<std::string, int> lowered =
        CountLowered(::testing::internal::GetCapturedStderr());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(lowered.size(), variants);
    bool has_best = false;
    for (const auto& [line, times] : lowered) {
      EXPECT_EQ(times, 2) << line;
      has_best = has_best || absl::StrContains(line, best);
    }
    EXPECT_TRUE(has_best);
  }
}

}  // namespace
}  // namespace coconet
