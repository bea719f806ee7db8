// Prints how far predicted times of kernels are from measured ones.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/cost/measured_cost_model.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/language.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/fuse_moves.h"
#include "coconet/workloads/training_steps.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 1, "threads of this process");
ABSL_FLAG(int, fusions, 500, "that are judged");
ABSL_FLAG(uint64_t, seed, 1, "of the fusions");
ABSL_FLAG(std::string, all, "", "file for all predictions, beside the worst ones");
ABSL_FLAG(std::string, cache, "", "folder that keeps compiled kernels for the next run");

namespace coconet::bench {
namespace {

constexpr double kNear = 0.15;  // an error that counts as near
constexpr int kWorst = 10;      // rows of the table

int64_t Below(std::mt19937_64& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}
bool Chance(std::mt19937_64& random, int percent) { return Below(random, 100) < percent; }
template <class T>
T Pick(std::mt19937_64& random, const std::vector<T>& of) {
  return of[static_cast<size_t>(Below(random, static_cast<int64_t>(of.size())))];
}

/// Draws a program "drawn" of elementwise operations, casts, broadcasts and folds over 1 Ki to 4 Mi
/// elements, with inputs and outputs of f32, bf16 or f16, local or sliced. It need not fuse.
class Drawing {
 public:
  explicit Drawing(std::mt19937_64& random) : random_(random), program_("drawn") {
    const double share = static_cast<double>(Below(random_, 1 << 20)) / (1 << 20);
    const auto elements = static_cast<int64_t>(std::exp2(10 + share * 12));  // 1 Ki to 4 Mi
    if (Chance(random_, 25)) {
      shape_ = {elements};
    } else {
      const auto columns = Pick<int64_t>(
          random_, {48, 64, 100, 128, 192, 256, 256, 384, 512, 768, 1000, 1024, 2048, 4096});
      const int64_t rows = std::max<int64_t>(2, elements / columns);
      const bool heads = Chance(random_, 20) && rows % 4 == 0;
      shape_ = heads ? Shape{4, rows / 4, columns} : Shape{rows, columns};
    }
    layout_ = Chance(random_, 15) ? Layout::Sliced(0) : Layout::Local();
    narrow_ = Pick<DType>(random_, {DType::kF32, DType::kF32, DType::kF32, DType::kF32,
                                    DType::kBF16, DType::kBF16, DType::kF16});
  }

  absl::StatusOr<Graph> Draw() {
    const auto inputs = 1 + Below(random_, 3);
    for (int64_t i = 0; i < inputs; ++i) values_.push_back(NewInput());
    const auto operations = 1 + Below(random_, 14);
    if (shape_.size() > 1 && Chance(random_, 10)) {
      Return(Sum(CastTo(DType::kF32, values_[0]), {0}));
      return program_.graph();
    }
    for (int64_t i = 0; i < operations; ++i) values_.push_back(NewValue());
    Return(values_.back());
    if (Chance(random_, 30)) Return(Young());
    if (Chance(random_, 12)) program_.Output("sum", Sum(Young() * Young()));
    return program_.graph();
  }

 private:
  Tensor NewInput() {
    return program_.Input(absl::StrCat("x", named_++), narrow_, shape_, layout_);
  }
  Tensor Wide(Tensor a) { return a.type().dtype == DType::kF32 ? a : CastTo(DType::kF32, a); }
  Tensor Young() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t back = std::min(Below(random_, count), Below(random_, count));
    return Wide(values_[static_cast<size_t>(count - 1 - back)]);
  }
  Tensor Number() {
    return program_.Constant(Pick<double>(random_, {0.5, 0.75, 1.25, 0.1}), DType::kF32);
  }

  /// A tensor that has the shape, or broadcasts to it.
  Tensor Operand() {
    const int64_t drawn = Below(random_, 8);
    if (drawn == 0) return Number();
    if (drawn == 1) return program_.Scalar(absl::StrCat("s", named_++));
    if (drawn > 3) return Young();
    if (drawn == 3 || shape_.size() < 2) return Wide(NewInput());
    Shape shape = shape_;
    if (layout_.sliced() || Chance(random_, 70))
      shape = {shape_.back()};
    else
      shape.back() = 1;
    return program_.Input(absl::StrCat("b", named_++), DType::kF32, shape, Layout::Replicated());
  }

