// Prints how fast generated kernels load and store, beside plain streams of the same bytes.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/compiler/kernel_cases.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "bias, column, odd, rowfold, strided, gather, scalars; default: all");
ABSL_FLAG(double, seconds, 1, "for each row");

namespace coconet::bench {
namespace {

/// A case's most fused schedule for some ranks and rows, by packs of a vector of f32: one plan with
/// plain stores and one with streaming stores, with their binaries.
struct CompiledKernels {
  struct Form {
    std::string stores;  // "plain", "streaming"
    Lowered lowered = {};
    std::string binary = {};
  };
  std::vector<Form> forms;
  double lower_s = 0;  // of one form
};

/// As the tuner has it on hosts.
Config ConfigOf(int vector_bytes) {
  return {.protocol = Protocol::kGenerated, .vec = vector_bytes / 4, .chunk = 4096};
}

/// The schedule with the fewest steps, the first of these.
absl::StatusOr<Schedule> MostFused(const Graph& program, const Config& config, int ranks) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  const Schedule* best = nullptr;
  size_t fewest = 0;
  for (const Schedule& schedule : schedules) {
    if (!Validate(config, schedule, {.ranks = ranks}).ok()) continue;
    ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, ranks));
    if (best != nullptr && lowered.plan.steps.size() >= fewest) continue;
    best = &schedule;
    fewest = lowered.plan.steps.size();
  }
  if (best == nullptr) return absl::InternalError("no schedule takes the benchmark's numbers");
  return *best;
}

/// A bound plan and its memory.
struct OnRank {
  std::unique_ptr<Module> module;
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<BoundPlan> plan;
};

/// Numbers from 0.5 to 1, so that nothing overflows or becomes denormal; indices at random.
void Fill(const Buffer& buffer, int64_t table, void* data) {
  uint64_t random = 88172645463325252;
  for (int64_t i = 0; i < buffer.elements; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const bool is_index = buffer.dtype == DType::kI32;
    const double value = is_index ? static_cast<double>(random % static_cast<uint64_t>(table))
                                  : 0.5 + static_cast<double>(random >> 41) * 0x1p-24;
    StoreElement(buffer.dtype, data, i, buffer.elements == 1 ? 1 : value);
  }
}

absl::StatusOr<OnRank> BindForm(Rank& rank, const KernelCase& c,
                                const CompiledKernels::Form& form) {
  OnRank bound;
  ASSIGN_OR_RETURN(bound.module, rank.Load(form.binary));
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : form.lowered.plan.buffers) {
    if (buffer.role == BufferRole::kSync) {
      buffers.push_back(nullptr);
      continue;
    }
    const int64_t bytes = buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype));
    ASSIGN_OR_RETURN(bound.memory.emplace_back(), rank.Allocate(bytes, buffer.symmetric));
    buffers.push_back(bound.memory.back().get());
    Fill(buffer, c.table, buffers.back()->own());
  }
  ASSIGN_OR_RETURN(bound.plan,
                   rank.Bind(form.lowered.plan, *bound.module, buffers, GetEnv().timeout_s));
  return bound;
}

/// The plain streams of one rank.
struct Streams {
  std::vector<Array> arrays;
  PlainStream streams;
  int64_t elements = 0;
};

absl::StatusOr<Streams> MakeStreams(const KernelCase& c, int64_t rows) {
  Streams s;
  s.streams.loads = c.loads;
  s.streams.stores = c.stores;
  constexpr int64_t kVectors = 32;  // elements that a turn of the loop takes
  s.elements = (rows * c.row_bytes / static_cast<int64_t>(sizeof(float)) + kVectors - 1) /
               kVectors * kVectors;
  const int64_t bytes = s.elements * static_cast<int64_t>(sizeof(float));
  // As a step updates its states, the last streams that are loaded are stored, too.
  const bool in_place = c.stores > 1;
  for (int k = 0; k < c.loads; ++k) {
    ASSIGN_OR_RETURN(Array array, Array::Allocate(bytes));
    s.streams.from[k] = array.as<float>();
    if (in_place && k > 0) s.streams.to[k - 1] = array.as<float>();
    s.arrays.push_back(std::move(array));
  }
  if (!in_place && c.stores == 1) {
    ASSIGN_OR_RETURN(Array array, Array::Allocate(bytes));
    s.streams.to[0] = array.as<float>();
    s.arrays.push_back(std::move(array));
  }
  return s;
}

