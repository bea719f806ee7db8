// What a Session does with the tuning cache.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/session/session.h"
#include "autotune/store/database.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SessionCacheTest : public SessionTest {
 protected:
  /// Compiles by way of a script (see BrokenKernelsTest), for which the environment must be set
  /// before the first test of the process.
  static void SetUpTestSuite() {
    SessionTest::SetUpTestSuite();
    std::filesystem::create_directories(root_);
    static const char* const compiler = getenv("COCONET_CXX");
    const std::string script = root_ / "compiler";
    std::ofstream(script) << "#!/bin/sh\nif [ -e " << (root_ / "broken").string()
                          << " ]; then sed 's/= Summed(/= -Summed(/'; else cat; fi | "
                          << (compiler == nullptr ? "c++" : compiler) << " \"$@\"\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    setenv("COCONET_CXX", script.c_str(), 1);
  }
  SessionCacheTest() {
    own_cache_ = true;
    program_ = Parse(kAccumulate);
  }
};

TEST_F(SessionCacheTest, TunesOnceAndThenHits) {
  for (int ranks : {1, 2, 3}) {
    const absl::Status first = Run(ranks, [](Session& session, const TunedProgram& tuned) {
      EXPECT_FALSE(tuned.from_cache());
      EXPECT_TRUE(tuned.record().complete) << SearchText(tuned.record());
      EXPECT_EQ(tuned.variants().size(), static_cast<size_t>(tuned.record().variants));
      for (const VariantResult& v : tuned.variants())
        EXPECT_FALSE(FailsForGood(v.verdict) || MayPass(v.verdict)) << Words(v) << ": " << v.reason;
      return StepAndCheck(tuned, session, 5);
    });
    ASSERT_TRUE(first.ok()) << ranks << ": " << first;
    const int64_t runs = CompilerRuns();
    const absl::Status second = Run(ranks, [](Session& session, const TunedProgram& tuned) {
      EXPECT_TRUE(tuned.from_cache());
      EXPECT_TRUE(tuned.variants().empty());
      return StepAndCheck(tuned, session, 6);
    });
    ASSERT_TRUE(second.ok()) << ranks << ": " << second;
    EXPECT_EQ(CompilerRuns(), runs) << "a hit compiles nothing";
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SessionCacheTest, CacheOnlyNeverTunes) {
  SessionOptions options = Options();
  options.policy = Policy::kCacheOnly;
  const absl::Status status = RunRanks(
      2, [&](Session& session) { return session.Compile(program_, {{"N", 1000}}).status(); },
      options);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Compile accumulate: no record in the tuning cache"));
}

TEST_F(SessionCacheTest, AnInterruptedTuningGoesOnLater) {
  SessionOptions hasty = Options();
  hasty.budget_s = 0;
  absl::Status status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
        EXPECT_FALSE(tuned.record().complete);
        EXPECT_EQ(Words(tuned.record().best), Words(tuned.record().baseline))
            << "all that a budget of nothing allows";
        return StepAndCheck(tuned, session, 5);
      },
      hasty);
  EXPECT_TRUE(status.ok()) << status;
  hasty.policy = Policy::kCacheOnly;
  status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
        EXPECT_TRUE(tuned.from_cache());
        return absl::OkStatus();
      },
      hasty);
  EXPECT_TRUE(status.ok()) << status;
  // A job that does not improve records runs it at once, and says so.
  hasty.policy = Policy::kTune;
  hasty.budget_s = 60;
  std::vector<std::string> told;
  hasty.progress = [&](absl::string_view text) { told.emplace_back(text); };
  status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
        EXPECT_TRUE(tuned.from_cache());
        EXPECT_FALSE(tuned.record().complete);
        return StepAndCheck(tuned, session, 5);
      },
      hasty);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(told, ::testing::ElementsAre(::testing::HasSubstr("of an incomplete tuning (")));
  status = Run(2, [](Session&, const TunedProgram& tuned) {
    EXPECT_FALSE(tuned.from_cache());
    EXPECT_TRUE(tuned.record().complete);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SessionCacheTest, ARecordOfOtherMinorVersionsIsUsedAndImprovedLater) {
  const auto tunes = [&] {
    bool tuned_anew = false;
    const absl::Status status = Run(2, [&](Session& session, const TunedProgram& tuned) {
      if (session.rank() == 0) tuned_anew = !tuned.from_cache();
      return StepAndCheck(tuned, session, 5);
    });
    EXPECT_TRUE(status.ok()) << status;
    return tuned_anew;
  };
  EXPECT_TRUE(tunes());
  EXPECT_FALSE(tunes());
  {
    absl::StatusOr<Database> db = Database::Open(Options().cache_file, Access::kReadWrite);
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE(db->Execute("UPDATE decision SET soft = 'libc 1.0'").ok());
  }
  EXPECT_FALSE(tunes()) << "it is used";
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(*warnings_.begin(), HasSubstr("was tuned with libc 1.0, and here is libc "));
  EXPECT_TRUE(tunes()) << "and improved";
  EXPECT_FALSE(tunes());
}

TEST_F(SessionCacheTest, InterruptedBeforeAnythingIsCancelled) {
  SessionOptions options = Options();
  options.interrupted = [] { return true; };
  const absl::Status status = RunRanks(
      2, [&](Session& session) { return session.Compile(program_, {{"N", 1000}}).status(); },
      options);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

class TamperedRecordTest : public SessionCacheTest {
 protected:
  void Store(const std::function<void(TuningRecord&)>& edit) {
    const std::unique_ptr<TuningCache> cache = TuningCache::Open(Options().cache_file, nullptr);
    std::vector<TuningRecord> records = cache->List();
    ASSERT_EQ(records.size(), 1u);
    edit(records[0]);
    cache->Store(records[0], {records[0].best, records[0].baseline});
  }
  bool Hits() {
    bool hits = false;
    const absl::Status status = Run(2, [&](Session& session, const TunedProgram& tuned) {
      if (session.rank() == 0) hits = tuned.from_cache();
      return StepAndCheck(tuned, session, 5);
    });
    EXPECT_TRUE(status.ok()) << status;
    return hits;
  }
};

TEST_F(TamperedRecordTest, WhatDoesNotHoldIsTunedAnew) {
  EXPECT_FALSE(Hits());
  for (const char* trace : {"split(%99, flat)", "dance(%1)"}) {
    warnings_.clear();
    Store([&](TuningRecord& r) { r.best.trace = r.baseline.trace = trace; });
    EXPECT_FALSE(Hits()) << trace;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the record of accumulate does not hold")));
  }
  warnings_.clear();
  Store([&](TuningRecord& r) { r.best.config.blocks = r.baseline.config.blocks = 1 << 20; });
  EXPECT_FALSE(Hits());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("blocks")));
}

