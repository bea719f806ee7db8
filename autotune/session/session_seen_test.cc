// What a Session does where it may not tune, and what it tells of what it runs.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "autotune/session/session.h"
#include "autotune/session/step_trace.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SessionSeenTest : public SessionTest {
 protected:
  SessionSeenTest() {
    own_cache_ = true;
    program_ = Parse(kAccumulate);
  }
  using Body = std::function<absl::Status(Session&, const TunedProgram&)>;
  absl::Status RunWith(const SessionOptions& options, int64_t size, const Body& body) {
    return RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", size}}));
          return body(session, tuned);
        },
        options);
  }
  /// Keeps a record, of a tuning that is as short as can be.
  absl::Status TuneBriefly() {
    SessionOptions options = Options();
    options.budget_s = 0;
    return RunWith(options, 1000, [](Session& session, const TunedProgram& tuned) {
      return StepAndCheck(tuned, session, 5);
    });
  }
  SessionOptions With(Policy policy) {
    SessionOptions options = Options();
    options.policy = policy;
    return options;
  }
  static std::string Contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static int Count(absl::string_view text, absl::string_view word) {
    int count = 0;
    for (size_t at = text.find(word); at != absl::string_view::npos; at = text.find(word, at + 1))
      ++count;
    return count;
  }
};