Contender RunsPlan(const std::string& name, BoundPlan& plan) {
  return {name, [&plan](int64_t steps) -> absl::Status {
            for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(plan.Run());
            return absl::OkStatus();
          }};
}

Contender RunsStreams(const std::string& name, Kernels::Streams loop, const Streams& s) {
  return {name, [&s, loop](int64_t steps) -> absl::Status {
            for (int64_t i = 0; i < steps; ++i) {
              [[maybe_unused]] const volatile float total = loop(s.streams, s.elements);
            }
            return absl::OkStatus();
          }};
}

/// The fastest of contenders [begin, end).
const Measured& FastestOf(const std::vector<Measured>& all, size_t begin, size_t end) {
  return *std::min_element(
      all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end),
      [](const Measured& a, const Measured& b) { return a.timing.median_us < b.timing.median_us; });
}

absl::StatusOr<CompiledKernels> CompileCase(const KernelCase& c, int64_t rows, int ranks,
                                            int vector_bytes, Compiler& compiler) {
  ASSIGN_OR_RETURN(const Graph symbolic, Parse(c.program));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, {{"N", rows}}));
  Config config = ConfigOf(vector_bytes);
  ASSIGN_OR_RETURN(const Schedule schedule, MostFused(program, config, ranks));
  CompiledKernels kernels;
  for (const Streaming streaming : {Streaming::kNone, Streaming::kAll}) {
    if (streaming == Streaming::kAll && c.stores == 0) continue;
    config.streaming = streaming;
    const auto begin = std::chrono::steady_clock::now();
    CompiledKernels::Form form{.stores = streaming == Streaming::kNone ? "plain" : "streaming"};
    ASSIGN_OR_RETURN(form.lowered, Lower(schedule, config, ranks));
    kernels.lower_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSIGN_OR_RETURN(const Binary binary, compiler.Compile(form.lowered.kernels));
    form.binary = binary.path;
    kernels.forms.push_back(std::move(form));
  }
  return kernels;
}

