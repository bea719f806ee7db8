#include "bench/optimizers/compare.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/optimizers/baseline.h"
#include "bench/optimizers/memory_limit.h"
#include "bench/optimizers/training.h"
#include "bench/optimizers/tuned_step.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {
namespace {

/// All contenders, in memory at once.
struct Field {
  std::unique_ptr<Session> session, flat_session;
  std::unique_ptr<TunedStep> ours, flat;
  std::vector<NamedBaseline> baselines;
  std::unique_ptr<MemoryLimit> limit;
};

/// The tensors of ours that the baseline uses; nullopt where it has its own.
std::optional<StepTensors> SharedBy(const Cell& cell, const TunedStep* ours) {
  if (cell.list.empty() || ours == nullptr) return std::nullopt;
  StepTensors shared;
  for (const DeviceBuffer& gradient : ours->gradients())
    shared.gradients.push_back(static_cast<float*>(gradient.data()));
  for (const DeviceBuffer& weights : ours->weights())
    shared.weights.push_back(static_cast<float*>(weights.data()));
  return shared;
}

/// Adds ours over one flat tensor, with the schedule that is best for the list; only its numbers
/// are tuned.
absl::Status LineFlat(Rank& rank, const SessionOptions& options, const Cell& cell, Field& field) {
  ASSIGN_OR_RETURN(const TunedProgram list, TunedStep::Compile(*field.session, cell));
  SessionOptions same = options;
  same.policy = Policy::kTune;
  same.admits = [schedule = list.record().best.schedule](const Schedule& s, const Config&) {
    return Describe(s) == schedule;
  };
  field.flat_session = std::make_unique<Session>(rank, same);
  ASSIGN_OR_RETURN(field.flat, TunedStep::Make(*field.flat_session, Flat(cell)));
  return absl::OkStatus();
}

absl::StatusOr<Field> Line(Rank& rank, const SessionOptions& options, const Cell& cell,
                           const Sides& sides) {
  Field field;
  if (sides.ours || sides.flat) field.session = std::make_unique<Session>(rank, options);
  if (sides.flat)
    RETURN_IF_ERROR(LineFlat(rank, options, cell, field));  // tunes: before other memory is used
  if (sides.ours) {
    ASSIGN_OR_RETURN(field.ours, TunedStep::Make(*field.session, cell));
  }
  if (sides.baseline) {
    const std::optional<StepTensors> shared = SharedBy(cell, field.ours.get());
    ASSIGN_OR_RETURN(field.baselines, MakeBaselines(cell, sides.form, rank.size(),
                                                    shared.has_value() ? &*shared : nullptr));
  }
  if (sides.limit && cell.n >= kLimitFrom) {
    ASSIGN_OR_RETURN(field.limit, MemoryLimit::Make(cell, rank.size()));
  }
  return field;
}

/// Weights to compare: all of a small tensor, a sample of a large one.
std::vector<std::vector<double>> SamplesOf(const Cell& cell,
                                           absl::Span<const void* const> weights) {
  constexpr int64_t kMost = int64_t{1} << 16;
  const std::vector<int64_t> sizes = TensorSizes(cell);
  std::vector<std::vector<double>> samples(sizes.size());
  for (size_t t = 0; t < sizes.size(); ++t) {
    const int64_t stride = (sizes[t] / kMost) | 1;  // odd, so that it meets all lanes of a vector
    for (int64_t i = 0; i < sizes[t]; i += stride)
      samples[t].push_back(LoadElement(cell.dtype, weights[t], i).real());
  }
  return samples;
}

absl::Status CheckWeights(const Cell& cell, absl::string_view form,
                          const std::vector<std::vector<double>>& ours,
                          const std::vector<std::vector<double>>& theirs) {
  // A step has a few roundings; the sides differ in the order of sums and in contraction.
  constexpr double kRoundings = 4;
  for (size_t t = 0; t < ours.size(); ++t) {
    const double off = LargestDifference(cell.dtype, ours[t], theirs[t]);
    if (off <= kRoundings) continue;
    return absl::InternalError(absl::StrCat(Text(cell), ": after one step our weights of tensor ",
                                            t, " differ from those of \"", form, "\" by ", off,
                                            " roundings; want at most ", kRoundings));
  }
  return absl::OkStatus();
}

/// Runs a step of each side from the same start, one side after the other, because they
/// may share memory.
absl::Status CheckAlike(Rank& rank, const Cell& cell, const Field& field) {
  std::vector<std::vector<double>> ours;
  if (field.flat != nullptr) {
    RETURN_IF_ERROR(field.flat->Begin(rank.rank()));
  }
  if (field.ours != nullptr) {
    RETURN_IF_ERROR(field.ours->Begin(rank.rank()));
    RETURN_IF_ERROR(field.ours->Run(1));
    std::vector<const void*> weights;
    for (const DeviceBuffer& buffer : field.ours->weights()) weights.push_back(buffer.data());
    ours = SamplesOf(cell, weights);
    // The baseline writes to our memory, where peers may still be storing.
    RETURN_IF_ERROR(rank.exchange().Barrier());
  }
  absl::Status alike;
  for (const auto& [form, baseline] : field.baselines) {
    baseline->Begin(rank.rank());
    RETURN_IF_ERROR(baseline->Run(1));
    if (field.ours != nullptr)
      alike.Update(CheckWeights(cell, form, ours, SamplesOf(cell, baseline->weights())));
  }
  return rank.exchange().Agree(alike);
}

std::vector<std::pair<absl::string_view, Contender>> Contenders(const Field& field) {
  std::vector<std::pair<absl::string_view, Contender>> all;
  if (field.ours != nullptr) {
    all.push_back({"ours", {"", [&ours = *field.ours](int64_t steps) { return ours.Run(steps); }}});
  }
  if (field.flat != nullptr) {
    all.push_back({"flat", {"", [&flat = *field.flat](int64_t steps) { return flat.Run(steps); }}});
  }
  for (const auto& [form, baseline] : field.baselines) {
    all.push_back({"baseline", {form, [&it = *baseline](int64_t steps) { return it.Run(steps); }}});
  }
  if (field.limit != nullptr) {
    for (Contender& contender : field.limit->contenders())
      all.push_back({"limit", std::move(contender)});
  }
  return all;
}

std::vector<Finding> Facts(const Cell& cell, const TunedProgram& program) {
  const VariantResult& best = program.record().best;
  const auto fact = [&](absl::string_view name, std::string detail) {
    return Finding{.side = std::string(name), .of = Text(cell), .detail = std::move(detail)};
  };
  return {fact("variant", Words(best)), fact("threads", absl::StrCat(best.config.blocks)),
          fact("tuned", program.from_cache() ? "from the cache" : "here")};
}

}  // namespace

absl::StatusOr<std::vector<Finding>> Compare(Rank& rank, const SessionOptions& options,
                                             const Cell& cell, const Sides& sides,
                                             const RoundTerms& terms) {
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
                        .of = Text(cell),
                        .name = measured[i].name,
                        .timing = measured[i].timing,
                        .steps = measured[i].steps,
                        .preempted = measured[i].preempted});
  }
  if (field.ours != nullptr) {
    for (Finding& fact : Facts(cell, field.ours->program())) findings.push_back(std::move(fact));
  }
  if (field.flat != nullptr) {
    findings.push_back({.side = "flat variant",
                        .of = Text(cell),
                        .detail = Words(field.flat->program().record().best)});
  }
  return findings;
}

}  // namespace coconet::bench
