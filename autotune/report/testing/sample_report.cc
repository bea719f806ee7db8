#include "autotune/report/testing/sample_report.h"

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/cost/nominal_cost_model.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"

namespace coconet {
namespace {

constexpr int64_t kMade = 1'790'000'000;  // Unix time
constexpr char kDevice[] = "AMD EPYC avx avx2 avx512bw avx512f bmi2 f16c fma; 2 cores, 24 GiB";

std::string KeyText(const std::string& program, int64_t n, const std::string& device = kDevice) {
  const std::string type = absl::StrCat("f32[", n, "]");
  return absl::StrCat(
      "key: 2\ngenerator: 9\ncompiler: gcc version 12.2.0; target x86_64-linux-gnu; flags -x c++ "
      "-std=c++20 -march=native -fno-math-errno\nsum order: any\nranks: 2\nlibrary: thread\n"
      "device from rank 0: ",
      device, "\nprogram: coconet 1\nprogram: program ", program, "\nprogram: input g : ", type,
      " local\nprogram: state p : ", type, " replicated\nprogram: state m : ", type,
      " auto\nprogram: %4 = all_reduce(sum, g)\nprogram: %5 = update(p, %4)\n");
}

/// What a schedule takes at a size: a latency and a time per element, in microseconds.
struct Costs {
  std::string schedule, protocol;
  double latency, per_element;
};

VariantResult Variant(const Costs& costs, int64_t n, int vec, std::mt19937& random) {
  std::uniform_real_distribution<double> noise(-0.02, 0.02);
  VariantResult v{.trace = absl::StrCat(costs.schedule, " ", vec),
                  .schedule = costs.schedule,
                  .protocol = costs.protocol};
  v.config.vec = vec;
  const double us = (costs.latency + costs.per_element * static_cast<double>(n)) *
                    (1 + 0.1 * std::fabs(std::log2(vec / 8.0)) + noise(random));
  v.verdict = Verdict::kMeasured;
  v.timing = {us, us * (0.97 + noise(random) / 2), us * (1.03 + noise(random) / 2), 20};
  v.bytes = 16 * n;
  return v;
}

void SetReasons(ReportRecord& of) {
  for (VariantResult& v : of.variants) {
    const double ratio = v.timing.median_us / of.record.best.timing.median_us;
    if (v.timing.samples == 0 || ratio <= 1) continue;
    if (v.trace == of.record.baseline.trace) continue;
    v.verdict = Verdict::kPruned;
    v.reason = ratio < 1.3 ? absl::StrFormat("slower by %.1f %%", 100 * (ratio - 1))
                           : absl::StrFormat("%.1fx as long as the best", ratio);
  }
}

ReportRecord RecordOf(const std::string& key_text, int64_t n, std::vector<VariantResult> variants) {
  absl::c_stable_sort(variants, [](const VariantResult& a, const VariantResult& b) {
    if ((a.timing.samples == 0) != (b.timing.samples == 0)) return b.timing.samples == 0;
    return a.timing.median_us < b.timing.median_us;
  });
  ReportRecord of;
  of.record.key_text = key_text;
  of.record.key = Fingerprint(key_text);
  of.record.best = variants[0];
  of.record.baseline =
      *absl::c_find_if(variants, [](const VariantResult& v) { return v.protocol == "library"; });
  of.record.necessary_bytes = 12 * n;
  of.record.variants = static_cast<int>(variants.size());
  of.record.complete = n % 2 == 0;
  of.record.search.tried = of.record.variants;
  of.record.created_s = kMade - n % 100'000;
  of.record.trust = {{std::string(64, 'c'), std::string(64, 'a'),
                      "steps back to back on 9 sets of data at 4 small sizes (274428 elements, "
                      "0.41 % undetermined); two steps at the program's size",
                      kMade}};
  of.variants = std::move(variants);
  SetReasons(of);
  return of;
}

std::vector<VariantResult> VariantsOf(const std::vector<Costs>& schedules, int64_t n,
                                      std::mt19937& random) {
  std::vector<VariantResult> variants;
  for (const Costs& costs : schedules) {
    for (int vec : {4, 8, 16}) variants.push_back(Variant(costs, n, vec, random));
  }
  VariantResult untried{.trace = "x", .schedule = "RS; C; AG p v; slice m", .protocol = "direct"};
  untried.reason = "not tried: neither promising nor drawn";
  variants.push_back(untried);
  VariantResult failed{.trace = "y", .schedule = "RS; AG; C", .protocol = "ring"};
  failed.verdict = Verdict::kCompileError;
  failed.reason = absl::StrCat("kernel.cc:17: error: ", std::string(300, 'x'), " </td><b>bold</b>");
  variants.push_back(failed);
  return variants;
}

std::vector<Prediction> SamplePredictions(std::mt19937& random) {
  std::vector<Prediction> predictions;
  std::uniform_real_distribution<double> power(-1, 5);
  std::normal_distribution<double> error(0, 0.25);
  for (int i = 0; i < 3000; ++i) {
    const double us = std::pow(10.0, power(random));
    predictions.push_back({.calibration = std::string(64, i % 3 == 0 ? '1' : '2'),
                           .work = absl::StrCat(i),
                           .label = absl::StrCat("kernel of ", i % 7, " from %", i),
                           .predicted_us = us * std::exp(error(random)),
                           .measured_us = us,
                           .created_s = kMade - i});
  }
  return predictions;
}

}  // namespace

Report SampleReport() {
  std::mt19937 random(7);
  const std::vector<Costs> schedules = {{"AR; fuse(C)", "one-shot", 1.5, 4.0e-4},
                                        {"AR; C", "library", 9, 1.2e-3},
                                        {"fuse(RS, C, AG); slice m", "two-shot", 3, 2.0e-4},
                                        {"fuse(RS, C, AG); slice m v", "two-shot", 12, 1.1e-4},
                                        {"RS; fuse(C, AG); slice m v", "direct", 18, 1.6e-4},
                                        {"fuse(AR, C)", "ring", 25, 1.3e-4},
                                        {"RS; C; AG", "direct", 11, 9.0e-4},
                                        {"RS; fuse(C); AG p", "direct", 14, 5e-4},
                                        {"AR; fuse(C) late", "ring", 40, 7e-4},
                                        {"RS; AG; fuse(C)", "ring", 35, 8e-4}};
  Report report{.cache = "tuning.db", .which = "all", .made_s = kMade, .predictions = {}};
  for (int64_t n = 1 << 10; n <= 1 << 24; n *= 4)
    report.records.push_back(RecordOf(KeyText("adam", n), n, VariantsOf(schedules, n, random)));
  std::vector<Costs> many;
  for (int i = 0; i < 40; ++i) {
    std::string words = "MM; fuse(C)";
    for (int k = 0; k < 50; ++k) absl::StrAppend(&words, "; AR %", 100 * i + k);
    many.push_back({words, i == 0 ? "library" : "direct", 10.0 + i, 1e-3});
  }
  report.records.push_back(
      RecordOf(KeyText("gpt_step", 4096), 4096, VariantsOf(many, 4096, random)));
  report.records.push_back(RecordOf(KeyText(kHostileName, 100, "<b>a device</b>"), 100,
                                    VariantsOf(schedules, 100, random)));
  report.records.push_back(
      RecordOf(KeyText("sgd", 64, "simulated GPU; sm_90"), 64, VariantsOf(schedules, 64, random)));
  ReportRecord untimed = RecordOf(KeyText("momentum", 8), 8, VariantsOf(schedules, 8, random));
  for (VariantResult& v : untimed.variants) v.timing = {};
  untimed.record.best.timing = untimed.record.baseline.timing = {};
  untimed.record.trust.clear();
  report.records.push_back(untimed);
  report.predictions = SamplePredictions(random);
  return report;
}

PlannedIteration SamplePlan() {
  NominalRates rates;
  rates.ranks = 4;
  const absl::StatusOr<Graph> step =
      GptStep({.layers = 4, .width = 256, .vocabulary = 512, .sequence = 64});
  CC_CHECK(step.ok());
  absl::StatusOr<PlannedIteration> planned =
      PlanIteration(*step, Target(rates.ranks), NominalCostModel(rates), {.seconds = 0.5});
  CC_CHECK(planned.ok());
  return *std::move(planned);
}

}  // namespace coconet
