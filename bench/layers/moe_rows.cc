#include "bench/layers/moe_rows.h"

#include "absl/strings/str_cat.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

absl::Status Measure(const MoeCase& c, const std::string& scratch, Row& row) {
  MoeCase parts = c;
  parts.parts_only = true;
  ASSIGN_OR_RETURN(const std::vector<Finding> found,
                   MeasureOnTwoNodes(Arguments(parts), Arguments(c), scratch, "moe", row));
  row.Set("capacity", CountOf(found, "capacity")).Set("imbalance", NumberOf(found, "imbalance"));
  return absl::OkStatus();
}

}  // namespace

std::vector<MoeCase> MoeCases(DType dtype) {
  std::vector<MoeCase> cases;
  for (const auto& [experts, per_token, inner] :
       {std::tuple<int64_t, int64_t, int64_t>{8, 2, 1024}, {64, 6, 256}}) {
    if (IsQuick() && experts > 8) continue;
    for (double zipf : {0.0, 0.7}) {
      cases.push_back({.dtype = dtype,
                       .experts = experts,
                       .per_token = per_token,
                       .tokens = IsQuick() ? 32 : 512,
                       .hidden = IsQuick() ? 64 : 1024,
                       .inner = IsQuick() ? 64 : inner,
                       .zipf = zipf,
                       .seconds = IsQuick() ? 0.3 : 8,
                       .budget_s = TuningBudget(/*usual=*/60, /*quick=*/5)});
    }
  }
  return cases;
}

absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch) {
  Row row;
  row.Set("case", "moe").Set("ranks", int64_t{2}).Set("dtype", std::string(Name(c.dtype)));
  row.Set("what", absl::StrCat(c.experts, " experts, ", c.zipf == 0 ? "balanced" : "skewed"));
  row.Set("experts", c.experts).Set("per_token", c.per_token).Set("tokens", c.tokens);
  row.Set("hidden", c.hidden).Set("inner", c.inner).Set("zipf", c.zipf);
  row.Set("budget_s", c.budget_s).Set("load_before", LoadAverage());
  AddMachine(row);
  const absl::Status status = Measure(c, scratch, row);
  if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
  if (!status.ok()) row.Set("error", std::string(status.message()));
  if (!IsQuick()) row.SetBars({{"of_ceiling", Bar::Side::kAtLeast, 0.85}});
  return row;
}

}  // namespace coconet::bench
