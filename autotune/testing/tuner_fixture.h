#pragma once

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/search/tuner.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {

/// A world of one rank.
class SoloExchange final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    if (fails_at == ++calls) return absl::DeadlineExceededError("a peer did not come");
    return std::vector<std::string>{std::string(mine)};
  }
  int calls = 0, fails_at = -1;
};

/// Variants that take a given time, on a clock of their own.
class FakeRunner final : public VariantRunner {
 public:
  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override {
    std::vector<std::optional<Failure>> out;
    for (int v : variants) {
      if (!stop()) now_s += 0.1;
      compiled.push_back(v);
      if (stop()) {
        out.push_back(Failure{Verdict::kNotMeasured, ""});
      } else if (compile_errors.count(v) != 0) {
        out.push_back(Failure{Verdict::kCompileError, "expected ';'"});
      } else {
        out.push_back(std::nullopt);
      }
    }
    return out;
  }
  bool compiles_ahead() const override { return ahead; }
  bool starts_warm() const override { return warm; }
  absl::Status CompileAhead(absl::Span<const int> variants) override {
    EXPECT_TRUE(ahead);
    compiled_ahead.emplace_back(variants.begin(), variants.end());
    return absl::OkStatus();
  }
  Facts FactsOf(int v) const override {
    EXPECT_THAT(compiled, ::testing::Contains(v));
    return {"library", 10000 - v};
  }
  absl::StatusOr<std::optional<Failure>> Load(int v) override {
    EXPECT_THAT(compiled, ::testing::Contains(v));
    RETURN_IF_ERROR(Going());
    EXPECT_TRUE(loaded.insert(v).second);
    ever_loaded.insert(v);
    if (wrong.count(v) == 0) return std::nullopt;
    loaded.erase(v);
    return Failure{Verdict::kWrongAnswer, absl::StrCat("p[", v, "]: want 1, have 2")};
  }
  absl::StatusOr<std::optional<Failure>> Verify(int v) override {
    EXPECT_THAT(loaded, ::testing::Contains(v));
    RETURN_IF_ERROR(Going());
    now_s += verify_s;
    ++verified[v];
    if (wrong_at_size.count(v) != 0 || (wrong_in_the_end.count(v) != 0 && verified[v] > 1)) {
      return Failure{Verdict::kWrongAnswer, "p[7]: want 1, have 2"};
    }
    return std::nullopt;
  }
  Trust TrustIn(int v) const override {
    EXPECT_THAT(loaded, ::testing::Contains(v));
    EXPECT_GT(verified.count(v), 0u) << "stored before it was verified at its size: " << v;
    return {absl::StrCat("code of ", v), "here", "all", 1700000000};
  }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    EXPECT_THAT(loaded, ::testing::Contains(v));
    RETURN_IF_ERROR(Going());
    ++timed[v];
    now_s += us[v] * (warm_up + steps) / 1e6;
    if (crashes_after.count(v) != 0 && timed[v] > crashes_after[v])
      return Sample{.failure = Failure{Verdict::kRunError, "crashed"}};
    if (time_outs.count(v) != 0 && time_outs[v]-- > 0)
      return Sample{.failure = Failure{Verdict::kTimedOut, "waited in vain"}};
    double cold = timed[v] == 1 ? 1.2 : 1;
    if (v == busy_from && timed[v] == 1) busy_left = busy_calls;
    if (busy_left-- > 0) cold *= 12;
    const bool disturbed = timed[v] <= disturbed_calls[v];
    if (disturbed) cold *= 12;
    const double lost = disturbed ? 0.3 : 0;
    return Sample{.us = us[v] * cold * (1 + std::abs(noise(random))),
                  .lost = lost,
                  .lost_all = lost,
                  .failure = {}};
  }
  absl::StatusOr<bool> MoveMemory() override {
    ++moves;
    return true;
  }
  absl::StatusOr<double> LoadByOthers() override { return load; }
  void Unload(int v) override { EXPECT_EQ(loaded.erase(v), 1u); }
  /// Counts a call that runs a variant; an error if the ranks have lost each other.
  absl::Status Going() {
    lost |= --calls_left == 0;
    return calls_left == 0 ? absl::AbortedError("rank 1 left: data race") : absl::OkStatus();
  }

  int calls_left = 0;  // 0: any number
  bool lost = false;
  std::vector<double> us;
  std::normal_distribution<double> noise{0, 0.01};
  std::mt19937_64 random{5};
  std::set<int> compile_errors, wrong, wrong_at_size, wrong_in_the_end;
  std::map<int, int> crashes_after;
  std::map<int, int> time_outs;  // number of the first calls of Time that fail so
  double now_s = 0, verify_s = 0.001;
  /// From this variant's first call of Time on, another job slows so many calls down.
  int busy_from = -1, busy_calls = 0, busy_left = 0;
  /// The number of the first calls of Time that another job slows down, of which samples tell a
  /// part.
  std::map<int, int> disturbed_calls;
  int moves = 0;  // of memory
  double load = 0;
  bool ahead = false, warm = false;
  std::vector<std::vector<int>> compiled_ahead;  // by call
  std::vector<int> compiled;
  std::set<int> loaded, ever_loaded;
  std::map<int, int> verified, timed;
};