TEST_F(TamperedRecordTest, WhatWasNotVerifiedHereIsVerifiedFirst) {
  EXPECT_FALSE(Hits());
  std::vector<Trust> trust;
  Store([&](TuningRecord& r) {
    trust = r.trust;
    r.trust = {trust[0], trust[0]};
    r.trust[0].machine = "another machine";
    r.trust[1].fingerprint = "of another build";
  });
  EXPECT_TRUE(Hits());
  EXPECT_THAT(warnings_, IsEmpty());
  const std::vector<TuningRecord> records =
      TuningCache::Open(Options().cache_file, nullptr)->List();
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0].trust.size(), 3u) << "what was verified now, and before";
  EXPECT_TRUE(absl::c_any_of(records[0].trust, [&](const Trust& t) {
    return t.fingerprint == trust[0].fingerprint && t.machine == trust[0].machine;
  }));
}

TEST_F(TamperedRecordTest, ALongOneIsComparedWithThePlainSchedule) {
  const Graph program = Parse(R"(coconet 1
program exchange
input x : f32[2100, 2000] sliced(0)
output y = all_to_all(2 * x, 1)
)")
                            .value();
  SessionOptions hasty = Options();
  hasty.budget_s = 0;
  bool hits = false;
  const auto run = [&] {
    return RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
          if (session.rank() == 0) hits = tuned.from_cache();
          return absl::OkStatus();
        },
        hasty);
  };
  absl::Status status = run();
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<Schedule> schedules = Derive(program).value();
  const auto fused = absl::c_find_if(
      schedules, [](const Schedule& schedule) { return Describe(schedule) == "fuse(C, A2A)"; });
  ASSERT_NE(fused, schedules.end());
  Store([&](TuningRecord& r) {
    ASSERT_EQ(r.best.schedule, "C; A2A") << "whose operand is a temporary";
    r.best.trace = TraceText(fused->trace());
    r.best.schedule = Describe(*fused);
    r.complete = true;
  });
  status = run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(hits);
  EXPECT_THAT(warnings_, IsEmpty());
}