  Tensor NewValue() {
    const Tensor a = Young();
    const int last = static_cast<int>(shape_.size()) - 1;
    const std::function<Tensor()> values[] = {
        [&] { return Exp(-Abs(a)); },
        [&] { return Tanh(a); },
        [&] { return Pick<int>(random_, {0, 1, 2}) == 0 ? Gelu(a) : Erf(a); },
        [&] { return Chance(random_, 50) ? Sigmoid(a) : Silu(a); },
        [&] { return Sqrt(Abs(a) + 0.25); },
        [&] {
          return Chance(random_, 70) ? a / (Operand() * Operand() + 1.0) : Rsqrt(Abs(a) + 0.25);
        },
        [&] { return Chance(random_, 30) ? Log(Abs(a) + 1.0) : Relu(a); },
        [&] { return Select(Number() < a, a, Operand()); },
        [&] { return Max(a, Operand()); },
        [&] { return CastTo(DType::kF32, CastTo(DType::kBF16, a)); },
    };
    const int64_t drawn = Below(random_, 20);
    if (drawn < std::ssize(values)) return values[drawn]();
    if (drawn <= 11) {
      if (last == 0) return a * Number();
      const Tensor fold = Chance(random_, 75) ? Mean(a * a, {last}) : AMax(a, {last});
      return Chance(random_, 70) ? a * Rsqrt(Abs(fold) + 1e-5) : a - fold;
    }
    if (drawn == 12) {
      if (last == 0) return a + Number();
      const Tensor e = Exp(a - AMax(a, {last}));
      return e / Sum(e, {last});
    }
    if (drawn <= 14) return a - 0.5 * Operand();
    return drawn <= 16 ? a + Operand() : a * Operand();
  }

  void Return(Tensor value) {
    if (narrow_ != DType::kF32 && Chance(random_, 60)) value = CastTo(narrow_, value);
    program_.Output(absl::StrCat("y", named_++), value);
  }

