// Prints how fast generated kernels load and store, beside plain streams of the same bytes.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/statistics.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "jit/lower/lower.h"
#include "runtime/node/cpu.h"
#include "runtime/rank.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "bias, column, odd, rowfold, strided, gather, scalars; default: all");
ABSL_FLAG(double, seconds, 1, "for each row");

namespace coconet::bench {
namespace {

constexpr int64_t kCached = 256, kLarge = 16384;  // rows of 4 KiB
constexpr int64_t kTable = 4096;                  // rows that indices may name

/// A generated kernel to measure, and the plain streams that move as many bytes. In texts C stands
/// for `length`, and T for the dtype.
struct KernelCase {
  std::string name;                               // of a family, as --case has it: "bias"
  std::string form;                               // which of the family: "T[N, C] + T[C]"
  std::string statements;                         // of a .coco program; N is the number of rows
  int64_t length = 0;                             // of a row
  int loads = 1, stores = 1;                      // streams of the plain loop (PlainStream)
  std::vector<int64_t> rows = {kCached, kLarge};  // sizes to measure
  std::vector<int> ranks = {1, 2};
  int64_t on_rank = length;  // elements of a row that a rank has
  DType dtype = DType::kF32;

  std::string In(absl::string_view text) const {
    return absl::StrReplaceAll(text, {{"C", absl::StrCat(length)}, {"T", Name(dtype)}});
  }
  /// The bytes of a row of one stream.
  int64_t row_bytes() const { return on_rank * static_cast<int64_t>(SizeOf(dtype)); }
};

/// The largest tensor has 1 MiB (a cache holds it) or 64 MiB (none does); `quick`: small ones only.
std::vector<KernelCase> KernelCases(bool quick) {
  const std::string x = "input x : T[N, C] local\n";
  const std::string bias = x + "input b : T[C] replicated\noutput y = x + b\n";
  const std::string column = x + "input s : T[N, 1] replicated\noutput y = x * s\n";
  const std::string sliced = "input x : T[N, C] sliced(1)\noutput y = x * 0.5 + 1\n";
  const std::string gather =
      "input t : T[4096, C] local\ninput i : i32[N] local\noutput y = gather(t, i, 0)\n";
  // Adam's step with the bias corrections that each block computes, without communication.
  const std::string adam =
      "input g : T[N, C] local\n"
      "state p : T[N, C] local\n"
      "state m : T[N, C] local\n"
      "state v : T[N, C] local\n"
      "input lr : f32[] replicated\n"
      "input step : f64[] replicated\n"
      "c1 = cast(f32, 1 / (1 - pow(const(0.9, f64), step)))\n"
      "c2 = cast(f32, 1 / (1 - pow(const(0.999, f64), step)))\n"
      "m1 = update(m, 0.9 * m + 0.1 * g)\n"
      "v1 = update(v, 0.999 * v + 0.001 * (g * g))\n"
      "update(p, p - lr * c1 * m1 / (sqrt(v1 * c2) + 1e-08))\n";
  std::vector<KernelCase> cases = {
      {"bias", "T[N, C] + T[C]", bias, 1024},
      {"odd", "T[N, C] + T[C]", bias, 1023},
      {"column", "T[N, C] * T[N, 1]", column, 1024},
      {"column", "T[N, C] * T[N, 1]", column, 1023},
      {"odd", "T[N, C] alone", x + "output y = x * 0.5 + 1\n", 1023},
      {"odd", "T[N, C] sliced(1)", sliced, 1023, 1, 1, {kCached, kLarge}, {2}, 512},
  };
  for (const std::string call : {"softmax(x)", "rms_norm(x, 1e-06)"}) {
    for (const int64_t length : {1024, 1023})
      cases.push_back({"rowfold", call + " of T[N, C]", x + "output y = " + call + "\n", length});
  }
  for (const int64_t length : {1024, 1023}) {
    cases.push_back(
        {"strided", "sum(x, 0) of T[N, C]", x + "output y = sum(x, 0)\n", length, 1, 0});
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t length : {64, 128}) {
      KernelCase& c = cases.emplace_back(
          KernelCase{"gather", "rows of T[4096, C]", gather, length, 1, 1, {kTable, 16 * kTable}});
      c.dtype = dtype;
    }
  }
  cases.push_back({"scalars", "Adam over T[N, C]", adam, 1024, 4, 3, {2, 64, kLarge}});
  for (KernelCase& c : cases) c.rows.resize(quick ? 1 : c.rows.size());
  return cases;
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

/// Numbers from 0.5 to 1, so that nothing overflows or becomes denormal; rows at random for "i".
double NumberFor(absl::string_view tensor, int64_t index, int rank) {
  const double number = NumberAt(tensor, index, rank);
  return tensor == "i" ? std::floor((1 + number) / 2 * kTable) : 0.75 + number / 4;
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
  constexpr int64_t kBytes = 32 * sizeof(float);  // of a stream that a turn of the loop takes
  const int64_t bytes = (rows * c.row_bytes() + kBytes - 1) / kBytes * kBytes;
  s.elements = bytes / static_cast<int64_t>(sizeof(float));
  // As a step updates its states, the last streams that are loaded are stored, too.
  const bool in_place = c.stores > 1;
  const int count = in_place ? c.loads : c.loads + c.stores;
  for (int k = 0; k < count; ++k) {
    ASSIGN_OR_RETURN(s.arrays.emplace_back(), Array::Allocate(bytes));
  }
  for (int k = 0; k < c.loads; ++k) s.streams.from[k] = s.arrays[k].as<float>();
  for (int k = 0; k < c.stores; ++k) s.streams.to[k] = s.arrays[count - c.stores + k].as<float>();
  return s;
}

/// Collective: every rank runs the kernel on memory of its own, in the same rounds as plain streams
/// of the same bytes, each with plain and with streaming stores, of which the faster counts. Sets
/// on rank 0, besides the common fields, "gb_s" and "limit_gb_s" of all ranks together, "spread"
/// and "limit_spread", "ours_stores" and "limit_stores".
absl::Status MeasureKernel(Rank& rank, const KernelCase& c, int64_t rows, const Graph& program,
                           const std::string& schedule, Config config, Row& row) {
  std::vector<std::unique_ptr<TunedContender>> ours;
  std::vector<Contender> contenders;
  for (const Streaming streaming : {Streaming::kNone, Streaming::kAll}) {
    const bool is_plain = streaming == Streaming::kNone;
    if (!is_plain && c.stores == 0) continue;
    config.streaming = streaming;
    SessionOptions options;
    options.cache_file = ":none:";
    options.policy = Policy::kBaselineOnMiss;  // compiled and verified, not tuned
    options.choice = {schedule, Text(config)};
    ASSIGN_OR_RETURN(ours.emplace_back(), TunedContender::Make(rank, options, program, NumberFor));
    contenders.push_back(ContenderOf("ours", *ours.back(), is_plain ? "plain" : "streaming"));
  }
  ASSIGN_OR_RETURN(const Streams streams, MakeStreams(c, rows));
  const auto add_limit = [&](Kernels::Streams loop, const char* stores) {
    const auto run = [&streams, loop] {
      [[maybe_unused]] const volatile float total = loop(streams.streams, streams.elements);
      return absl::OkStatus();
    };
    contenders.push_back(EachStep("limit", run, stores));
  };
  add_limit(BestKernels().stream_plain, "plain");
  if (c.stores > 0) add_limit(BestKernels().stream_streaming, "streaming");
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, contenders,
                                   {.seconds = IsQuick() ? 0.05 : absl::GetFlag(FLAGS_seconds)}));
  if (rank.rank() != 0) return absl::OkStatus();
  const Finding &best = *FastestOf(measured, "ours"), &limit = *FastestOf(measured, "limit");
  const int64_t bytes = rank.size() * rows * c.row_bytes() * (c.loads + c.stores);
  const double us = best.timing.median_us, limit_us = limit.timing.median_us;
  row.Set("dtype", std::string(Name(c.dtype))).Set("bytes", bytes);
  SetTime(row, "ours", best.timing);
  row.Set("spread", Noise(best.timing));
  row.Set("limit_us", limit_us).Set("limit_spread", Noise(limit.timing));
  row.Set("gb_s", 1e-3 * static_cast<double>(bytes) / us);
  row.Set("limit_gb_s", 1e-3 * static_cast<double>(bytes) / limit_us);
  row.Set("of_limit", limit_us / us);
  row.Set("ours_stores", best.name).Set("limit_stores", limit.name);
  row.Set("preempted", best.preempted);
  return absl::OkStatus();
}

