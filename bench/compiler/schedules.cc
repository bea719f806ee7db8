// Prints how many schedules are derived of each workload, and how long that takes; or how long
// large programs take until they are lowered; or what twelve layers that are alike take beside two.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/training_steps.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

ABSL_FLAG(int, rounds, 7, "derivations of each program; of large at most 3, of layers always 3");
ABSL_FLAG(
    std::string, case, "workloads",
    "workloads; large: programs of up to 100,000 operations, derived, analysed and lowered; or "
    "layers: kernels of a training step of 2 and of 12 layers, and the time to compile them");

namespace coconet::bench {
namespace {

constexpr int64_t kElements = 1 << 20;

/// What `work` returns. The field `stage` becomes the seconds of the fastest call so far.
template <class Work>
auto Timed(Row& row, absl::string_view stage, const Work& work) {
  const double begin_s = SecondsNow();
  auto result = work();
  const double seconds = SecondsNow() - begin_s, before = row.Number(stage);
  row.Set(stage, before == 0 ? seconds : std::min(before, seconds));
  return result;
}

/// One vector through so many elementwise operations, each of which takes the one before it: `even`
/// and `odd` in turns.
absl::StatusOr<Graph> ChainProgram(absl::string_view name, int64_t operations, Pw even, Pw odd) {
  Program p(name);
  const Tensor x = p.Input("x", DType::kF32, {kElements}, Layout::Replicated());
  Tensor value = x;
  for (int64_t i = 0; i < operations; ++i) value = Elementwise(i % 2 == 0 ? even : odd, {value, x});
  p.Output("y", value);
  return p.graph();
}

/// p -= g * min(1, 1 / norm) over so many tensors, with the norm of all gradients together.
absl::StatusOr<Graph> ClipProgram(int64_t tensors) {
  Program p("clip");
  std::vector<Tensor> gradients, weights;
  Tensor total = 0;
  for (int64_t t = 0; t < tensors; ++t) {
    const Shape shape = {64 + t % 4};
    gradients.push_back(p.Input(absl::StrCat("g", t), DType::kF32, shape, Layout::Local()));
    weights.push_back(p.State(absl::StrCat("p", t), DType::kF32, shape, Layout::Local()));
    const Tensor squares = Sum(gradients.back() * gradients.back(), {0});
    total = t == 0 ? squares : total + squares;
  }
  const Tensor scale = Min(p.Constant(1, DType::kF32), Rsqrt(total));
  for (int64_t t = 0; t < tensors; ++t) Update(weights[t], weights[t] - gradients[t] * scale);
  return p.graph();
}

/// The last of the schedules that a search tries on cores, usually the most fused one, with its
/// first config.
absl::StatusOr<std::pair<const Schedule*, Config>> MostFused(const std::vector<Schedule>& schedules,
                                                             const ConfigSpace& space) {
  for (auto s = schedules.rbegin(); s != schedules.rend(); ++s) {
    const std::vector<Config> configs = Configs(*s, space);
    if (!configs.empty()) return std::pair(&*s, configs[0]);
  }
  return absl::NotFoundError("schedules: want one that has a config here, found none");
}

/// Derives the schedules of a program, analyses it (InitialSchedule, Describe, Configs), and lowers
/// its plain schedule with the first config, for four ranks; `rounds` times. The row's fields:
/// "case", "operations", "schedules", the fastest times as "derive_s", "analyse_s" and "lower_s"
/// (the plain schedule), "lower_fused_s" (that of MostFused), "characters" (of its kernels), their
/// sum "all_s", and "rounds". Errors are those of deriving and lowering.
absl::StatusOr<Row> MeasureLarge(absl::string_view name, const Graph& program, int rounds) {
  constexpr ConfigSpace kSpace = {.ranks = 4};
  Row row;
  row.Set("case", std::string(name)).Set("operations", int64_t{program.size()});
  for (int round = 0; round < rounds; ++round) {
    ASSIGN_OR_RETURN(const std::vector<Schedule> derived,
                     Timed(row, "derive_s", [&] { return Derive(program); }));
    std::vector<Config> configs;
    const auto analyse = [&]() -> absl::StatusOr<Schedule> {
      ASSIGN_OR_RETURN(Schedule plain, InitialSchedule(program));
      const std::string words = Describe(plain);
      configs = Configs(plain, kSpace);
      return plain;
    };
    ASSIGN_OR_RETURN(const Schedule plain, Timed(row, "analyse_s", analyse));
    const auto lower = [&] { return Lower(plain, configs[0], kSpace.ranks); };
    RETURN_IF_ERROR(Timed(row, "lower_s", lower).status());
    ASSIGN_OR_RETURN(const auto last, MostFused(derived, kSpace));
    const auto lower_last = [&] { return Lower(*last.first, last.second, kSpace.ranks); };
    ASSIGN_OR_RETURN(const Lowered fused, Timed(row, "lower_fused_s", lower_last));
    row.Set("schedules", static_cast<int64_t>(derived.size()))
        .Set("characters", static_cast<int64_t>(fused.kernels.text().size()));
  }
  row.Set("all_s", row.Number("derive_s") + row.Number("analyse_s") + row.Number("lower_s"));
  return row.Set("rounds", rounds);
}

/// Lowers the most fused schedule of a training step of GPT-2 of so many layers for two ranks, and
/// compiles its kernels for this processor, from nothing, three times (quick: once). The row's
/// fields: "layers", "operations", "kernels" (distinct ones), "compile_s" (the fastest).
absl::StatusOr<Row> MeasureLayers(int64_t layers) {
  constexpr int kRanks = 2;
  const int rounds = IsQuick() ? 1 : 3;
  ASSIGN_OR_RETURN(const Graph step, GptStep({.layers = layers,
                                              .width = 256,
                                              .heads = 4,
                                              .vocabulary = 1000,
                                              .sequence = 128,
                                              .examples = 4}));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(step));
  ASSIGN_OR_RETURN(const auto fused, MostFused(schedules, {.ranks = kRanks}));
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(*fused.first, fused.second, kRanks));
  Row row;
  row.Set("case", "gpt_step").Set("layers", layers).Set("operations", int64_t{step.size()});
  row.Set("kernels", static_cast<int64_t>(lowered.kernels.kernels().size()));
  for (int round = 0; round < rounds; ++round) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Compiler> compiler,
        MakeCompilerFor(/*arch=*/"", /*simulated=*/false, {.cache_dir = folder->path()}));
    const auto compile = [&] { return compiler->Compile(lowered.kernels); };
    RETURN_IF_ERROR(Timed(row, "compile_s", compile).status());
  }
  return row;
}