  std::mt19937_64& random_;
  Program program_;
  Shape shape_;
  Layout layout_;
  DType narrow_{};
  std::vector<Tensor> values_;
  int named_ = 0;
};

/// The program of some nodes, which ascend: values that they take from other nodes become inputs,
/// values that other nodes take from them become outputs.
Graph Cut(const TypedGraph& p, const std::vector<NodeId>& nodes) {
  Graph cut{"gpt_step", {}};
  std::map<NodeId, NodeId> renamed;
  std::function<NodeId(NodeId)> value_of;
  const auto inputs_of = [&](NodeId id) {
    std::vector<NodeId> inputs;
    for (NodeId operand : p.inputs(id)) inputs.push_back(value_of(p.value(operand)));
    return inputs;
  };
  value_of = [&](NodeId id) {
    if (const auto there = renamed.find(id); there != renamed.end()) return there->second;
    std::vector<NodeId> inputs = p.IsRecomputed(id) ? inputs_of(id) : std::vector<NodeId>();
    const bool is_copied = RoleOf(p.op(id)) == Role::kConstant || !inputs.empty();
    TensorType type = p.type(id);
    if (type.layout.kind == Layout::Kind::kAuto) type.layout = Layout::Replicated();
    Op op = is_copied ? p.op(id) : Op(Input{absl::StrCat("x", id), type});
    return renamed[id] = cut.Add(std::move(op), std::move(inputs));
  };
  for (NodeId id : nodes) {
    std::vector<NodeId> inputs = inputs_of(id);
    renamed[id] = cut.Add(p.op(id), std::move(inputs));
  }
  const auto outside = [&](NodeId user) { return !absl::c_binary_search(nodes, user); };
  for (NodeId id : nodes) {
    if (absl::c_any_of(p.users()[id], outside))
      cut.Add(Output{absl::StrCat("y", id)}, {renamed[id]});
  }
  return cut;
}

/// A training step of GPT-2, and what could be its kernels.
struct Step {
  Schedule schedule;
  std::vector<std::vector<NodeId>> groups;  // ComputeGroups, and single launches of kernels
};

/// Steps of a few sizes.
absl::StatusOr<std::vector<Step>> GptSteps() {
  // Layers, width, heads, vocabulary, sequence and examples.
  const std::vector<std::pair<GptModel, DType>> models = {
      {{1, 64, 2, 512, 32, 1}, DType::kF32},
      {{1, 256, 4, 1000, 128, 4}, DType::kF32},
      {{1, 384, 6, 2048, 64, 8}, DType::kF32},
      {{1, 512, 8, 1000, 128, 8}, DType::kBF16},
      {{1, 768, 12, 4096, 128, 4}, DType::kF32}};
  std::vector<Step> steps;
  for (const auto& [model, dtype] : models) {
    ASSIGN_OR_RETURN(const Graph program, GptStep(model, {.dtype = dtype}));
    Step& step = steps.emplace_back();
    ASSIGN_OR_RETURN(step.schedule, InitialSchedule(program));
    step.groups = ComputeGroups(step.schedule);
    std::erase_if(step.groups, [&](const std::vector<NodeId>& group) {
      return NumElements(step.schedule.type(group[0]).shape) == 0;
    });
  }
  return steps;
}

/// A connected part of what could be a kernel of one of the steps, a program "gpt_step".
Graph DrawPart(std::mt19937_64& random, const std::vector<Step>& steps) {
  const Step& step = Pick(random, steps);
  const TypedGraph& p = step.schedule.program();
  const std::vector<NodeId> group = Pick(random, step.groups);
  std::set<NodeId> taken = {Pick(random, group)};
  const auto wanted = static_cast<size_t>(1 + Below(random, static_cast<int64_t>(group.size())));
  // The next node takes from the part or gives to it, so that the part is connected.
  while (taken.size() < wanted) {
    std::vector<NodeId> next;
    for (NodeId id : group) {
      if (taken.contains(id)) continue;
      const auto in_part = [&](NodeId other) { return taken.contains(other); };
      if (absl::c_any_of(p.inputs(id), in_part) || absl::c_any_of(p.users()[id], in_part))
        next.push_back(id);
    }
    if (next.empty()) break;
    taken.insert(Pick(random, next));
  }
  return Cut(p, {taken.begin(), taken.end()});
}

/// Programs that are one kernel and move at least as many bytes as 1 Ki elements have.
absl::StatusOr<std::vector<Graph>> DrawAll(const Config& config, const Target& target) {
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  ASSIGN_OR_RETURN(const std::vector<Step> steps, GptSteps());
  std::vector<Graph> fusions;
  std::set<std::string> seen;
  const size_t wanted = IsQuick() ? 10 : static_cast<size_t>(absl::GetFlag(FLAGS_fusions));
  for (size_t draw = 0; fusions.size() < wanted && draw < 100 * wanted; ++draw) {
    const bool half = fusions.size() % 2 == 0;
    absl::StatusOr<Graph> program = half ? Drawing(random).Draw() : DrawPart(random, steps);
    RETURN_IF_ERROR(program.status());
    if (!seen.insert(Print(Canonicalize(*program).graph)).second) continue;
    const absl::StatusOr<TimedProgram> launch = MakeTimedProgram(*program, config, target);
    if (!launch.ok()) continue;  // not all that is drawn fits a kernel
    constexpr double kLeastBytes = 4096;
    const Work& work = launch->work;
    if (work.kind != Work::Kind::kKernel || work.bytes_read + work.bytes_written < kLeastBytes)
      continue;
    fusions.push_back(*std::move(program));
  }
  return fusions;
}

/// Collectives of sizes that no calibration measures.
absl::StatusOr<std::vector<Graph>> Collectives() {
  std::vector<Graph> all;
  for (int64_t elements : {1000, 10000, 30000, 100000, 150000, 400000, 700000, 1500000}) {
    for (const char* call : {"all_reduce(sum, x)", "reduce_scatter(sum, x, 0)", "all_gather(x)"}) {
      const std::string name = std::string(call, std::strchr(call, '('));
      const char* layout = name == "all_gather" ? "sliced(0)" : "local";
      const std::string text =
          absl::StrCat("program ", name, "\ninput x : $0[N] ", layout, "\noutput y = ", call, "\n");
      ASSIGN_OR_RETURN(all.emplace_back(), BoundText(text, DType::kF32, {{"N", elements}}));
    }
  }
  return all;
}

Row RowOf(const Graph& program, const MeasuredWork& measured, const CostModel& model) {
  const Work& work = measured.work;
  const double predicted = model.Us(work);
  const bool is_collective = work.kind == Work::Kind::kCollective;
  Row row;
  row.Set("case", is_collective ? "collective" : program.name)
      .Set("predicted_us", predicted)
      .Set("measured_us", measured.us);
  row.Set("error", predicted / measured.us - 1);
  if (is_collective) return row.Set("bytes", work.bytes).Set("program", program.name);
  row.Set("bytes_read", work.bytes_read).Set("bytes_written", work.bytes_written);
  row.Set("bytes_again", work.bytes_again);
  for (size_t e = 0; e < kEfforts; ++e) {
    if (work.efforts[e] > 0) row.Set(Name(static_cast<Effort>(e)), work.efforts[e]);
  }
  return row.Set("program", Print(program));
}

/// How near the predictions of one case, "": of all kernels, are.
Row SummaryOf(absl::Span<const Row> rows, const std::string& source) {
  std::vector<double> errors;
  for (const Row& row : rows) {
    const bool counts =
        source.empty() ? TextOf(row, "case") != "collective" : TextOf(row, "case") == source;
    if (counts) errors.push_back(std::fabs(row.Number("error")));
  }
  absl::c_sort(errors);
  Row row;
  row.Set("case", source.empty() ? std::string("kernels") : source + " all");
  row.Set("count", static_cast<int64_t>(errors.size()));
  if (errors.empty()) return row;
  const auto near = std::upper_bound(errors.begin(), errors.end(), kNear) - errors.begin();
  const auto count = static_cast<double>(errors.size());
  row.Set("within_15_percent", static_cast<double>(near) / count);
  row.Set("median_error", errors[errors.size() / 2]);
  row.Set("error_of_90_percent", errors[static_cast<size_t>(0.9 * (count - 1))]);
  if (source.empty() && !IsQuick()) row.SetBars(BarsOf("within_15_percent >= 0.9"));
  return row;
}

absl::StatusOr<std::vector<Row>> JudgeAll(Rank& rank, const std::string& cache) {
  ASSIGN_OR_RETURN(const Config config, PlainConfig(rank));
  ASSIGN_OR_RETURN(std::vector<Graph> fusions, DrawAll(config, rank.stage_size()));
  if (rank.stage_size() > 1) {
    ASSIGN_OR_RETURN(const std::vector<Graph> collectives, Collectives());
    fusions.insert(fusions.end(), collectives.begin(), collectives.end());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, {.cache_dir = cache}));
  const double begin_s = SecondsNow();
  ASSIGN_OR_RETURN(const Rates rates, Calibrate(rank, *binaries));
  const double calibrate_s = SecondsNow() - begin_s;
  const MeasuredCostModel model(rates);
  ASSIGN_OR_RETURN(const std::vector<MeasuredWork> measured,
                   MeasureLaunches(rank, *binaries, fusions));
  if (measured.size() != fusions.size()) return absl::InternalError("a program is not one launch");
  std::vector<Row> rows;
  for (size_t i = 0; i < fusions.size(); ++i) rows.push_back(RowOf(fusions[i], measured[i], model));
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::fabs(std::log1p(a.Number("error"))) > std::fabs(std::log1p(b.Number("error")));
  });
  std::vector<Row> all;
  for (const char* source : {"", "drawn", "gpt_step", "collective"}) {
    Row summary = SummaryOf(rows, source);
    if (summary.Number("count") == 0) continue;
    summary.Set("ranks", rank.size()).Set("calibrate_s", calibrate_s);
    AddMachine(summary.Set("load_before", LoadAverage()));
    if (*source == 0) summary.Set("rates", JsonText{Json(rates)});
    all.push_back(std::move(summary));
  }
  all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string cache =
      absl::GetFlag(FLAGS_cache).empty() ? folder->path() : Resolve(absl::GetFlag(FLAGS_cache));
  std::vector<Row> rows;
  RETURN_IF_ERROR(RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<Row> mine, JudgeAll(rank, cache));
    if (rank.rank() == 0) rows = std::move(mine);
    return absl::OkStatus();
  }));
  const std::vector<Column> columns = ColumnsOf(
      "case, count|%.0f, within 15 %|percent|within_15_percent, median error|percent, "
      "90 % within|percent|error_of_90_percent, predicted|time, measured|time, error|percent, "
      "bar, met");
  // The table has the summaries and the worst predictions; the file all of them.
  if (const std::string& file = absl::GetFlag(FLAGS_all); !file.empty())
    RETURN_IF_ERROR(WriteFile(Resolve(file), Json(absl::Span<const Row>(rows))));
  rows.resize(std::min(rows.size(), size_t{4} + kWorst));
  return Show(rows, columns);
}

const Registered kBenchmark({.name = "predictions",
                             .purpose = "compares predicted with measured times of kernels",
                             .heeds = {"quick"},
                             .positive = {"ranks", "fusions"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
