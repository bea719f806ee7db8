// How many variants a first search of a minute tries on a GPU, by a model of what each step takes:
// the tuner runs as it does there, on a clock that compiles, checks and samples move on.

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "autotune/search/forecast.h"
#include "autotune/search/kept_variants.h"
#include "autotune/search/tuner.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "bench/search/subjects.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/training_steps.h"

// Measured offline with NVRTC, and on hosts.
ABSL_FLAG(double, kernel_s, 0.35, "seconds of one core to compile a kernel");
ABSL_FLAG(int, cores, 15, "cores that compile");
ABSL_FLAG(double, verify_s, 0.3, "seconds to verify a variant at all small sizes");
ABSL_FLAG(double, tiny_s, 0.1, "seconds to verify it at tiny sizes");
ABSL_FLAG(double, at_size_s, 1.5, "seconds to verify it at the program's size");
ABSL_FLAG(double, bind_s, 0.03, "seconds to load and bind it");
ABSL_FLAG(bool, ahead, true, "compile the next variants while one is tried");
ABSL_FLAG(bool, keep, true, "leave out variants by their expected times");

namespace coconet::bench {
namespace {

/// Takes the time that a GPU would, on its own clock. Lowering is real, and takes what it takes.
class ModelRunner final : public VariantRunner {
 public:
  ModelRunner(const VariantSet& set, double begun_s) : set_(set), now_s_(begun_s) {}

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& /*stop*/) override {
    const double ready_s = Begin(variants);
    now_s_ = std::max(now_s_, ready_s);
    return std::vector<std::optional<Failure>>(variants.size());
  }
  bool compiles_ahead() const override { return absl::GetFlag(FLAGS_ahead); }
  absl::Status CompileAhead(absl::Span<const int> variants) override {
    Begin(variants);
    return absl::OkStatus();
  }
  Facts FactsOf(int /*v*/) const override { return {"two-shot", 1}; }
  absl::StatusOr<std::optional<Failure>> Load(int v) override {
    const bool is_new = verified_.insert(texts_[v]).second;
    now_s_ += absl::GetFlag(FLAGS_bind_s) + absl::GetFlag(is_new ? FLAGS_verify_s : FLAGS_tiny_s);
    return std::nullopt;
  }
  absl::StatusOr<std::optional<Failure>> Verify(int /*v*/) override {
    now_s_ += absl::GetFlag(FLAGS_at_size_s);
    return std::nullopt;
  }
  Trust TrustIn(int /*v*/) const override { return {}; }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    const double us = set_.variants[v].prior_us;
    now_s_ += 1e-6 * us * (warm_up + steps);
    return Sample{.us = us, .failure = {}};
  }
  absl::StatusOr<double> LoadByOthers() override { return 0.0; }
  void Unload(int /*v*/) override {}
  double now_s() const { return now_s_; }

 private:
  /// When their kernels are compiled, those that were begun before included.
  double Begin(absl::Span<const int> variants) {
    const double begin_s = SecondsNow();
    double ready_s = 0;
    std::set<std::string> kernels;  // that no compiler has begun
    for (int v : variants) {
      const absl::StatusOr<Lowered> lowered = LowerVariant(set_.variants[v], kHalfAnH200.ranks);
      if (!lowered.ok()) continue;
      texts_[v] = Fingerprint(lowered->kernels.text());
      for (const auto& [symbol, text] : lowered->kernels.kernels()) {
        const std::string kernel = Fingerprint(text);
        if (const auto known = ready_.find(kernel); known != ready_.end())
          ready_s = std::max(ready_s, known->second);
        else
          kernels.insert(kernel);
      }
    }
    now_s_ += SecondsNow() - begin_s;
    busy_until_s_ = std::max(busy_until_s_, now_s_);
    int begun = 0;
    for (const std::string& kernel : kernels) {
      if (begun++ % absl::GetFlag(FLAGS_cores) == 0) busy_until_s_ += absl::GetFlag(FLAGS_kernel_s);
      ready_s = ready_[kernel] = busy_until_s_;
    }
    return ready_s;
  }

  const VariantSet& set_;
  double now_s_, busy_until_s_ = 0;
  std::map<int, std::string> texts_;     // by variant: its kernels
  std::map<std::string, double> ready_;  // by kernel: when it is compiled
  std::set<std::string> verified_;
};

absl::StatusOr<Row> Measure(const std::string& name, const Graph& program) {
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(program));
  const double begin_s = SecondsNow();
  ASSIGN_OR_RETURN(VariantSet set, EnumerateVariants(plain.graph(), kHalfAnH200));
  ExpectTimes(kHalfAnH200, set);
  const size_t all = set.variants.size();
  std::vector<int> none;
  if (absl::GetFlag(FLAGS_keep)) {
    const std::vector<int> kept = KeptVariants(kHalfAnH200, set, {&set.baseline, 1});
    set = OnlyKept(std::move(set), kept, none);
  }
  std::vector<Entrant> entrants;
  const std::vector<std::vector<int>> features = FeaturesOf(set.variants);
  for (size_t v = 0; v < set.variants.size(); ++v)
    entrants.push_back({Describe(set.variants[v]), features[v], set.variants[v].prior_us});
  const double prepared_s = SecondsNow() - begin_s;
  ModelRunner runner(set, prepared_s);
  Solo solo;
  TunerOptions options;
  options.seconds = [&] { return runner.now_s(); };
  options.key_text = "program: model\n";
  options.key = Fingerprint(options.key_text);
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(std::move(entrants), set.baseline, runner, solo, options));
  Row row;
  row.Set("case", name)
      .Set("all", static_cast<int64_t>(all))
      .Set("variants", static_cast<int64_t>(set.variants.size()))
      .Set("prepared_s", prepared_s)
      .Set("tried", static_cast<int64_t>(tuned.record.search.tried))
      .Set("seconds", runner.now_s())
      .Set("complete", int64_t{tuned.record.complete});
  row.SetBars(BarsOf(name == "adam" ? "tried >= 100" : "tried >= 30"));
  row.Set("bars_met", tuned.record.complete ? "complete" : MetOf(row));
  AddMachine(row);
  return row;
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const Graph adam,
                   BoundWorkload("adam", DType::kBF16, {{"N", int64_t{1} << 28}}));
  ASSIGN_OR_RETURN(const Graph step, GptStep({.layers = 1}));
  std::vector<Row> rows;
  ASSIGN_OR_RETURN(rows.emplace_back(), Measure("adam", adam));
  ASSIGN_OR_RETURN(rows.emplace_back(), Measure("gpt_step", step));
  return Show(
      rows,
      ColumnsOf(
          "case, variants|%.0f|all, kept|%.0f|variants, before|%.2f s|prepared_s, tried|%.0f, "
          "in|%.1f s|seconds, met|result|bars_met"));
}

const Registered kBenchmark(
    {.name = "pipeline",
     .purpose = "counts the variants that a first search of a minute tries on a GPU, by a model",
     .positive = {"cores"},
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
