#ifndef COCONET_AUTOTUNE_MEASURE_REFERENCE_H_
#define COCONET_AUTOTUNE_MEASURE_REFERENCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/measure/tensors.h"
#include "autotune/measure/test_data.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"
#include "runtime/rank.h"

namespace coconet {

/// What a program's results are on TestData, by the interpreter: of the elements that one rank
/// answers for, each computed once however many variants are checked. A rank answers for what it
/// holds of Local and Sliced results, and for its share of Replicated ones, which must be equal to
/// the bit on all ranks (the verifier sees to that), so that the ranks divide the work and together
/// check everything. All elements of tensors up to kFullElements, or, where the results are many
/// and together more than some times that, of small ones; of larger ones the ends of the share,
/// where slices and tails meet, and a seeded 1 % of the rest.
class Reference {
 public:
  static constexpr int64_t kFullElements = int64_t{1} << 22;

  /// `program` as the user wrote it, bound.
  static absl::StatusOr<Reference> Create(const Graph& program, const Mesh& mesh, int rank,
                                          uint64_t seed);

  /// Results that Check takes as they are; their replicas are compared nevertheless.
  void Skip(std::set<std::string> results) { skipped_ = std::move(results); }

  const TestData& data() const { return *data_; }
  const std::vector<std::string>& results() const { return interpreter_->results(); }

  /// InvalidArgument names the worst element with its index, value, expected value and bound when
  /// `storage` does not hold the result `tensor` of one step on data().
  absl::Status Check(const PlacedTensor& tensor, const void* storage);

 private:
  Reference(Interpreter interpreter, TestData data, const Mesh& mesh, int rank, uint64_t seed);

  struct Window {
    std::vector<int64_t> positions;  // in the share, ascending; empty: all
    Expected expected;
  };
  /// The elements that this rank answers for.
  Part ShareOf(const TensorType& type) const;
  absl::StatusOr<const Window*> WindowOf(const PlacedTensor& tensor);

  // Where the evaluator finds them, wherever this is moved.
  std::unique_ptr<const Interpreter> interpreter_;
  std::unique_ptr<const TestData> data_;
  std::unique_ptr<Evaluator> evaluator_;
  const int stage_size_, rank_;
  uint64_t seed_;
  int64_t full_elements_ = kFullElements, ends_ = 0;
  std::set<std::string> skipped_;
  std::map<std::pair<std::string, int>, Window> windows_;  // by result and sliced dimension
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_REFERENCE_H_
