#include <signal.h>
#include <sys/wait.h>

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/session/session.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "gmock/gmock.h"
#include "runtime/testing/gatherer.h"

namespace coconet {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// Sums of small integers, which all schedules round alike: states are equal to the bit.
constexpr absl::string_view kSums = R"(coconet 1
program sums
input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
m1 = update(m, m + all_reduce(sum, g))
update(p, p - lr * m1)
)";

class SessionOnlineTest : public SessionTest {
 protected:
  SessionOnlineTest() {
    own_cache_ = true;
    program_ = Parse(kSums);
  }
  SessionOptions Online() {
    SessionOptions options = Options();
    options.policy = Policy::kOnline;
    options.budget_s = 20;
    options.progress = [this](absl::string_view text) { lines_.emplace_back(text); };
    return options;
  }

  enum class How : uint8_t { kRun, kAdvance, kRunSteps, kCopied, kTracedByOne };

  /// Runs `steps` steps; returns rank 0's p and m after them. On each rank they are as the
  /// interpreter has them.
  std::vector<float> Job(int ranks, int steps, const SessionOptions& options, How how = How::kRun) {
    std::vector<float> result;
    const absl::Status status = RunRanks(
        ranks,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", kSize}}));
          if (session.rank() == 0) {
            from_cache_ = tuned.from_cache();
            best_ = Words(tuned.record().best);
          }
          ASSIGN_OR_RETURN(const DeviceBuffer shared, session.Allocate(DType::kF32, kSize));
          std::vector<float> own(kSize);
          ASSIGN_OR_RETURN(BoundProgram bound,
                           tuned.Bind({how == How::kCopied ? Binding("g", absl::MakeSpan(own))
                                                           : Binding("g", shared)}));
          auto* const g = how == How::kCopied ? own.data() : static_cast<float*>(shared.data());
          ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
          RETURN_IF_ERROR(bound.Set(lr, 1.0));
          std::vector<int> explored;
          float sum = 0, m = 0, p = 0;  // of element 1, by hand
          for (int step = 0; step < steps;) {
            const int together = how == How::kRunSteps ? std::min(50, steps - step) : 1;
            const int sign = step / together % 2 == 0 ? 1 : -1;
            for (int i = 0; i < 8; ++i) g[i] = static_cast<float>(sign * (i + session.rank()));
            sum = 0;
            for (int r = 0; r < ranks; ++r) sum += static_cast<float>(sign * (1 + r));
            for (int i = 0; i < together; ++i) {
              m += sum;
              p -= m;
            }
            step += together;
            if (how == How::kRunSteps)
              RETURN_IF_ERROR(bound.RunSteps(together));
            else if (how == How::kAdvance)
              RETURN_IF_ERROR(bound.Advance());
            else if (how == How::kTracedByOne && session.rank() == 0 && step % 3 == 0)
              RETURN_IF_ERROR(bound.Trace().status());
            else
              RETURN_IF_ERROR(bound.Run());
            if (bound.explored()) explored.push_back(step);
            // Kernels may still read what the caller has written.
            if (how == How::kAdvance) RETURN_IF_ERROR(bound.Wait());
            if (dies_ && step % 1000 == 0 && TimedInSteps() >= 1) kill(getpid(), SIGKILL);
          }
          std::vector<float> states(2 * kSize);
          RETURN_IF_ERROR(bound.Read("p", states.data(), kSize));
          RETURN_IF_ERROR(bound.Read("m", states.data() + kSize, kSize));
          EXPECT_EQ(states[1], p) << session.rank();
          EXPECT_EQ(states[kSize + 1], m) << session.rank();
          if (session.rank() == 0) result = states;
          const std::lock_guard<std::mutex> lock(mutex_);
          explored_[session.rank()] = explored;
          return absl::OkStatus();
        },
        options);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }

  std::vector<TuningRecord> Records() {
    return TuningCache::Open(Options().cache_file, [](absl::string_view) {})->List();
  }
  /// The variants that steps of a job have timed: by more than the preparation's turns.
  int TimedInSteps() {
    const auto cache = TuningCache::Open(Options().cache_file, [](absl::string_view) {});
    int timed = 0;
    for (const TuningRecord& record : cache->List()) {
      for (const VariantResult& variant : cache->Variants(record.key))
        timed += variant.timing.samples > 3;
    }
    return timed;
  }
  bool Told(absl::string_view words) const {
    return absl::c_any_of(lines_,
                          [&](const std::string& line) { return absl::StrContains(line, words); });
  }

  static constexpr int64_t kSize = 1 << 17;
  static constexpr int kSteps = 4000;
  std::vector<std::string> lines_;
  std::string best_;
  bool from_cache_ = false;
  std::mutex mutex_;
  std::map<int, std::vector<int>> explored_;  // by rank: the calls; guarded by mutex_ in a job
  bool dies_ = false;
};

