#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "coconet/ir/graph.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The value that element `index` of a tensor has in these benchmarks: between -1 and 1, determined
/// by the tensor's name, the index and, for Local tensors, the rank.
double NumberAt(absl::string_view tensor, int64_t index, int rank);

/// The value of element `index` of a tensor, on a rank.
using Numbers = std::function<double(absl::string_view tensor, int64_t index, int rank)>;

/// A program as Coconet runs it: tuned, on memory of the Session, filled with numbers. Scalars
/// are 1.
class TunedContender {
 public:
  /// Collective. `program` must be bound. `options.admits` may restrict its schedules. `written`:
  /// inputs, by their names in the program written out, in memory that `Written` reaches, too.
  static absl::StatusOr<std::unique_ptr<TunedContender>> Make(
      Rank& rank, const SessionOptions& options, const Graph& program,
      const Numbers& numbers = NumberAt, const std::vector<std::string>& written = {});

  absl::Status Run(int64_t steps);

  absl::StatusOr<std::vector<StepSpan>> Trace() { return bound_.Trace(); }
  /// Collective: all elements of an output, by its name in the program written out without lists.
  absl::StatusOr<std::vector<float>> Read(absl::string_view output) const;
  const TunedProgram& program() const { return program_; }
  /// This rank's elements of the k-th of the inputs that Make was told of.
  void* Written(size_t k) const { return written_[k].data(); }

 private:
  TunedContender(std::unique_ptr<Session> session, TunedProgram program,
                 std::vector<DeviceBuffer> written, BoundProgram bound)
      : session_(std::move(session)),
        program_(std::move(program)),
        written_(std::move(written)),
        bound_(std::move(bound)) {}
  absl::Status Fill(const Numbers& numbers);

  std::unique_ptr<Session> session_;
  TunedProgram program_;
  std::vector<DeviceBuffer> written_;
  BoundProgram bound_;  // destroyed before its buffers and its Session
};

/// Products that are steps of a plan, on memory of their own.
struct BoundProduct {
  std::vector<std::unique_ptr<Memory>> memory;
  std::unique_ptr<BoundPlan> plan;  // destroyed before its memory

  void* data(int buffer) const { return memory[buffer]->own(); }
};
/// The product of buffers 0, [m, k], and 1, [k, n], into buffer 2.
GemmStep ProductStep(DType dtype, int64_t m, int64_t n, int64_t k);
/// Collective. Binds the steps that do the product `whole`, over NumberAt's numbers.
absl::StatusOr<BoundProduct> BindProduct(Rank& rank, const GemmStep& whole,
                                         std::vector<Step> steps);

/// What a rank of a worker finds: the times of sides in the same rounds, and facts about them.
class Contenders {
 public:
  Contenders(Rank& rank, double budget_s) : rank_(rank) { options_.budget_s = budget_s; }
  Rank& rank() const { return rank_; }
  /// The options of the programs tuned from now on.
  SessionOptions& options() { return options_; }

  /// A side may be added in several forms.
  void Add(Contender contender) { contenders_.push_back(std::move(contender)); }
  /// Adds a side that `step`, which returns a status, runs one step of.
  template <class Step>
  void AddStep(std::string side, Step step, std::string form = {}) {
    Add(EachStep(std::move(side), std::move(step), std::move(form)));
  }
  /// Adds a side of ours, and what was picked as a fact "variant" of its name.
  void AddTuned(Contender ours, const TuningRecord& record);
  /// Collective. Tunes the program, among some of its schedules, and adds it.
  absl::Status Tune(absl::string_view side, const Graph& program, const Admits& admits = nullptr,
                    const Numbers& numbers = NumberAt);
  /// Adds a fact; `name` is the side that it is about, if there is one.
  void AddFact(absl::string_view fact, const absl::AlphaNum& detail, absl::string_view name = "");

  const std::vector<Contender>& timed() const { return contenders_; }  // all sides
  /// What Tune has tuned, and the last of it.
  const std::vector<std::unique_ptr<TunedContender>>& tuned() const { return tuned_; }
  TunedContender& last() const { return *tuned_.back(); }

  /// Collective. Returns the facts, and a time of each side and form.
  absl::StatusOr<std::vector<Finding>> Measure(const RoundTerms& terms) const;

 private:
  Rank& rank_;
  SessionOptions options_;
  std::vector<Contender> contenders_;
  std::vector<Finding> facts_;
  std::vector<std::unique_ptr<TunedContender>> tuned_;
};

}  // namespace coconet::bench
