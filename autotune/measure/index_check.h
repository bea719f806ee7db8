#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/tensors.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/reference/interpreter.h"
#include "runtime/rank.h"

namespace coconet {

/// Looks for indices of gathers that are out of range, whose rows are zeros. Computes a rank's
/// indices from the inputs and states that this rank has; skips indices that need those of other
/// ranks.
class IndexCheck {
 public:
  /// `program` is bound, without lists, and as the user wrote it; `tensors` are its inputs and
  /// states as a schedule places them.
  static absl::StatusOr<IndexCheck> Create(const TypedGraph& program,
                                           const std::vector<PlacedTensor>& tensors,
                                           const Mesh& mesh);

  /// Whether there is no gather to check.
  bool empty() const { return gathers_.empty(); }
  /// Names of the inputs and states that Find asks for.
  const std::set<std::string>& reads() const { return reads_; }
  /// Returns a sentence on the first index out of range of each gather that has one: the gather,
  /// the indices' name, the position, the index. `source` has the elements that `rank` holds.
  absl::StatusOr<std::vector<std::string>> Find(int rank, const ElementSource& source) const;

 private:
  /// One gather, and the parts of its message.
  struct Looked {
    std::string text, indices;  // the operation; the operand's name
    TensorType type;            // of the indices
    int64_t rows = 0;
  };

  std::map<std::string, Looked> gathers_;  // by result of the interpreter
  std::set<std::string> reads_;
  std::vector<Interpreter> interpreter_;  // one, or none
  int stage_size_ = 1;
};

}  // namespace coconet
