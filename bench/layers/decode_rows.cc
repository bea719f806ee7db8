#include "bench/layers/decode.h"

#include <algorithm>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"

ABSL_FLAG(
    std::string, peer, "",
    "of decode: a shared object with an AllReduce, as bench/baselines/peer_reduce.h describes it");

namespace coconet::bench {
namespace {

/// The baseline in its fastest form.
const Finding& BaselineOf(const std::vector<Finding>& found) {
  const Finding* fastest = nullptr;
  for (absl::string_view form : {"as_lies", "packed", "packed_f32"}) {
    const Finding* const of_form = FastestOf(found, form);
    const bool is_better =
        of_form != nullptr &&
        (fastest == nullptr || of_form->timing.median_us < fastest->timing.median_us);
    if (is_better) fastest = of_form;
  }
  return *fastest;
}

absl::Status Measure(const DecodeCase& c, int ranks, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(
      const SettingFindings best,
      RunWithBestSetting(ranks, Arguments(c), scratch, [](const std::vector<Finding>& found) {
        return BaselineOf(found).timing.median_us;
      }));
  const Finding& baseline = BaselineOf(best.found);
  SetTime(row, "baseline", baseline.timing);
  row.Set("baseline_form", baseline.side).Set("multiplies", FactOf(best.found, "form"));
  for (absl::string_view side : {"ours", "stream", "peak", "reduce", "mpi_reduce"})
    SetTime(row, side, FastestOf(best.found, side)->timing);
  const double ours_us = row.Number("ours_us"),
               bound_us = std::max(row.Number("stream_us"), row.Number("peak_us"));
  row.Set("rounds", FastestOf(best.found, "ours")->timing.samples);
  row.Set("variant", FactOf(best.found, "variant")).Set("copies", CountOf(best.found, "copies"));
  if (c.from_memory) {
    const double bytes = static_cast<double>(c.hidden * c.hidden) * SizeOf(c.dtype);
    row.Set("rotated_mib", bytes * row.Number("copies") / (1 << 20));
  }
  row.Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("ratio", baseline.timing.median_us / ours_us);
  row.Set("reduce_ratio", row.Number("mpi_reduce_us") / row.Number("reduce_us"));
  if (c.peer.empty()) {
    row.Set("peer", "absent");
  } else {
    SetTime(row, "peer_reduce", FastestOf(best.found, "peer_reduce")->timing);
    row.Set("peer", c.peer);
    row.Set("peer_ratio", row.Number("peer_reduce_us") / row.Number("reduce_us"));
  }
  row.Set("mpi_setting", best.setting);
  return absl::OkStatus();
}

}  // namespace

std::vector<DecodeCase> DecodeCases(DType dtype) {
  std::vector<DecodeCase> cases;
  for (bool from_memory : {true, false}) {
    for (int64_t tokens : {1, 4, 16}) {
      const int64_t hidden = from_memory && !IsQuick() ? 4096 : 512;
      cases.push_back({.dtype = dtype,
                       .tokens = tokens,
                       .hidden = hidden,
                       .from_memory = from_memory && !IsQuick(),
                       .seconds = IsQuick() ? 0.2 : 3,
                       .budget_s = TuningBudget(/*usual=*/12, /*quick=*/3),
                       .peer = Resolve(absl::GetFlag(FLAGS_peer))});
    }
  }
  return cases;
}

absl::StatusOr<Row> DecodeRow(const DecodeCase& c, int ranks, const std::string& scratch) {
  Row row;
  row.Set("case", "decode").Set("ranks", int64_t{ranks}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat("H=", c.hidden, ", ", c.tokens, c.tokens == 1 ? " token" : " tokens",
                               c.from_memory ? "" : ", in cache"));
  row.Set("tokens", c.tokens).Set("hidden", c.hidden).Set("from_memory", c.from_memory);
  row.Set("budget_s", c.budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  const absl::Status status = Measure(c, ranks, scratch, row);
  if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
  if (!status.ok()) row.Set("error", std::string(status.message()));
  std::vector<Bar> bars = {{"ratio", Bar::Side::kAtLeast, c.from_memory ? 1 : 1.2}};
  if (c.from_memory) bars.push_back({"of_bound", Bar::Side::kAtLeast, 0.85});
  if (c.tokens * c.hidden * 4 == 8192 && ranks == 2) {
    bars.push_back({"reduce_ratio", Bar::Side::kAtLeast, 1.5});
    if (!c.peer.empty()) bars.push_back({"peer_ratio", Bar::Side::kAtLeast, 1});
  }
  if (!IsQuick()) row.SetBars(bars);
  return row;
}

}  // namespace coconet::bench