/// Collective: every rank runs the kernel on memory of its own, in the same rounds as plain streams
/// of the same bytes, each with plain and with streaming stores, of which the faster counts. Fields
/// besides the common ones: "form", "rows", "gb_s" and "limit_gb_s" of all ranks together,
/// "spread" and "limit_spread", "ours_stores" and "limit_stores".
absl::StatusOr<Row> MeasureKernel(Rank& rank, const KernelCase& c, int64_t rows,
                                  const CompiledKernels& kernels, const RoundTerms& terms) {
  std::vector<OnRank> ours;
  for (const CompiledKernels::Form& form : kernels.forms) {
    ASSIGN_OR_RETURN(ours.emplace_back(), BindForm(rank, c, form));
  }
  ASSIGN_OR_RETURN(const Streams streams, MakeStreams(c, rows));
  std::vector<Contender> contenders;
  for (size_t i = 0; i < ours.size(); ++i)
    contenders.push_back(RunsPlan(kernels.forms[i].stores, *ours[i].plan));
  contenders.push_back(RunsStreams("plain", BestKernels().stream_plain, streams));
  if (c.stores > 0)
    contenders.push_back(RunsStreams("streaming", BestKernels().stream_streaming, streams));
  ASSIGN_OR_RETURN(const std::vector<Measured> measured, MeasureInRounds(rank, contenders, terms));
  const Measured &best = FastestOf(measured, 0, ours.size()),
                 &limit = FastestOf(measured, ours.size(), measured.size());

  const int64_t bytes = rank.size() * rows * c.row_bytes * (c.loads + c.stores);
  const auto gb_s = [&](const Measured& m) {
    return static_cast<double>(bytes) / m.timing.median_us * 1e-3;
  };
  Row row;
  row.Set("case", c.name).Set("form", c.form).Set("ranks", int64_t{rank.size()});
  row.Set("rows", rows).Set("dtype", std::string(Name(c.dtype))).Set("bytes", bytes);
  row.Set("ours_us", best.timing.median_us)
      .Set("ours_low_us", best.timing.low_us)
      .Set("ours_high_us", best.timing.high_us)
      .Set("spread", Noise(best.timing));
  row.Set("limit_us", limit.timing.median_us).Set("limit_spread", Noise(limit.timing));
  row.Set("gb_s", gb_s(best)).Set("limit_gb_s", gb_s(limit));
  row.Set("of_limit", limit.timing.median_us / best.timing.median_us);
  row.Set("ours_stores", best.name).Set("limit_stores", limit.name);
  row.Set("preempted", int64_t{best.preempted}).Set("lower_s", kernels.lower_s);
  return row;
}

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, kernel|result|form, rows|count, ranks, ours|time, +-|100*%.0f%%|spread, "
      "GB/s|%.1f|gb_s, stream GB/s|%.1f|limit_gb_s, of stream|ratio|of_limit");
}

absl::StatusOr<int> VectorBytes() {
  int bytes = 0;
  RETURN_IF_ERROR(RunWorld({.ranks = 1}, [&](Rank& rank) {
    bytes = rank.topology().vector_bytes;
    return absl::OkStatus();
  }));
  return bytes;
}

absl::StatusOr<Row> MeasureOn(int ranks, const KernelCase& c, int64_t rows, int vector_bytes,
                              Compiler& compiler) {
  ASSIGN_OR_RETURN(const CompiledKernels kernels,
                   CompileCase(c, rows, ranks, vector_bytes, compiler));
  const RoundTerms terms{.seconds = IsQuick() ? 0.05 : absl::GetFlag(FLAGS_seconds)};
  const double load = LoadAverage();
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Row mine, MeasureKernel(rank, c, rows, kernels, terms));
    if (rank.rank() == 0) row = std::move(mine);
    return absl::OkStatus();
  }));
  AddMachine(row.Set("load_before", load));
  return row;
}

absl::Status RunAll() {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  const std::vector<KernelCase> cases = KernelCases(IsQuick());
  for (const std::string& name : wanted) {
    if (absl::c_none_of(cases, [&](const KernelCase& c) { return c.name == name; }))
      return absl::InvalidArgumentError(absl::StrCat("--case=", name, ": no such case"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = folder->path()}));
  ASSIGN_OR_RETURN(const int vector_bytes, VectorBytes());
  std::vector<Row> rows;
  for (const KernelCase& c : cases) {
    if (!wanted.empty() && !absl::c_linear_search(wanted, c.name)) continue;
    for (const int64_t size : c.rows) {
      for (const int ranks : c.ranks) {
        absl::StatusOr<Row> row = MeasureOn(ranks, c, size, vector_bytes, *compiler);
        if (!row.ok()) {
          Row failed;
          failed.Set("case", c.name).Set("form", c.form).Set("ranks", int64_t{ranks});
          failed.Set("rows", size).Set("error", std::string(row.status().message()));
          row = std::move(failed);
        }
        rows.push_back(*std::move(row));
      }
    }
  }
  return Show(rows, Columns());
}

const Registered kBenchmark(
    {.name = "kernels",
     .usage = "measures loads and stores of generated kernels; see bench/README.md\n\n  kernels "
              "[--case=bias,odd] [--seconds=1] [--quick] [--json=FILE] [--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
