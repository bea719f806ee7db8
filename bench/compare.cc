#include "bench/compare.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/adam_baseline.h"
#include "bench/memory_limit.h"
#include "bench/training.h"
#include "bench/tuned_adam.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// Everything that takes part, in memory at once.
struct Field {
  std::unique_ptr<Session> session;
  std::unique_ptr<TunedAdam> ours;
  std::vector<std::pair<BaselineForm, std::unique_ptr<AdamBaseline>>> baselines;
  std::unique_ptr<MemoryLimit> limit;
};

absl::StatusOr<Field> Line(Rank& rank, const SessionOptions& options, const Cell& cell, const Sides& sides) {
  Field field;
  if (sides.ours) {
    field.session = std::make_unique<Session>(rank, options);
    ASSIGN_OR_RETURN(field.ours, TunedAdam::Make(*field.session, cell.dtype, cell.n));
  }
  if (sides.baseline) {
    for (const BaselineForm form : FormsFor(cell.dtype)) {
      if (!sides.form.empty() && sides.form != Name(form)) continue;
      ASSIGN_OR_RETURN(std::unique_ptr<AdamBaseline> made, AdamBaseline::Make(form, cell.n, rank.size()));
      field.baselines.emplace_back(form, std::move(made));
    }
  }
  if (sides.limit && cell.n >= kLimitFrom) {
    ASSIGN_OR_RETURN(field.limit, MemoryLimit::Make(cell.dtype, cell.n, rank.size()));
  }
  return field;
}

/// Same start for all. The baseline reduces its gradient in place, so this is for the check only: later it grows until
/// it overflows, which costs the processor nothing (what would cost are denormals, and there are none).
absl::Status Begin(Rank& rank, const Cell& cell, const Field& field) {
  if (field.ours != nullptr) {
    FillGradient(cell.dtype, field.ours->gradient(), cell.n, rank.rank());
    RETURN_IF_ERROR(field.ours->SetWeights());
  }
  for (const auto& [form, baseline] : field.baselines) {
    FillGradient(cell.dtype, baseline->gradient(), cell.n, rank.rank());
    FillWeights(cell.dtype, baseline->weights(), cell.n);
    if (float* const master = baseline->master(); master != nullptr) {
      for (int64_t i = 0; i < cell.n; ++i) {
        master[i] = static_cast<float>(LoadElement(cell.dtype, baseline->weights(), i));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAlike(Rank& rank, const Cell& cell, const Field& field) {
  RETURN_IF_ERROR(Begin(rank, cell, field));
  absl::Status alike;
  if (field.ours != nullptr) {
    RETURN_IF_ERROR(field.ours->Run(1));
  }
  for (const auto& [form, baseline] : field.baselines) {
    RETURN_IF_ERROR(baseline->Run(1));
    if (field.ours == nullptr) continue;
    // A step of Adam is a handful of roundings; the orders of the sums and contraction differ.
    constexpr double kRoundings = 4;
    const double off = LargestDifference(cell.dtype, field.ours->weights(), baseline->weights(), cell.n);
    if (off > kRoundings) {
      alike.Update(
          absl::InternalError(absl::StrCat(Text(cell), ": after one step our weights differ from those of \"",
                                           Name(form), "\" by ", off, " roundings; want at most ", kRoundings)));
    }
  }
  return rank.exchange().Agree(alike);
}

std::vector<std::pair<absl::string_view, Contender>> Contenders(const Field& field) {
  std::vector<std::pair<absl::string_view, Contender>> all;
  if (field.ours != nullptr) {
    all.push_back({"ours", {"", [&ours = *field.ours](int64_t steps) { return ours.Run(steps); }}});
  }
  for (const auto& [form, baseline] : field.baselines) {
    all.push_back({"baseline", {std::string(Name(form)), [&it = *baseline](int64_t steps) { return it.Run(steps); }}});
  }
  if (field.limit != nullptr) {
    for (Contender& contender : field.limit->contenders()) all.push_back({"limit", std::move(contender)});
  }
  return all;
}

std::vector<Finding> Facts(const Cell& cell, const TunedProgram& program) {
  const VariantResult& best = program.record().best;
  const auto fact = [&](absl::string_view name, std::string detail) {
    return Finding{.side = std::string(name), .cell = cell, .detail = std::move(detail)};
  };
  return {fact("variant", Words(best)), fact("threads", absl::StrCat(best.config.blocks)),
          fact("tuned", program.from_cache() ? "from the cache" : "here")};
}

}  // namespace

absl::StatusOr<std::vector<Finding>> Compare(Rank& rank, const SessionOptions& options, const Cell& cell,
                                             const Sides& sides, const RoundTerms& terms) {
  ASSIGN_OR_RETURN(const Field field, Line(rank, options, cell, sides));
  RETURN_IF_ERROR(CheckAlike(rank, cell, field));
  std::vector<absl::string_view> side;
  std::vector<Contender> contenders;
  for (auto& [name, contender] : Contenders(field)) {
    side.push_back(name);
    contenders.push_back(std::move(contender));
  }
  ASSIGN_OR_RETURN(const std::vector<Measured> measured, MeasureInRounds(rank, contenders, terms));
  std::vector<Finding> findings;
  for (size_t i = 0; i < measured.size(); ++i) {
    findings.push_back({.side = std::string(side[i]),
                        .cell = cell,
                        .name = measured[i].name,
                        .timing = measured[i].timing,
                        .steps = measured[i].steps,
                        .preempted = measured[i].preempted});
  }
  if (field.ours != nullptr) {
    for (Finding& fact : Facts(cell, field.ours->program())) findings.push_back(std::move(fact));
  }
  return findings;
}

}  // namespace coconet::bench
