#include "bench/probe/probe_row.h"

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/statistics.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "runtime/cuda/driver/cuda_module.h"

namespace coconet::bench {
namespace {

constexpr int kTraces = 9;

/// All fields of rows, in order. Others would not come back from Encode.
constexpr absl::string_view kFields[] = {
    "line",         "text",     "ranks",          "error",  "schedule",  "trace",
    "config",       "protocol", "device",         "note",   "verified",  "us",
    "low_us",       "high_us",  "spread_percent", "rounds", "bytes",     "gb_s",
    "copy_gb_s",    "of_copy",  "tflop_s",        "shapes", "registers", "resident_blocks",
    "shared_bytes", "kernels",  "launches"};

Row Begun(const ProbeLine& line, int ranks) {
  Row row;
  row.Set("line", int64_t{line.number}).Set("text", line.text).Set("ranks", int64_t{ranks});
  return row;
}

/// With one digit; "" for 0.
std::string NumberOf(const Row& row, absl::string_view field, absl::string_view unit = "") {
  const double number = row.Number(field);
  return number == 0 ? "" : absl::StrFormat("%.1f%s", number, unit);
}

}  // namespace

Row Failed(const ProbeLine& line, const absl::Status& why, int ranks) {
  return Begun(line, ranks).Set("error", std::string(why.message()));
}

Row RowOf(const ProbeLine& line, int ranks) {
  Row row = Begun(line, ranks);
  for (const char* field : {"schedule", "trace", "config", "protocol", "shapes", "registers",
                            "resident_blocks", "shared_bytes"})
    row.Set(field, "");
  for (const char* field : {"kernels", "launches"}) row.Set(field, JsonList({}));
  return row.Set("verified", JsonText{"null"});
}

std::string Encode(const Row& row) {
  Packer out;
  for (absl::string_view field : kFields) {
    const Value& value = row.Get(field);
    out.Int(static_cast<int64_t>(value.index()));
    std::visit(Match{[](std::nullptr_t) {}, [&](const JsonText& json) { out.Text(json.text); },
                     [&](const auto& other) { out.Fields(other); }},
               value);
  }
  return out.bytes();
}

absl::StatusOr<Row> DecodeRow(absl::string_view bytes) {
  Unpacker in(bytes);
  Row row;
  for (absl::string_view field : kFields) {
    const auto kind = static_cast<size_t>(in.Int());
    if (kind == Value(int64_t{}).index()) row.Set(field, in.Int());
    if (kind == Value(double{}).index()) row.Set(field, in.Real());
    if (kind == Value(std::string()).index()) row.Set(field, in.Text());
    if (kind == Value(JsonText()).index()) row.Set(field, JsonText{in.Text()});
  }
  RETURN_IF_ERROR(in.Done());
  return row;
}

absl::Status SetKernels(Row& row, const Plan& plan, const Module& module) {
  std::vector<std::string> shapes, registers, resident, shared;
  std::vector<JsonText> kernels;
  for (const Step& step : plan.steps) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    if (kernel == nullptr) continue;
    shapes.push_back(absl::StrCat(kernel->blocks, "x", kernel->threads));
    JsonObject object;
    object.Set("kernel", kernel->label)
        .Set("blocks", int64_t{kernel->blocks})
        .Set("threads", int64_t{kernel->threads});
    const absl::StatusOr<KernelFootprint> taken =
        FootprintOf(module, kernel->symbol, kernel->threads, kernel->shared_bytes);
    if (!absl::IsUnimplemented(taken.status())) {  // it is on a GPU
      RETURN_IF_ERROR(taken.status());
      registers.push_back(absl::StrCat(taken->registers));
      resident.push_back(absl::StrCat(taken->resident_blocks));
      shared.push_back(absl::StrCat(taken->shared_bytes));
      object.Set("registers", int64_t{taken->registers})
          .Set("resident_blocks", int64_t{taken->resident_blocks})
          .Set("shared_bytes", taken->shared_bytes)
          .Set("stack_bytes", taken->stack_bytes);
    }
    kernels.push_back(object.Text());
  }
  row.Set("shapes", absl::StrJoin(shapes, "+"))
      .Set("registers", absl::StrJoin(registers, "+"))
      .Set("resident_blocks", absl::StrJoin(resident, "+"))
      .Set("shared_bytes", absl::StrJoin(shared, "+"))
      .Set("kernels", JsonList(kernels));
  return absl::OkStatus();
}

absl::Status SetLaunches(Row& row, Rank& rank, BoundPlan& bound) {
  std::vector<std::vector<double>> times;
  std::vector<StepSpan> spans;
  for (int i = 0; i < (rank.topology().simulated ? 1 : kTraces); ++i) {
    RETURN_IF_ERROR(rank.exchange().Barrier());
    absl::StatusOr<std::vector<StepSpan>> traced = bound.Trace();
    const absl::Status all = rank.exchange().Agree(traced.status());
    if (absl::IsUnimplemented(all)) return absl::OkStatus();
    RETURN_IF_ERROR(all);
    spans = *std::move(traced);
    times.resize(spans.size());
    for (size_t s = 0; s < spans.size(); ++s)
      times[s].push_back(spans[s].end_us - spans[s].begin_us);
  }
  std::vector<JsonText> launches;
  for (size_t s = 0; s < spans.size(); ++s)
    launches.push_back(
        JsonObject().Set("launch", spans[s].label).Set("us", Median(times[s])).Text());
  row.Set("launches", JsonList(launches));
  return absl::OkStatus();
}

absl::Span<const Column> ProbeColumns() {
  static const auto& columns = *new std::vector<Column>(ColumnsOf(
      "line, step|time|us, +-|*, GB/s|*, of copy|ratio, TFLOP/s|*, blocks|text|shapes, "
      "registers, resident|text|resident_blocks, shared|text|shared_bytes, verified, config, "
      "schedule|result",
      {{"+-", [](const Row& row) { return NumberOf(row, "spread_percent", "%"); }},
       {"GB/s", [](const Row& row) { return NumberOf(row, "gb_s"); }},
       {"TFLOP/s", [](const Row& row) { return NumberOf(row, "tflop_s"); }}}));
  return columns;
}

std::string Summary(const Row& row) {
  const std::string line = absl::StrCat("line ", row.Number("line"), ": "),
                    error = TextOf(row, "error");
  if (!error.empty()) return absl::StrCat(line, "FAILED: ", error);
  const bool has_bytes = row.Number("bytes") > 0, has_copy = row.Number("copy_gb_s") > 0;
  return absl::StrCat(
      line, TimeText(row.Number("us")),
      absl::StrFormat(" +- %.1f %%", row.Number("spread_percent")),
      has_bytes ? absl::StrFormat(", %.1f GB/s", row.Number("gb_s")) : "",
      has_bytes && has_copy ? absl::StrFormat(", %.2f of a copy", row.Number("of_copy")) : "");
}

}  // namespace coconet::bench