TEST_F(SessionOnlineTest, StepsThatExploreGiveTheSameResults) {
  SessionOptions plain = Options();
  plain.policy = Policy::kBaselineOnMiss;
  for (const int ranks : {2, 3}) {
    plain.cache_file = ":none:";
    // Three ranks may have less than a core each.
    const int steps = ranks == 2 ? kSteps : kSteps / 4;
    const std::vector<float> expected = Job(ranks, steps, plain);
    // Beside other programs, ranks may need so long to agree that nothing is explored.
    explored_.clear();
    for (int attempt = 0; attempt < 3 && explored_[0].empty(); ++attempt) {
      std::filesystem::remove(Options().cache_file);
      EXPECT_EQ(Job(ranks, steps, Online()), expected) << ranks;
      EXPECT_TRUE(Told("variants in at most 5 %")) << absl::StrJoin(lines_, "\n");
    }
    EXPECT_THAT(explored_[0], Not(IsEmpty())) << absl::StrJoin(lines_, "\n");
    for (int rank = 1; rank < ranks; ++rank)
      EXPECT_EQ(explored_[rank], explored_[0]) << "all ranks explore in the same calls";
  }
}

TEST_F(SessionOnlineTest, EveryKindOfStepMayExplore) {
  for (const How how : {How::kAdvance, How::kRunSteps, How::kCopied, How::kTracedByOne}) {
    lines_.clear();
    Job(2, kSteps, Online(), how);
    EXPECT_TRUE(Told("online: sums")) << static_cast<int>(how);
    EXPECT_EQ(explored_[1], explored_[0]) << static_cast<int>(how);
  }
}

TEST_F(SessionOnlineTest, StepsThatNeedNoPeersExploreNothing) {
  program_ = Parse(R"(coconet 1
program own
input g : f32[N] local
state p : f32[N] local
state m : f32[N] local
m1 = update(m, m + g)
update(p, p - m1)
)");
  const absl::Status status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", kSize}}));
        ASSIGN_OR_RETURN(const DeviceBuffer g, session.Allocate(DType::kF32, kSize));
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({Binding("g", g)}));
        // Ranks run as many of them as they like.
        for (int step = 0; step < 500 * (1 + session.rank()); ++step) {
          RETURN_IF_ERROR(bound.Run());
          EXPECT_FALSE(bound.explored());
        }
        std::vector<float> p(kSize);
        return bound.Read("p", p.data(), kSize);
      },
      Online());
  EXPECT_TRUE(status.ok()) << status;
  // Where the others take more than twice as long, there is nothing to explore.
  EXPECT_TRUE(Told("exploring 0 variants") ||
              absl::c_any_of(warnings_,
                             [](const std::string& warning) {
                               return absl::StrContains(warning,
                                                        "ranks need not run its steps together");
                             }))
      << absl::StrJoin(warnings_, "\n") << absl::StrJoin(lines_, "\n");
}

TEST_F(SessionOnlineTest, TheNextJobGoesOn) {
  Job(2, kSteps, Online());
  EXPECT_FALSE(from_cache_);
  std::vector<TuningRecord> records = Records();
  ASSERT_THAT(records, SizeIs(1));
  const TuningRecord first = records[0];
  EXPECT_EQ(first.search.runs, 1);
  EXPECT_GT(first.search.tried, 1);
  EXPECT_FALSE(first.complete);
  EXPECT_THAT(first.trust, SizeIs(1)) << "what is stored was verified";
  EXPECT_GT(first.best.timing.samples, 0);

  SessionOptions served = Options();
  served.policy = Policy::kCacheOnly;
  Job(2, 10, served);
  EXPECT_EQ(best_, Words(first.best)) << "other jobs run what was found";

  lines_.clear();
  Job(2, kSteps, Online());
  records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(records[0].search.tried > first.search.tried || Told("nothing is left to explore"))
      << absl::StrJoin(lines_, "\n");
}