TEST_F(SessionSeenTest, AMissRunsThePlainScheduleAndKeepsNothing) {
  const absl::Status tuning = TuneBriefly();
  ASSERT_TRUE(tuning.ok()) << tuning;
  EXPECT_THAT(warnings_, IsEmpty());
  const SessionOptions plain = With(Policy::kBaselineOnMiss);
  absl::Status status = RunWith(plain, 1000, [](Session& session, const TunedProgram& tuned) {
    EXPECT_TRUE(tuned.from_cache());
    return StepAndCheck(tuned, session, 5);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(warnings_, IsEmpty());

  int64_t runs = 0;
  for (const bool again : {false, true}) {
    warnings_.clear();
    if (again) runs = CompilerRuns();
    status = RunWith(plain, 2000, [](Session& session, const TunedProgram& tuned) {
      EXPECT_FALSE(tuned.from_cache());
      EXPECT_EQ(tuned.record().best.schedule, "AR; fuse(C)");
      EXPECT_EQ(tuned.record().best.timing.samples, 0);
      EXPECT_THAT(tuned.Explain(),
                  AllOf(HasSubstr("accumulate f32[2000] runs AR; fuse(C)"),
                        HasSubstr("it was not timed"), HasSubstr("differs in sizes")));
      return StepAndCheck(tuned, session, 6);
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(warnings_,
                ElementsAre(AllOf(
                    HasSubstr("accumulate f32[2000] on 2 ranks: no record in the tuning cache"),
                    HasSubstr("f32[1000]"), HasSubstr("f32[2000]"),
                    HasSubstr("it runs the plain schedule"), HasSubstr("kTune"))));
  }
  EXPECT_EQ(CompilerRuns(), runs) << "its binaries are kept";
  EXPECT_EQ(TuningCache::Open(Options().cache_file, nullptr)->List().size(), 1u);
}

TEST_F(SessionSeenTest, ThePlainScheduleKeepsWithinTheMemoryLimit) {
  SessionOptions options = With(Policy::kBaselineOnMiss);
  options.memory_limit = 100;
  const absl::Status status =
      RunWith(options, 1000, [](Session&, const TunedProgram&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory_limit is 100"));
}

TEST_F(SessionSeenTest, AMissIsNamedByTheFieldsThatDiffer) {
  const absl::Status tuning = TuneBriefly();
  ASSERT_TRUE(tuning.ok()) << tuning;
  SessionOptions options = With(Policy::kCacheOnly);
  options.sum_order = SumOrder::kRank;
  const absl::Status status =
      RunWith(options, 1000, [](Session&, const TunedProgram&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("differs in sum order (any there, rank here)"));
  EXPECT_TRUE(RunRanks(
                  2,
                  [&](Session& session) -> absl::Status {
                    ASSIGN_OR_RETURN(const std::string text,
                                     session.Explain(program_, {{"N", 1000}}));
                    EXPECT_THAT(text, HasSubstr("differs in sum order"));
                    return absl::OkStatus();
                  },
                  options)
                  .ok());
}

TEST_F(SessionSeenTest, NumericsAreNamedByWhatAKeyWithoutThemMeans) {
  const absl::Status tuning = TuneBriefly();
  ASSERT_TRUE(tuning.ok()) << tuning;
  SessionOptions options = With(Policy::kCacheOnly);
  options.sum_rounding = SumRounding::kEach;
  options.nans = Nans::kNone;
  const absl::Status status =
      RunWith(options, 1000, [](Session&, const TunedProgram&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("differs in sum rounding (once there, each here); nans (possible there, "
                        "none here)"));
}

TEST_F(SessionSeenTest, ExplainSaysWhyOthersLost) {
  std::string tuned_text, hit_text, other_text;
  SessionOptions brief = Options();
  brief.budget_s = 2;
  ASSERT_TRUE(RunWith(brief, 1000, [&](Session& session, const TunedProgram& tuned) {
                if (session.rank() == 0) tuned_text = tuned.Explain();
                return absl::OkStatus();
              }).ok());
  const absl::Status status = RunWith(
      With(Policy::kCacheOnly), 1000,
      [&](Session& session, const TunedProgram& tuned) -> absl::Status {
        (session.rank() == 0 ? hit_text : other_text) = tuned.Explain();
        ASSIGN_OR_RETURN(const std::string stored, session.Explain(program_, {{"N", 1000}}));
        EXPECT_EQ(stored, session.rank() == 0 ? tuned.Explain() : stored);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  for (const std::string& text : {tuned_text, hit_text}) {
    EXPECT_THAT(text, AllOf(HasSubstr("accumulate f32[1000] runs "), HasSubstr(" a step; "),
                            HasSubstr("other schedules"), HasSubstr("why it does not run")));
  }
  EXPECT_THAT(other_text,
              AllOf(HasSubstr("accumulate f32[1000] runs "), HasSubstr("which rank 0 has")));
}

TEST_F(SessionSeenTest, StepsAreTracedPerRank) {
  SessionOptions options = With(Policy::kBaselineOnMiss);
  options.trace = File("steps.json");
  const absl::Status status =
      RunWith(options, 1000, [&](Session& session, const TunedProgram& tuned) -> absl::Status {
        RETURN_IF_ERROR(StepAndCheck(tuned, session, 5));
        std::vector<float> g(1000, 1);
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", absl::MakeSpan(g)}}));
        RETURN_IF_ERROR(bound.Run());
        RETURN_IF_ERROR(bound.RunSteps(2));
        const std::string early = FileOfRank(File("early.json"), session.rank(), 2);
        RETURN_IF_ERROR(session.WriteTrace(early));
        EXPECT_EQ(Count(Contents(early), "ProfilerStep#"), 4);
        RETURN_IF_ERROR(bound.RunSteps(StepTrace::kSteps));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  for (int rank : {0, 1}) {
    const std::string trace = Contents(FileOfRank(options.trace, rank, 2));
    EXPECT_EQ(Count(trace, "ProfilerStep#"), StepTrace::kSteps) << rank;
    EXPECT_THAT(trace, HasSubstr(absl::StrCat("\"backend\": \"thread\", \"rank\": ", rank,
                                              ", \"world_size\": 2")));
    EXPECT_THAT(trace, AllOf(HasSubstr("\"baseTimeNanoseconds\": 1"), HasSubstr("\"host_name\""),
                             HasSubstr("\"args\": {\"program\": \"accumulate\"}")));
    EXPECT_THAT(
        trace, HasSubstr("\"args\": {\"Collective name\": \"allreduce\", \"dtype\": \"Float\", "
                         "\"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"Group size\": 2, "
                         "\"Process Group Name\": \"0\", \"Process Group Description\": \"stage\", "
                         "\"Process Group Ranks\": \"[0, 1]\", \"Seq\": 0}"));
    EXPECT_THAT(trace, HasSubstr(absl::StrCat("\"Seq\": ", StepTrace::kSteps - 1, "}")));
  }
}

TEST_F(SessionSeenTest, NothingIsWrittenOfWhatIsNotTraced) {
  const absl::Status status =
      RunWith(With(Policy::kBaselineOnMiss), 1000, [&](Session& session, const TunedProgram&) {
        EXPECT_TRUE(absl::IsFailedPrecondition(session.WriteTrace(File("steps.json"))));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(std::filesystem::exists(File("steps.json")));
}

TEST(StepTrace, InsertsTheRankBeforeTheEnding) {
  EXPECT_EQ(FileOfRank("a/t.json", 1, 2), "a/t.rank1.json");
  EXPECT_EQ(FileOfRank("a.b/t", 0, 2), "a.b/t.rank0");
  EXPECT_EQ(FileOfRank("t.json", 0, 1), "t.json");
}

}  // namespace
}  // namespace coconet