/// Kernels that read their peers' data give wrong results from BreakKernels on, under the same
/// keys, as with a mistake in a new version of the code generator.
class BrokenKernelsTest : public TamperedRecordTest {
 protected:
  ~BrokenKernelsTest() override { std::filesystem::remove(root_ / "broken"); }

  static void ForgetBinaries() {
    if (!std::filesystem::exists(root_ / "objects")) return;  // as in the first test
    std::vector<std::filesystem::path> binaries;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ / "objects"))
      if (entry.path().extension() == ".so") binaries.push_back(entry.path());
    ASSERT_FALSE(binaries.empty());
    for (const std::filesystem::path& binary : binaries) std::filesystem::remove(binary);
  }
  static void BreakKernels() {
    std::ofstream(root_ / "broken") << "";
    ForgetBinaries();
  }
  /// Makes a variant that reads peers' data, and seems the fastest, the best of the stored record.
  void StoreOneThatReadsPeers(bool complete) {
    Store([&](TuningRecord& r) {
      std::optional<VariantResult> best;
      const std::unique_ptr<TuningCache> cache = TuningCache::Open(Options().cache_file, nullptr);
      for (const VariantResult& v : cache->Variants(r.key))
        if (v.schedule == "fuse(AR, C)" && v.config.one_shot == OneShot::kPull) best = v;
      ASSERT_TRUE(best.has_value());
      r.best = *best;
      r.best.verdict = Verdict::kMeasured;
      r.best.reason = "";
      r.best.timing = {1e-3, 1e-3, 1e-3, 20};
      r.complete = complete;
    });
  }
};

TEST_F(BrokenKernelsTest, ACompleteRecordOfOtherCodeIsVerifiedFirst) {
  ForgetBinaries();
  EXPECT_FALSE(Hits());
  StoreOneThatReadsPeers(/*complete=*/true);
  Store([](TuningRecord& r) { r.trust[0].fingerprint = "of another build"; });
  BreakKernels();
  EXPECT_FALSE(Hits());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("fails here")));
}

TEST_F(BrokenKernelsTest, AnIncompleteRecordThatFailsIsNotKept) {
  SessionOptions hasty = Options();
  hasty.budget_s = 0;
  const auto run = [&] {
    return RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", size_}}));
          EXPECT_NE(tuned.record().best.timing.median_us, 1e-3);
          return StepAndCheck(tuned, session, 5);
        },
        hasty);
  };
  ForgetBinaries();
  absl::Status status = run();
  ASSERT_TRUE(status.ok()) << status;
  StoreOneThatReadsPeers(/*complete=*/false);
  BreakKernels();
  status = run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("fails here")));
  StoreOneThatReadsPeers(/*complete=*/false);
  hasty.interrupted = [] { return true; };
  status = run();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("fails here"))) << "nothing is verified any more";
}

}  // namespace
}  // namespace coconet