TEST_F(SessionOnlineTest, WhatAKilledJobFoundIsKept) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dies_ = true;  // once the file has what steps have shown
    Job(2, 50 * kSteps, Online());
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  ASSERT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
  const std::vector<TuningRecord> records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_GE(TimedInSteps(), 1);
  // The next job begins with what the killed one ran, and takes its variants up again.
  SessionOptions served = Options();
  served.policy = Policy::kCacheOnly;
  Job(2, 10, served);
  EXPECT_EQ(best_, Words(records[0].best));
  lines_.clear();
  Job(2, 100, Online());
  EXPECT_GE(Records()[0].search.runs, 1);
  EXPECT_GE(Records()[0].search.tried, records[0].search.tried);
  EXPECT_GE(TimedInSteps(), 1) << "nothing is forgotten";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionOnlineTest, ProcessesExploreInTheSameCalls) {
  const std::vector<std::string> statuses =
      GatherOnProcesses(2, [&](Gatherer& gatherer, int rank) -> absl::Status {
        ASSIGN_OR_RETURN(
            const std::unique_ptr<Session> session,
            Session::Join({.world = {.timeout_s = 60, .pin = false}, .out_of_band = gatherer.way()},
                          Online()));
        ASSIGN_OR_RETURN(const TunedProgram tuned, session->Compile(program_, {{"N", kSize}}));
        ASSIGN_OR_RETURN(const DeviceBuffer g, session->Allocate(DType::kF32, kSize));
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({Binding("g", g)}));
        static_cast<float*>(g.data())[1] = static_cast<float>(rank + 1);
        std::string explored;
        for (int step = 0; step < kSteps; ++step) {
          RETURN_IF_ERROR(bound.Run());
          if (bound.explored()) absl::StrAppend(&explored, " ", step);
        }
        std::vector<float> m(kSize);
        RETURN_IF_ERROR(bound.Read("m", m.data(), kSize));
        if (m[1] != 3 * kSteps) return absl::InternalError(absl::StrCat("m[1] is ", m[1]));
        RETURN_IF_ERROR(session->Meet(absl::StrCat("explored calls", explored)));
        return session->Close();
      });
  EXPECT_THAT(statuses, Each("OK"));
}

TEST_F(SessionOnlineTest, ARankOfAnotherPolicyIsRefusedOnAllRanks) {
  for (const Policy other : {Policy::kTune, Policy::kImprove, Policy::kCacheOnly}) {
    for (const int odd : {0, 1, 2}) {
      std::string messages[3];
      const absl::Status status = RunWorld({.ranks = 3}, [&](Rank& rank) -> absl::Status {
        SessionOptions options = Online();
        if (rank.rank() == odd) options.policy = other;
        Session session(rank, options);
        for (int attempt = 0; attempt < 2; ++attempt) {
          const absl::Status refused = session.Compile(program_, {{"N", 64}}).status();
          messages[rank.rank()] = refused.ToString();
        }
        return session.Meet("the end");  // ranks are where they were
      });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_THAT(messages[0], HasSubstr("INVALID_ARGUMENT: Compile: want the same options on all "
                                         "ranks; rank "));
      EXPECT_THAT(messages[0], HasSubstr("\"SessionOptions::policy=online\""));
      EXPECT_EQ(messages[1], messages[0]);
      EXPECT_EQ(messages[2], messages[0]);
    }
  }
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(SessionOnlineTest, BadBudgetsAndPoliciesAreRefused) {
  for (const double budget_s : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    SessionOptions options = Online();
    options.budget_s = budget_s;
    const absl::Status status = RunRanks(
        2, [&](Session& session) { return session.Compile(program_, {{"N", 64}}).status(); },
        options);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("budget_s"));
  }
  SessionOptions options = Online();
  options.retune = true;
  const absl::Status status = RunRanks(
      2, [&](Session& session) { return session.Compile(program_, {{"N", 64}}).status(); },
      options);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("retune: want a policy that tunes"));
}

TEST_F(SessionOnlineTest, WithoutABudgetItRunsThePlainSchedule) {
  SessionOptions options = Online();
  options.budget_s = 0;
  Job(2, 100, options);
  EXPECT_EQ(TimedInSteps(), 0);
  EXPECT_TRUE(Told("nothing")) << absl::StrJoin(lines_, "\n");
  EXPECT_THAT(best_, HasSubstr("AR"));
}

TEST_F(SessionOnlineTest, OneRankExploresToo) {
  const std::vector<float> explored = Job(1, kSteps, Online());
  SessionOptions plain = Options();
  plain.policy = Policy::kBaselineOnMiss;
  plain.cache_file = ":none:";
  EXPECT_EQ(explored, Job(1, kSteps, plain));
}

TEST_F(SessionOnlineTest, StepsOfGpusAreRefusedInWords) {
  const absl::Status status = RunRanks(
      WorldOptions{.ranks = 2, .backend = Backend::kSimt},
      [&](Session& session) { return session.Compile(program_, {{"N", 64}}).status(); }, Online());
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kOnline explores steps on hosts"));
}

}  // namespace
}  // namespace coconet
