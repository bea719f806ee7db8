// Sessions of programs over lists of tensors.

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kClip = R"(coconet 1
program clip
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
input wd : f32[] each
m1 = update(m, 0.5 * m + all_reduce(sum, g))
update(p, p - lr * (m1 / sqrt(1 + total(sum(m1 * m1))) + wd * p))
)";

constexpr absl::string_view kDecay = R"(coconet 1
program decay
input g : f32[N] local
state p : f32[N] replicated
input lr : f32[]
input wd : f32[] each
update(p, p - lr * (all_reduce(sum, g) + wd * p))
)";

class SessionListTest : public SessionTest {
 protected:
  SessionListTest() { program_ = Parse(kClip); }

  absl::Status RunList(int ranks, const Sizes& sizes, const SessionOptions& options,
                       const std::function<absl::Status(Session&, const TunedProgram&)>& body) {
    return RunRanks(
        ranks,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, sizes));
          return body(session, tuned);
        },
        options);
  }

  /// Only the schedule of these words.
  SessionOptions Only(const std::string& words) {
    SessionOptions options = Options();
    options.admits = [words](const Schedule& s, const Config&) { return Describe(s) == words; };
    return options;
  }
};

TEST_F(SessionListTest, TunesOnceAList) {
  program_ = Parse(kDecay);
  std::set<std::string> keys;
  const auto compile = [&](const Sizes& sizes, bool hit) {
    const absl::Status status =
        RunList(2, sizes, Options(), [&](Session& session, const TunedProgram& tuned) {
          EXPECT_EQ(tuned.from_cache(), hit);
          if (session.rank() == 0) keys.insert(tuned.record().key);
          return StepAndCheck(tuned, session, 7);
        });
    EXPECT_TRUE(status.ok()) << status;
  };
  compile({{"N", {100, 3, 0, 1000}}}, false);
  compile({{"N", {100, 3, 0, 1000}}}, true);
  compile({{"N", {100, 3, 1000, 0}}}, false);
  EXPECT_EQ(keys.size(), 2u) << "a record of one list is none of another";
}

TEST_F(SessionListTest, TensorsHaveNamesOfTheirOwn) {
  const absl::Status status = RunList(
      2, {{"N", {3, 5}}}, Only("RS; fuse(C, fold, AR, C, AG); slice m"),
      [&](Session&, const TunedProgram& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(DeviceBuffer g0, tuned.Allocate("g.0"));
        ASSIGN_OR_RETURN(DeviceBuffer g1, tuned.Allocate("g.1"));
        std::vector<float> p1(5, 1.0f);
        EXPECT_THAT(std::string(tuned.Bind({{"g", g0}}).status().message()),
                    HasSubstr("no such tensor"));
        ASSIGN_OR_RETURN(BoundProgram bound,
                         tuned.Bind({{"g.0", g0}, {"g.1", g1}, {"p.1", absl::MakeSpan(p1)}}));
        for (float& x : g0.span<float>()) x = 1;
        for (float& x : g1.span<float>()) x = 1;
        ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
        ASSIGN_OR_RETURN(const ScalarRef wd, bound.Scalar("wd.1"));
        RETURN_IF_ERROR(bound.Set(lr, 1));
        RETURN_IF_ERROR(bound.Set(wd, 0.5));
        RETURN_IF_ERROR(bound.Run());
        std::vector<float> p0(3);
        RETURN_IF_ERROR(bound.Read("p.0", p0.data(), 3));
        const float step =
            2 / std::sqrt(1.0f + 8 * 4);  // gradients of 2 ranks, over the norm of 8 elements
        EXPECT_FLOAT_EQ(p0[2], -step);
        EXPECT_FLOAT_EQ(p1[4], 1 - (step + 0.5f));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionListTest, CheckpointsAreReadByOtherSchedulesAndNumbersOfRanks) {
  const std::string file = File("states");
  const std::vector<int64_t> sizes = {70, 1, 1000};
  const auto value = [](size_t t, int64_t i) {
    return static_cast<float>(1000 * t) + static_cast<float>(i);
  };
  const absl::Status saved =
      RunList(3, {{"N", sizes}}, Only("RS; fuse(C, fold, AR, C, AG); slice m"),
              [&](Session&, const TunedProgram& tuned) -> absl::Status {
                ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
                for (size_t t = 0; t < sizes.size(); ++t) {
                  std::vector<float> m;
                  for (int64_t i = 0; i < sizes[t]; ++i) m.push_back(value(t, i));
                  RETURN_IF_ERROR(bound.Write(absl::StrCat("m.", t), m.data(), sizes[t]));
                }
                return bound.Save(file);
              });
  ASSERT_TRUE(saved.ok()) << saved;
  const std::pair<int, std::string> readers[] = {
      {1, "AR; fuse(C, fold, C)"}, {2, "RS; fuse(C, fold); C; AR; fuse(C, AG); slice m"}};
  for (const auto& [ranks, schedule] : readers) {
    const absl::Status loaded =
        RunList(ranks, {{"N", sizes}}, Only(schedule),
                [&](Session&, const TunedProgram& tuned) -> absl::Status {
                  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
                  RETURN_IF_ERROR(bound.Load(file));
                  for (size_t t = 0; t < sizes.size(); ++t) {
                    std::vector<float> m(sizes[t]);
                    RETURN_IF_ERROR(bound.Read(absl::StrCat("m.", t), m.data(), sizes[t]));
                    for (int64_t i = 0; i < sizes[t]; ++i) EXPECT_EQ(m[i], value(t, i));
                  }
                  return absl::OkStatus();
                });
    EXPECT_TRUE(loaded.ok()) << ranks << ": " << loaded;
  }
}

}  // namespace
}  // namespace coconet