class FakeJournal final : public TuningJournal {
 public:
  std::vector<VariantResult> Failures(const std::string&) override { return failures; }
  std::vector<VariantResult> Variants(const std::string&) override { return known; }
  void Begin(const std::string&, const VariantResult& v) override { in_flight.insert(v.trace); }
  void End(const std::string&, const VariantResult& v) override { in_flight.erase(v.trace); }
  void Fail(const std::string&, const VariantResult& v) override {
    EXPECT_TRUE(FailsForGood(v.verdict) || MayPass(v.verdict)) << Name(v.verdict);
    failed.push_back(absl::StrCat(v.trace, ": ", Name(v.verdict)));
  }
  void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) override {
    EXPECT_TRUE(Validate(record).ok()) << Validate(record);
    EXPECT_THAT(variants, ::testing::Contains(record.best));
    EXPECT_THAT(variants, ::testing::Contains(record.baseline));
    stored.push_back(record);
    known.assign(variants.begin(), variants.end());
  }
  std::vector<Measured> History(const std::string&) override { return history; }
  void Remember(const std::string&, const Measured& measured) override {
    EXPECT_TRUE(Validate(measured.speed_up).ok()) << Validate(measured.speed_up);
    history.insert(history.begin(), measured);
  }
  std::vector<Measured> history;  // the newest first
  std::vector<VariantResult> failures, known;
  std::set<std::string> in_flight;
  std::vector<std::string> failed;
  std::vector<TuningRecord> stored;
};

class TunerTest : public ::testing::Test {
 protected:
  /// Variants t0, t1, ... with these times. They share no features unless `features` says which.
  absl::StatusOr<Tuned> Run(std::vector<double> us, int baseline = 0,
                            std::vector<std::vector<int>> features = {}) {
    runner_.us = us;
    std::vector<Entrant> entrants;
    for (size_t i = 0; i < us.size(); ++i) {
      Entrant e;
      e.result.trace = absl::StrCat("t", i);
      e.result.schedule = absl::StrCat("S", i);
      e.features = features.empty() ? std::vector<int>{static_cast<int>(i)} : features[i];
      if (!prior_us_.empty()) e.prior_us = prior_us_[i];
      e.result.protocol = "library";
      e.result.bytes = 10000 - static_cast<int>(i);
      entrants.push_back(e);
    }
    options_.key_text = "program: x\n";
    options_.key = Fingerprint(options_.key_text);
    options_.seconds = [this] { return runner_.now_s; };
    options_.journal = &journal_;
    absl::StatusOr<Tuned> tuned = Tune(std::move(entrants), baseline, runner_, exchange_, options_);
    // Where contact is lost while a variant runs, it may be the variant's doing.
    EXPECT_TRUE(runner_.lost || exchange_.fails_at > 0 || journal_.in_flight.empty());
    if (tuned.ok()) {
      EXPECT_EQ(runner_.loaded, std::set<int>{tuned->best});
    }
    return tuned;
  }
  std::vector<double> prior_us_;  // by variant; empty: nothing is expected
  FakeRunner runner_;
  FakeJournal journal_;
  SoloExchange exchange_;
  TunerOptions options_;
};

}  // namespace coconet
