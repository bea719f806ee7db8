#include "bench/probe/probe_result.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/store/wire.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// The fields in the order in which they are sent.
template <class Wire, class Kernel>
void PassKernel(Wire& wire, Kernel& k) {
  wire.Fields(k.label, k.blocks, k.threads, k.has_footprint, k.registers, k.resident_blocks,
              k.shared_bytes, k.stack_bytes);
}
template <class Wire, class Result>
void PassResult(Wire& wire, Result& r) {
  wire.Fields(r.line, r.text, r.schedule, r.trace, r.config, r.protocol, r.ranks, r.device, r.note,
              r.verified, r.us, r.low_us, r.high_us, r.samples, r.bytes, r.copy_gb_s, r.flops,
              r.error);
}

double SpreadOf(const ProbeResult& r) { return r.us > 0 ? 50 * (r.high_us - r.low_us) / r.us : 0; }

/// The numbers of the kernels that have one, "64+32"; "" where none has.
std::string Joined(const ProbeResult& r, std::string (*text)(const ProbedKernel&)) {
  std::vector<std::string> texts;
  bool any = false;
  for (const ProbedKernel& k : r.kernels) {
    any = any || k.has_footprint;
    texts.push_back(k.has_footprint ? text(k) : "?");
  }
  return any ? absl::StrJoin(texts, "+") : "";
}

std::string ShapesOf(const ProbeResult& r) {
  return absl::StrJoin(r.kernels, "+", [](std::string* out, const ProbedKernel& k) {
    absl::StrAppend(out, k.blocks, "x", k.threads);
  });
}

JsonText KernelsJson(const ProbeResult& r) {
  std::vector<JsonText> kernels;
  for (const ProbedKernel& k : r.kernels) {
    JsonObject object;
    object.Set("kernel", k.label)
        .Set("blocks", int64_t{k.blocks})
        .Set("threads", int64_t{k.threads});
    if (k.has_footprint) {
      object.Set("registers", int64_t{k.registers})
          .Set("resident_blocks", int64_t{k.resident_blocks})
          .Set("shared_bytes", k.shared_bytes)
          .Set("stack_bytes", k.stack_bytes);
    }
    kernels.push_back(object.Text());
  }
  return JsonList(kernels);
}

JsonText LaunchesJson(const ProbeResult& r) {
  std::vector<JsonText> launches;
  for (const auto& [label, us] : r.launches_us)
    launches.push_back(JsonObject().Set("launch", label).Set("us", us).Text());
  return JsonList(launches);
}

/// With one digit; "" for 0.
std::string NumberOf(const Row& row, absl::string_view field, absl::string_view unit = "") {
  const double number = row.Number(field);
  return number == 0 ? "" : absl::StrFormat("%.1f%s", number, unit);
}

}  // namespace

std::string Encode(const ProbeResult& result) {
  Packer out;
  PassResult(out, result);
  out.Int(static_cast<int64_t>(result.kernels.size()));
  for (const ProbedKernel& kernel : result.kernels) PassKernel(out, kernel);
  out.Int(static_cast<int64_t>(result.launches_us.size()));
  for (const auto& [label, us] : result.launches_us) out.Text(label).Real(us);
  return out.bytes();
}

absl::StatusOr<ProbeResult> DecodeProbeResult(absl::string_view bytes) {
  Unpacker in(bytes);
  ProbeResult result;
  PassResult(in, result);
  for (int64_t left = in.Int(); left > 0 && left < 1 << 20; --left)
    PassKernel(in, result.kernels.emplace_back());
  for (int64_t left = in.Int(); left > 0 && left < 1 << 20; --left) {
    std::string label = in.Text();
    result.launches_us.emplace_back(std::move(label), in.Real());
  }
  RETURN_IF_ERROR(in.Done());
  return result;
}

Row RowOf(const ProbeResult& r) {
  Row row;
  row.Set("line", int64_t{r.line}).Set("text", r.text).Set("ranks", int64_t{r.ranks});
  if (!r.error.empty()) return row.Set("error", r.error);
  row.Set("schedule", r.schedule)
      .Set("trace", r.trace)
      .Set("config", r.config)
      .Set("protocol", r.protocol)
      .Set("device", r.device)
      .Set("note", r.note)
      .Set("verified", r.verified.empty() ? JsonValue(nullptr) : JsonValue(r.verified));
  row.Set("us", r.us)
      .Set("low_us", r.low_us)
      .Set("high_us", r.high_us)
      .Set("spread_percent", SpreadOf(r))
      .Set("rounds", int64_t{r.samples});
  if (r.bytes > 0) row.Set("bytes", r.bytes).Set("gb_s", r.gb_s());
  if (r.copy_gb_s > 0) row.Set("copy_gb_s", r.copy_gb_s).Set("of_copy", r.of_copy());
  if (r.flops > 0) row.Set("tflop_s", 1e-6 * r.flops / r.us);
  row.Set("shapes", ShapesOf(r));
  row.Set("registers", Joined(r, [](const ProbedKernel& k) { return absl::StrCat(k.registers); }))
      .Set("resident_blocks",
           Joined(r, [](const ProbedKernel& k) { return absl::StrCat(k.resident_blocks); }))
      .Set("shared_bytes",
           Joined(r, [](const ProbedKernel& k) { return absl::StrCat(k.shared_bytes); }));
  return row.Set("kernels", KernelsJson(r)).Set("launches", LaunchesJson(r));
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

std::string Summary(const ProbeResult& r) {
  if (!r.error.empty()) return absl::StrCat("line ", r.line, ": FAILED: ", r.error);
  return absl::StrCat(
      "line ", r.line, ": ", TimeText(r.us), absl::StrFormat(" +- %.1f %%", SpreadOf(r)),
      r.bytes > 0 ? absl::StrFormat(", %.1f GB/s", r.gb_s()) : "",
      r.copy_gb_s > 0 && r.bytes > 0 ? absl::StrFormat(", %.2f of a copy", r.of_copy()) : "");
}

}  // namespace coconet::bench
