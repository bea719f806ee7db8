#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/tensors.h"
#include "autotune/measure/test_data.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"
#include "runtime/rank.h"

namespace coconet {

/// The error of a value, in units of its bound; above 1 the value is wrong.
double Excess(const Number& have, const Number& want, double error);

/// A program's results on TestData by the interpreter, for the elements that one rank checks; each
/// is computed once however many variants are checked. The ranks divide the work: a rank checks the
/// elements that it holds of Local and Sliced results, and its share of Replicated ones, which the
/// verifier compares bit by bit between ranks. It checks all elements of tensors of up to
/// kFullElements (fewer if there are many large results, or very many operations); for larger
/// ones, the ends of its share, where slices and tails meet, and a seeded 1 % of the rest.
class Reference {
 public:
  static constexpr int64_t kFullElements = int64_t{1} << 22;

  /// `program` is bound, and as the user wrote it.
  static absl::StatusOr<Reference> Create(const Graph& program, const Mesh& mesh, int rank,
                                          uint64_t seed, DataKind kind = DataKind::kOrdinary,
                                          const Numerics& numerics = {});

  /// Sets `stop`, which computing and comparing elements asks from now on; they are Cancelled if it
  /// returns true. May be empty.
  void StopWhen(std::function<bool()> stop);
  /// Cancelled if `stop` returns true now.
  absl::Status GoOn() const;

  /// Check accepts any values of these results.
  void Skip(std::set<std::string> results) { skipped_ = std::move(results); }

  const TestData& data() const { return *data_; }
  const std::vector<std::string>& results() const { return interpreter_->results(); }

  /// The elements of a result, or state, of this type that this rank checks.
  Part ShareOf(const TensorType& type) const;
  /// Whether Check accepts any values of the result.
  bool skips(const std::string& result) const { return skipped_.contains(result); }
  /// Whether Check looks at all elements of the share.
  bool ChecksAll(const PlacedTensor& tensor) const {
    return !skips(tensor.name) && NumElements(tensor.type.shape) <= full_elements_;
  }

  /// Compares `storage` with the result `tensor` of one step on data(). InvalidArgument names the
  /// worst element with its index, value, expected value and bound.
  absl::Status Check(const PlacedTensor& tensor, const void* storage);
  /// The same for storage that the host cannot address: `take` returns the elements at these
  /// positions of the share, one after the other.
  using Take = std::function<absl::StatusOr<std::vector<Number>>(absl::Span<const int64_t>)>;
  absl::Status Check(const PlacedTensor& tensor, const Take& take);
  /// The same for the elements at these positions of the share, whatever Check looks at.
  absl::Status CheckAt(const PlacedTensor& tensor, std::vector<int64_t> positions,
                       const Take& take);
  /// The bound that nine tenths of the elements that Check looks at, and that have one, do not
  /// exceed; infinite if none has one.
  absl::StatusOr<double> UsualBound(const PlacedTensor& tensor);

  /// Elements of a result that this rank checks, and how many of them have no bound, so that any
  /// value is accepted.
  struct Coverage {
    int64_t elements = 0, undetermined = 0;
  };
  /// By result.
  absl::StatusOr<std::map<std::string, Coverage>> MeasureCoverage();

 private:
  Reference(Interpreter interpreter, TestData data, const Mesh& mesh, int rank, uint64_t seed);

  struct Window {
    std::vector<int64_t> positions;  // in the share, ascending; empty: all
    Expected expected;
    int64_t At(size_t i) const {
      return positions.empty() ? static_cast<int64_t>(i) : positions[i];
    }
  };
  absl::StatusOr<const Window*> WindowOf(const std::string& name, const TensorType& type);
  absl::StatusOr<Window> Evaluate(const std::string& name, const TensorType& type,
                                  std::vector<int64_t> positions);
  /// `have`: by index in the window.
  absl::Status Compare(const PlacedTensor& tensor, const Window& window,
                       const std::function<Number(size_t)>& have) const;
  absl::Status Compare(const PlacedTensor& tensor, const Window& window, const Take& take) const;

  // On the heap, since the evaluator points to them.
  std::unique_ptr<const Interpreter> interpreter_;
  std::unique_ptr<const TestData> data_;
  std::unique_ptr<Evaluator> evaluator_;
  const int stage_size_, rank_;
  uint64_t seed_;
  int64_t full_elements_ = kFullElements, ends_ = 0;
  std::function<bool()> stop_;
  std::set<std::string> skipped_;
  std::map<std::pair<std::string, int>, Window> windows_;  // by result and sliced dimension
};

/// Returns the results, by TensorName, that are not checked at the program's size: for a program
/// over a long list of tensors, results that sum over the elements of their tensor, which would
/// take the interpreter minutes. One tensor per size, which the seed picks, is checked
/// nevertheless. Empty for small programs, and for programs without a list.
std::set<std::string> NotSpotChecked(const Graph& program, uint64_t seed);

}  // namespace coconet