std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& size) {
    const std::vector<int64_t>& all = size.second.sizes;
    const std::string elements = CountText(absl::c_accumulate(all, int64_t{0}));
    const std::string tensors =
        size.second.is_list ? absl::StrCat(all.size(), " tensors, ") : std::string();
    absl::StrAppend(out, size.first, "=", tensors, elements);
  });
}

/// Times the derivation of a workload's schedules, for its first preset's sizes. `by_node`: for
/// worlds of several nodes. The fields are "case", "dtype", "sizes", "nodes" ("one", "several"),
/// "schedules", "graphs" (those that differ in more than their kernels), "ours_us" with its
/// confidence interval "ours_low_us" and "ours_high_us", "spread" (half the interval over the
/// median), "rounds".
absl::StatusOr<Row> MeasureDerivation(const WorkloadInfo& workload, DType dtype, int rounds,
                                      bool by_node) {
  const Sizes& sizes = workload.presets[0].sizes;
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload(workload.name, dtype, sizes));
  std::vector<Schedule> schedules;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin_s = SecondsNow();
    ASSIGN_OR_RETURN(schedules, Derive(program, {.by_node = by_node}));
    times.push_back(1e6 * (SecondsNow() - begin_s));
  }
  const auto graphs =
      absl::c_count_if(schedules, [](const Schedule& s) { return s.kernels().empty(); });
  Row row;
  row.Set("case", std::string(workload.name))
      .Set("dtype", std::string(Name(dtype)))
      .Set("sizes", SizesText(sizes))
      .Set("nodes", by_node ? "several" : "one")
      .Set("schedules", static_cast<int64_t>(schedules.size()))
      .Set("graphs", int64_t{graphs});
  const Timing timing = Summarize(times);
  SetTime(row, "ours", timing);
  return row.Set("spread", Noise(timing)).Set("rounds", rounds);
}

