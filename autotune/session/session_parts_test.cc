#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/parts.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "gmock/gmock.h"

namespace coconet {
namespace {

/// Steps of momentum on parameters of their own, which share a scalar.
std::string Parameters(const std::vector<std::string>& sizes) {
  std::string text = "coconet 1\nprogram parameters\ninput lr : f32[]\n";
  for (size_t i = 0; i < sizes.size(); ++i) {
    absl::StrAppend(&text, "input g", i, " : f32[", sizes[i], "] local\nstate p", i, " : f32[",
                    sizes[i], "] replicated\nupdate(p", i, ", p", i, " - lr * all_reduce(sum, g", i,
                    "))\n");
  }
  return text;
}

class SessionPartsTest : public SessionTest {
 protected:
  SessionPartsTest() { own_cache_ = true; }

  absl::Status RunOn(const Sizes& sizes,
                     const std::function<absl::Status(Session&, const TunedProgram&)>& body) {
    SessionOptions options = Options();
    options.budget_s = 600;  // searches are to be complete on busy machines, too
    return RunRanks(
        WorldOptions{.ranks = 2, .backend = backend_},
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, sizes));
          RETURN_IF_ERROR(body(session, tuned));
          return StepAndCheck(tuned, session, 3);
        },
        options);
  }
  std::vector<TuningRecord> Records() {
    return TuningCache::Open(Options().cache_file, nullptr)->List();
  }

  Backend backend_ = Backend::kHost;
};

TEST_F(SessionPartsTest, AlikePartsAreTunedOnceAndFoundByOtherPrograms) {
  program_ = Parse(Parameters({"N", "N", "N"}));
  int variants = 0;
  const auto count = [&](Session& session, const TunedProgram& tuned) {
    if (session.rank() == 0) variants = tuned.record().variants;
    EXPECT_TRUE(tuned.record().complete);
    return absl::OkStatus();
  };
  absl::Status status = RunOn({{"N", 300}}, count);
  ASSERT_TRUE(status.ok()) << status;
  std::vector<TuningRecord> records = Records();
  ASSERT_EQ(records.size(), 2u) << "the whole, and its part";
  EXPECT_LE(variants, 60) << "a few of the whole; all of them would be thousands";
  program_ = Parse(Parameters({"N", "M", "N", "N"}));
  status = RunOn({{"N", 300}, {"M", 50}}, count);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Records().size(), 4u) << "another whole, and a part of another size";
}

class OnBackendTest : public SessionPartsTest, public ::testing::WithParamInterface<Backend> {
 protected:
  OnBackendTest() { backend_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Backends, OnBackendTest,
                         ::testing::Values(Backend::kHost, Backend::kSimt));

TEST_P(OnBackendTest, ACombinationIsVerifiedStoredAndReplayed) {
  program_ = Parse(Parameters({"N", "M"}));
  const Sizes sizes = {{"N", 300}, {"M", 50}};
  absl::Status status =
      RunOn(sizes, [](Session&, const TunedProgram&) { return absl::OkStatus(); });
  ASSERT_TRUE(status.ok()) << status;
  // Let it be the combination that won.
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(Options().cache_file, nullptr);
  std::optional<TuningRecord> whole;
  for (const TuningRecord& record : cache->List()) {
    for (const VariantResult& v : cache->Variants(record.key)) {
      if (!IsCombination(v.trace)) continue;
      EXPECT_TRUE(v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned)
          << Name(v.verdict) << ": " << v.reason;
      whole = record;
      whole->best = v;
      whole->best.verdict = Verdict::kMeasured;
      whole->best.timing = {1e-3, 1e-3, 1e-3, 20};
    }
  }
  ASSERT_TRUE(whole.has_value());
  whole->complete = true;  // however busy the machine was
  cache->Store(*whole, {whole->best, whole->baseline});
  for (const bool verified : {false, true}) {
    status = RunOn(sizes, [&](Session&, const TunedProgram& tuned) {
      EXPECT_TRUE(tuned.from_cache()) << verified;
      EXPECT_TRUE(IsCombination(tuned.record().best.trace));
      EXPECT_TRUE(absl::StrContains(tuned.record().best.schedule, "1x ["));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_THAT(warnings_, ::testing::IsEmpty());
}

TEST_F(SessionPartsTest, ADamagedCombinationIsIgnored) {
  program_ = Parse(Parameters({"N", "N"}));
  const auto no_check = [](Session&, const TunedProgram&) { return absl::OkStatus(); };
  absl::Status status = RunOn({{"N", 30}}, no_check);
  ASSERT_TRUE(status.ok()) << status;
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(Options().cache_file, nullptr);
  for (TuningRecord record : cache->List()) {
    if (!absl::StrContains(record.key_text, "parameters")) continue;
    record.best.trace = "apart {fuse(%99) | library}";
    cache->Store(record, {record.best, record.baseline});
  }
  status = RunOn({{"N", 30}}, [](Session&, const TunedProgram& tuned) {
    EXPECT_FALSE(tuned.from_cache());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(warnings_, ::testing::ElementsAre(::testing::HasSubstr("does not hold")));
}

}  // namespace
}  // namespace coconet
