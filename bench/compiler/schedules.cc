// Prints how many schedules are derived of each workload, and how long that takes; or how long
// large programs take until they are lowered; or what twelve layers that are alike take beside two.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/compiler/derivation.h"
#include "bench/harness/machine.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/training_steps.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

ABSL_FLAG(int, rounds, 7, "derivations of each program");
ABSL_FLAG(
    std::string, case, "workloads",
    "workloads; large: programs of up to 100,000 operations, derived, analysed and lowered; or "
    "layers: kernels of a training step of 2 and of 12 layers, and the time to compile them");

namespace coconet::bench {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kElements = 1 << 20;

/// The seconds that some work takes: the fastest of several times.
class Fastest {
 public:
  template <class Work>
  void Add(const Work& work) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    work();
    seconds_ = std::min(seconds_, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

/// One vector through so many elementwise operations, each of which takes the one before it.
Graph ChainProgram(int64_t operations) {
  Graph g{"chain", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {kElements}, Layout::Replicated()}});
  NodeId value = x;
  for (int64_t i = 0; i < operations; ++i)
    value = g.Add(Pointwise{i % 2 == 0 ? Pw::kMul : Pw::kAdd}, {value, x});
  g.Add(Output{"y"}, {value});
  return g;
}

/// A vector added up so many times, from left to right.
Graph SumProgram(int64_t terms) {
  Graph g{"sum", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {kElements}, Layout::Replicated()}});
  NodeId total = x;
  for (int64_t term = 1; term < terms; ++term) total = g.Add(Pointwise{Pw::kAdd}, {total, x});
  g.Add(Output{"y"}, {total});
  return g;
}

/// p -= g * min(1, 1 / norm) over so many tensors, with the norm of all gradients together.
Graph ClipProgram(int64_t tensors) {
  Graph g{"clip", {}};
  const auto add = [&](Pw fn, std::vector<NodeId> inputs) {
    return g.Add(Pointwise{fn}, std::move(inputs));
  };
  const NodeId one = g.Add(Const{1, DType::kF32}, {});
  std::vector<NodeId> gradients, weights;
  NodeId total = -1;
  for (int64_t t = 0; t < tensors; ++t) {
    const TensorType type{DType::kF32, {64 + t % 4}, Layout::Local()};
    gradients.push_back(g.Add(Input{absl::StrCat("g", t), type}));
    weights.push_back(g.Add(State{absl::StrCat("p", t), type}));
    const NodeId squares = g.Add(Fold{.kind = FoldKind::kSum, .dims = {0}},
                                 {add(Pw::kMul, {gradients.back(), gradients.back()})});
    total = total < 0 ? squares : add(Pw::kAdd, {total, squares});
  }
  const NodeId scale = add(Pw::kMin, {one, add(Pw::kRsqrt, {total})});
  for (int64_t t = 0; t < tensors; ++t) {
    const NodeId step = add(Pw::kMul, {gradients[t], scale});
    g.Add(Update{}, {weights[t], add(Pw::kSub, {weights[t], step})});
  }
  return g;
}

/// Derives the schedules of a program, analyses it (InitialSchedule, Describe, Configs), and lowers
/// its plain schedule with the first config, for four ranks; `rounds` times. The row's fields:
/// "case", "operations", "schedules", the fastest times as "derive_s", "analyse_s" and "lower_s"
/// (the plain schedule), "lower_fused_s" (the last one, usually the most fused), "characters" (of
/// that one's kernels), their sum "all_s", and "rounds". Errors are those of deriving and lowering.
absl::StatusOr<Row> MeasureLarge(absl::string_view name, const Graph& program, int rounds) {
  Fastest derive, analyse, lower, lower_fused;
  size_t schedules = 0, characters = 0;
  for (int round = 0; round < rounds; ++round) {
    absl::StatusOr<std::vector<Schedule>> derived;
    derive.Add([&] { derived = Derive(program); });
    if (!derived.ok()) return derived.status();
    schedules = derived->size();
    absl::StatusOr<Schedule> plain;
    std::vector<Config> configs;
    std::string words;
    analyse.Add([&] {
      plain = InitialSchedule(program);
      if (!plain.ok()) return;
      words = Describe(*plain);
      configs = Configs(*plain, {.ranks = kRanks});
    });
    if (!plain.ok()) return plain.status();
    absl::StatusOr<Lowered> lowered;
    lower.Add([&] { lowered = Lower(*plain, configs[0], kRanks); });
    if (!lowered.ok()) return lowered.status();
    const Schedule& fused = derived->back();
    lower_fused.Add([&] { lowered = Lower(fused, Configs(fused, {.ranks = kRanks})[0], kRanks); });
    if (!lowered.ok()) return lowered.status();
    characters = lowered->kernels.text().size();
  }
  Row row;
  row.Set("case", std::string(name))
      .Set("operations", static_cast<int64_t>(program.size()))
      .Set("schedules", static_cast<int64_t>(schedules));
  row.Set("derive_s", derive.seconds())
      .Set("analyse_s", analyse.seconds())
      .Set("lower_s", lower.seconds())
      .Set("lower_fused_s", lower_fused.seconds())
      .Set("characters", static_cast<int64_t>(characters));
  row.Set("all_s", derive.seconds() + analyse.seconds() + lower.seconds());
  row.Set("rounds", static_cast<int64_t>(rounds));
  return row;
}

