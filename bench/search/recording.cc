#include "bench/search/recording.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/kept_variants.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Another runner, whose samples it keeps.
class Recorder final : public VariantRunner {
 public:
  Recorder(VariantRunner& inner, size_t variants) : inner_(inner), samples_(variants) {}

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override {
    return inner_.Compile(variants, stop);
  }
  absl::StatusOr<std::optional<Failure>> Load(int v) override { return inner_.Load(v); }
  absl::StatusOr<std::optional<Failure>> Verify(int v) override { return inner_.Verify(v); }
  Facts FactsOf(int v) const override { return inner_.FactsOf(v); }
  Trust TrustIn(int v) const override { return inner_.TrustIn(v); }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    absl::StatusOr<Sample> sample = inner_.Time(v, warm_up, steps);
    if (sample.ok()) {
      seconds_ += 1e-6 * sample->us * (warm_up + steps);
      if (!sample->failure.has_value()) samples_[v].push_back(*sample);
    }
    return sample;
  }
  absl::StatusOr<double> LoadByOthers() override { return inner_.LoadByOthers(); }
  void Unload(int v) override { inner_.Unload(v); }

  const std::vector<std::vector<Sample>>& samples() const { return samples_; }
  double seconds() const { return seconds_; }

 private:
  VariantRunner& inner_;
  std::vector<std::vector<Sample>> samples_;
  double seconds_ = 0;
};

class Replayer final : public VariantRunner {
 public:
  Replayer(const Recording& recording, uint64_t seed) : recording_(recording), seed_(seed) {}

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& /*stop*/) override {
    std::vector<std::optional<Failure>> failures;
    for (int v : variants) {
      failures.push_back(recording_.rounds[v].empty()
                             ? std::optional(Failure{Verdict::kCompileError, "as recorded"})
                             : std::nullopt);
    }
    return failures;
  }
  absl::StatusOr<std::optional<Failure>> Load(int /*v*/) override { return std::nullopt; }
  absl::StatusOr<std::optional<Failure>> Verify(int /*v*/) override { return std::nullopt; }
  Facts FactsOf(int /*v*/) const override { return {}; }
  Trust TrustIn(int /*v*/) const override { return {}; }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    const std::vector<Sample>& samples = recording_.rounds[v];
    const uint64_t pair = calls_++ / 2;
    const Sample& sample = samples[std::mt19937_64(seed_ * 1000003 + pair)() % samples.size()];
    seconds_ += 1e-6 * sample.us * (warm_up + steps);
    return sample;
  }
  absl::StatusOr<double> LoadByOthers() override { return 0.0; }
  void Unload(int /*v*/) override {}
  double seconds() const { return seconds_; }

 private:
  const Recording& recording_;
  const uint64_t seed_;
  uint64_t calls_ = 0;
  double seconds_ = 0;
};

class Solo final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    return std::vector<std::string>{std::string(mine)};
  }
};

TunerOptions Options(SearchKind kind, uint64_t seed, double budget_s, bool first) {
  TunerOptions options;
  options.budget_s = budget_s;
  options.start_s = Seconds();
  options.seed = seed;
  options.search = kind;
  if (first) options.seconds = Seconds;
  return options;
}

}  // namespace

absl::StatusOr<Run> MakeRunner(Rank& rank, const Graph& program, const VariantSet& set,
                               uint64_t seed) {
  Run run;
  const Topology& here = rank.topology();
  const CompilerOptions options{.cache_dir = GetEnv().cache_dir, .driver = here.driver};
  ASSIGN_OR_RETURN(run.binaries,
                   Binaries::Open(rank, {.target = BinaryTarget(here.arch, here.driver),
                                         .cache_dir = options.cache_dir,
                                         .compiler =
                                             [options, &here] {
                                               return MakeCompilerFor(here.arch, here.simulated,
                                                                      options);
                                             },
                                         .warn = nullptr}));
  ASSIGN_OR_RETURN(run.runner,
                   RankRunner::Create(rank, program, set.variants,
                                      {.seed = seed, .binaries = run.binaries.get(), .watch = {}}));
  return run;
}

absl::StatusOr<VariantSet> VariantsOf(const Graph& program, const ConfigSpace& space, int most) {
  ASSIGN_OR_RETURN(VariantSet set, EnumerateVariants(program, space));
  ExpectTimes(space, set);
  const int count = static_cast<int>(set.variants.size());
  std::vector<int> chosen;
  for (int v = 0; v < count; ++v) {
    if (v != set.baseline) chosen.push_back(v);
  }
  std::mt19937_64 random(most);
  absl::c_shuffle(chosen, random);
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(std::max(most - 1, 0))));
  chosen.push_back(set.baseline);
  absl::c_sort(chosen);
  std::vector<int> none;
  return OnlyKept(std::move(set), chosen, none);
}

absl::Status Record(Rank& rank, const Graph& program, const VariantSet& set, double budget_s,
                    Recording& recording) {
  ASSIGN_OR_RETURN(const Run run, MakeRunner(rank, program, set, 1));
  std::vector<Entrant> entrants = run.runner->Entrants();
  Recorder recorder(*run.runner, entrants.size());
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(entrants, set.baseline, recorder, rank.exchange(),
                        Options(SearchKind::kExhaustive, 1, budget_s, rank.rank() == 0)));
  if (rank.rank() != 0) return absl::OkStatus();
  recording.entrants = std::move(entrants);
  recording.baseline = set.baseline;
  recording.measuring_s = recorder.seconds();
  // The last samples are of the same rounds, in which all took part.
  size_t rounds = ~size_t{0};
  for (size_t v = 0; v < tuned.variants.size(); ++v) {
    recording.level_us.push_back(tuned.variants[v].timing.median_us);
    if (!FailsForGood(tuned.variants[v].verdict))
      rounds = std::min(rounds, recorder.samples()[v].size());
  }
  constexpr size_t kLeastRounds = 20;
  if (rounds < kLeastRounds) {
    return absl::DeadlineExceededError(
        "the exhaustive search has too few rounds; give it more time by --budget, or fewer "
        "variants by --most");
  }
  for (size_t v = 0; v < tuned.variants.size(); ++v) {
    std::vector<VariantRunner::Sample> samples = recorder.samples()[v];
    if (FailsForGood(tuned.variants[v].verdict)) samples.clear();
    if (!samples.empty())
      samples.erase(samples.begin(), samples.end() - static_cast<int64_t>(kLeastRounds));
    recording.rounds.push_back(std::move(samples));
  }
  return absl::OkStatus();
}

absl::StatusOr<Pick> SearchLive(Rank& rank, const Graph& program, const VariantSet& set,
                                SearchKind kind, uint64_t seed, double budget_s) {
  ASSIGN_OR_RETURN(const Run run, MakeRunner(rank, program, set, seed));
  Recorder recorder(*run.runner, set.variants.size());
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(run.runner->Entrants(), set.baseline, recorder, rank.exchange(),
                        Options(kind, seed, budget_s, rank.rank() == 0)));
  return Pick{tuned.best, recorder.seconds(), tuned.record.search.tried};
}

absl::StatusOr<Pick> Replay(const Recording& recording, SearchKind kind, uint64_t seed) {
  Replayer replayer(recording, seed);
  Solo solo;
  TunerOptions options = Options(kind, seed, 1e9, /*first=*/false);
  options.start_s = 0;
  options.seconds = [&replayer] { return replayer.seconds(); };
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(recording.entrants, recording.baseline, replayer, solo, options));
  return Pick{tuned.best, replayer.seconds(), tuned.record.search.tried};
}

}  // namespace coconet::bench