absl::Status RunLarge() {
  struct Case {
    absl::string_view name;
    absl::StatusOr<Graph> program;
    absl::string_view bar;
  };
  const int64_t part = IsQuick() ? 10 : 1;
  const Case cases[] = {
      {"chain of 1,000", ChainProgram("chain", 1000 / part, Pw::kMul, Pw::kAdd), "all_s <= 0.5"},
      {"chain of 10,000", ChainProgram("chain", 10000 / part, Pw::kMul, Pw::kAdd), "all_s <= 5"},
      {"sum of 100,000 terms", ChainProgram("sum", 100000 / part - 1, Pw::kAdd, Pw::kAdd),
       "all_s <= 5"},
      {"clip over 500 tensors", ClipProgram(500 / part), "all_s <= 5"}};
  const int rounds = IsQuick() ? 1 : std::min(absl::GetFlag(FLAGS_rounds), 3);
  std::vector<Row> rows;
  for (const Case& c : cases) {
    RETURN_IF_ERROR(c.program.status());
    ASSIGN_OR_RETURN(rows.emplace_back(), MeasureLarge(c.name, *c.program, rounds));
    rows.back().SetBars(BarsOf(c.bar));
  }
  return Show(
      rows,
      ColumnsOf("program|text|case, operations|%.0f, schedules|%.0f, derive|%.3f s|derive_s, "
                "analyse|%.3f s|analyse_s, lower|%.3f s|lower_s, lower fused|%.3f s|lower_fused_s, "
                "characters|%.0f, all|%.3f s|all_s, met"));
}

/// Twelve layers that are alike beside two: what they share is compiled once.
absl::Status RunLayers() {
  std::vector<Row> rows;
  for (const int64_t layers : {2, IsQuick() ? 3 : 12}) {
    ASSIGN_OR_RETURN(rows.emplace_back(), MeasureLayers(layers));
    AddMachine(rows.back().Set("load_before", LoadAverage()));
  }
  Row &few = rows[0], &many = rows[1];
  for (const char* field : {"kernels", "compile_s"})
    many.Set(absl::StrCat(field, "_ratio"), many.Number(field) / few.Number(field));
  many.SetBars(BarsOf("kernels_ratio <= 1.1, compile_s_ratio <= 1.1"));
  const std::vector<Column> columns = ColumnsOf(
      "program|text|case, layers|%.0f, operations|%.0f, kernels|%.0f, "
      "over few|ratio|kernels_ratio, compile|%.2f s|compile_s, over few |ratio|compile_s_ratio, "
      "met");
  return Show(rows, columns);
}

absl::Status RunWorkloads() {
  const int rounds = IsQuick() ? 1 : absl::GetFlag(FLAGS_rounds);
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : Workloads()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const bool by_node : {false, true}) {
        ASSIGN_OR_RETURN(rows.emplace_back(), MeasureDerivation(workload, dtype, rounds, by_node));
        rows.back().SetBars(BarsOf("ours_us <= 1e6"));
      }
    }
  }
  return Show(
      rows,
      ColumnsOf("workload|text|case, dtype, nodes, schedules|%.0f, graphs|%.0f, time|time|ours_us, "
                "+-|100*%.1f%%|spread, within 1 s|yes|met"));
}

absl::Status Run() {
  const std::string which = absl::GetFlag(FLAGS_case);
  if (which == "workloads") return RunWorkloads();
  if (which == "large") return RunLarge();
  return RunLayers();
}

const Registered kBenchmark({.name = "schedules",
                             .purpose = "counts and times the derivation of schedules",
                             .heeds = {"quick"},
                             .positive = {"rounds"},
                             .words = {{"case", "workloads, large, layers"}},
                             .run = Run});

}  // namespace
}  // namespace coconet::bench