/// Lowers the most fused schedule of a training step of GPT-2 of so many layers for two ranks, and
/// compiles its kernels for this processor, from nothing, three times. The row's fields: "layers",
/// "operations", "kernels" (distinct ones), "compile_s" (the fastest).
absl::StatusOr<Row> MeasureLayers(int64_t layers) {
  constexpr int kRanks = 2, kRounds = 3;
  ASSIGN_OR_RETURN(const Graph step, GptStep({.layers = layers,
                                              .width = 256,
                                              .heads = 4,
                                              .vocabulary = 1000,
                                              .sequence = 128,
                                              .examples = 4}));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(step));
  const Schedule& fused = schedules.back();
  const std::vector<Config> configs = Configs(fused, {.ranks = kRanks});
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(fused, configs[0], kRanks));
  double fastest_s = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Compiler> compiler,
        MakeCompilerFor(/*arch=*/"", /*simulated=*/false, {.cache_dir = folder->path()}));
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(compiler->Compile(lowered.kernels).status());
    fastest_s = std::min(fastest_s, absl::ToDoubleSeconds(absl::Now() - begin));
  }
  Row row;
  row.Set("case", std::string("gpt_step")).Set("layers", layers);
  row.Set("operations", static_cast<int64_t>(step.size()));
  row.Set("kernels", static_cast<int64_t>(lowered.kernels.kernels().size()));
  row.Set("compile_s", fastest_s);
  return row;
}

constexpr double kMostMicroseconds = 1e6;

std::vector<Column> Columns() {
  return ColumnsOf(
      "workload|text|case, dtype, nodes, schedules|%.0f, graphs|%.0f, time|time|ours_us, "
      "+-|100*%.1f%%|spread, within 1 s|yes|met");
}

std::vector<Column> LargeColumns() {
  return ColumnsOf(
      "program|text|case, operations|%.0f, schedules|%.0f, derive|%.3f s|derive_s, "
      "analyse|%.3f s|analyse_s, lower|%.3f s|lower_s, lower fused|%.3f s|lower_fused_s, "
      "characters|%.0f, all|%.3f s|all_s, met");
}

absl::Status RunLarge() {
  struct Case {
    absl::string_view name;
    Graph program;
    double most_s;
  };
  const int64_t part = IsQuick() ? 10 : 1;
  const Case cases[] = {{"chain of 1,000", ChainProgram(1000 / part), 0.5},
                        {"chain of 10,000", ChainProgram(10000 / part), 5},
                        {"sum of 100,000 terms", SumProgram(100000 / part), 5},
                        {"clip over 500 tensors", ClipProgram(500 / part), 5}};
  std::vector<Row> rows;
  for (const Case& c : cases) {
    const int rounds = IsQuick() ? 1 : std::max(1, std::min(absl::GetFlag(FLAGS_rounds), 3));
    ASSIGN_OR_RETURN(Row row, MeasureLarge(c.name, c.program, rounds));
    const Bar bars[] = {{"all_s", Bar::Side::kAtMost, c.most_s}};
    rows.push_back(std::move(row.SetBars(bars)));
  }
  return Show(rows, LargeColumns());
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
  many.SetBars(
      {{"kernels_ratio", Bar::Side::kAtMost, 1.1}, {"compile_s_ratio", Bar::Side::kAtMost, 1.1}});
  const std::vector<Column> columns = ColumnsOf(
      "program|text|case, layers|%.0f, operations|%.0f, kernels|%.0f, "
      "over few|ratio|kernels_ratio, compile|%.2f s|compile_s, over few |ratio|compile_s_ratio, "
      "met");
  return Show(rows, columns);
}

absl::Status RunWorkloads() {
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : Workloads()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const bool by_node : {false, true}) {
        ASSIGN_OR_RETURN(
            Row row,
            MeasureDerivation(workload, dtype,
                              IsQuick() ? 1 : std::max(1, absl::GetFlag(FLAGS_rounds)), by_node));
        const Bar bars[] = {{"ours_us", Bar::Side::kAtMost, kMostMicroseconds}};
        rows.push_back(std::move(row.SetBars(bars)));
      }
    }
  }
  return Show(rows, Columns());
}

absl::Status Run() {
  const std::string which = absl::GetFlag(FLAGS_case);
  if (which == "workloads") return RunWorkloads();
  if (which == "large") return RunLarge();
  if (which == "layers") return RunLayers();
  return absl::InvalidArgumentError("want --case=workloads, large or layers");
}

const Registered kBenchmark(
    {.name = "schedules",
     .usage = "counts and times the derivation of schedules; see bench/README.md\n\n  schedules "
              "[--case=workloads|large|layers] [--rounds=7] [--json=FILE]",
     .run = Run});

}  // namespace
}  // namespace coconet::bench
