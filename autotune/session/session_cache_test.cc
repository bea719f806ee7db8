// What a Session does with the tuning cache.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/session/session.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
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
  SessionCacheTest() {
    own_cache_ = true;
    program_ = Parse(kAccumulate);
  }
};

TEST_F(SessionCacheTest, TunesOnceAndThenHits) {
  for (int ranks : {1, 2, 3}) {
    const absl::Status first = Run(ranks, [](Session& session, const TunedProgram& tuned) {
      EXPECT_FALSE(tuned.from_cache());
      EXPECT_TRUE(tuned.record().complete);
      EXPECT_EQ(tuned.variants().size(), static_cast<size_t>(tuned.record().variants));
      for (const VariantResult& v : tuned.variants())
        EXPECT_FALSE(IsFailure(v.verdict)) << Words(v) << ": " << v.reason;
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
  status = Run(2, [](Session&, const TunedProgram& tuned) {
    EXPECT_FALSE(tuned.from_cache());
    EXPECT_TRUE(tuned.record().complete);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
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

TEST_F(TamperedRecordTest, WhatAnotherMachineMeasuredIsVerifiedFirst) {
  EXPECT_FALSE(Hits());
  Store([](TuningRecord& r) { r.origin = "another machine"; });
  EXPECT_TRUE(Hits());
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace coconet
