#include "bench/optimizers/compare.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/harness/tuned_contender.h"
#include "bench/optimizers/baseline.h"
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
  std::vector<std::unique_ptr<Baseline>> baselines;
  std::vector<Contender> limit;
};

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
    const bool shares = field.ours != nullptr && !cell.list.empty();
    const StepTensors shared = shares ? field.ours->tensors() : StepTensors();
    ASSIGN_OR_RETURN(field.baselines,
                     MakeBaselines(cell, sides.form, rank.size(), shares ? &shared : nullptr));
  }
  if (sides.limit && cell.n >= kLimitFrom) {
    ASSIGN_OR_RETURN(field.limit, MemoryLimit(cell, rank.size()));
  }
  return field;
}

/// Weights to compare: all of a small tensor, a sample of a large one.
std::vector<std::vector<double>> SamplesOf(const Cell& cell, const std::vector<void*>& weights) {
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
  if (field.flat != nullptr) RETURN_IF_ERROR(field.flat->Begin(rank.rank()));
  if (field.ours != nullptr) {
    RETURN_IF_ERROR(field.ours->Begin(rank.rank()));
    RETURN_IF_ERROR(field.ours->Run(1));
    ours = SamplesOf(cell, field.ours->tensors().weights);
    // The baseline writes to our memory, where peers may still be storing.
    RETURN_IF_ERROR(rank.exchange().Barrier());
  }
  absl::Status alike;
  for (const auto& baseline : field.baselines) {
    baseline->Begin(rank.rank());
    RETURN_IF_ERROR(baseline->Run());
    if (field.ours == nullptr) continue;
    alike.Update(CheckWeights(cell, baseline->form(), ours, SamplesOf(cell, baseline->weights())));
  }
  return rank.exchange().Agree(alike);
}

}  // namespace

absl::StatusOr<std::vector<Finding>> Compare(Rank& rank, const SessionOptions& options,
                                             const Cell& cell, const Sides& sides,
                                             const RoundTerms& terms) {
  ASSIGN_OR_RETURN(const Field field, Line(rank, options, cell, sides));
  RETURN_IF_ERROR(CheckAlike(rank, cell, field));
  Contenders contenders(rank, options.budget_s);
  if (field.ours != nullptr) {
    const TunedProgram& program = field.ours->program();
    contenders.AddTuned(ContenderOf("ours", *field.ours), program.record());
    contenders.AddFact("threads", program.record().best.config.blocks * rank.size());
    contenders.AddFact("tuned", program.from_cache() ? "from the cache" : "here");
  }
  if (field.flat != nullptr)
    contenders.AddTuned(ContenderOf("flat", *field.flat), field.flat->program().record());
  for (const auto& baseline : field.baselines)
    contenders.AddStep("baseline", [it = baseline.get()] { return it->Run(); }, baseline->form());
  for (const Contender& limit : field.limit) contenders.Add(limit);
  return contenders.Measure(terms);
}

}  // namespace coconet::bench