absl::Status MeasureOn(int ranks, const KernelCase& c, int64_t rows, Row& row) {
  const std::string text = absl::StrCat("program ", c.name, "\n", c.In(c.statements));
  ASSIGN_OR_RETURN(const Graph program, BoundText(text, c.dtype, {{"N", rows}}));
  // As the tuner has it on hosts.
  const Config config{
      .protocol = Protocol::kGenerated, .vec = ThisCpu().vector_bytes / 4, .chunk = 4096};
  ASSIGN_OR_RETURN(const Schedule schedule, MostFused(program, config, ranks));
  const double begin_s = SecondsNow();
  RETURN_IF_ERROR(Lower(schedule, config, ranks).status());
  const double lower_s = SecondsNow() - begin_s;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) {
    return MeasureKernel(rank, c, rows, program, TraceText(schedule.trace()), config, row);
  }));
  row.Set("lower_s", lower_s);
  return absl::OkStatus();
}

absl::Status RunAll() {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  const std::vector<KernelCase> cases = KernelCases(IsQuick());
  std::vector<RowTask> tasks;
  for (const KernelCase& c : cases) {
    if (!wanted.empty() && !absl::c_linear_search(wanted, c.name)) continue;
    for (const int64_t size : c.rows) {
      for (const int ranks : c.ranks) {
        const std::string form = c.In(c.form);
        RowTask& task = tasks.emplace_back();
        task.words = absl::StrCat(c.name, ": ", form, " of ", size, " rows on ", ranks, " ranks");
        task.row.Set("case", c.name).Set("form", form).Set("ranks", ranks).Set("rows", size);
        task.measure = [&c, size, ranks](const std::string& /*scratch*/, Row& row) {
          return MeasureOn(ranks, c, size, row);
        };
      }
    }
  }
  return MeasureRows(
      tasks,
      ColumnsOf("case, kernel|result|form, rows|count, ranks, ours|time, +-|100*%.0f%%|spread, "
                "GB/s|%.1f|gb_s, stream GB/s|%.1f|limit_gb_s, of stream|ratio|of_limit"));
}

const Registered kBenchmark({.name = "kernels",
                             .purpose = "measures loads and stores of generated kernels",
                             .heeds = {"quick"},
                             .words = {{"case",
                                        "bias, column, odd, rowfold, strided, gather, scalars"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
