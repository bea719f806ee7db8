#pragma once

#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

/// The rows of a tensor that an operation reads. A row is the elements with one index in each of
/// the dimensions up to `dim`; of the rows along `dim`, those before the count are in use. A step
/// that computes or moves the tensor may leave any values in the other rows.
struct RowsInUse {
  NodeId counts = -1;  // i32, the first `dim` dimensions of the tensor, laid out as these are; -1:
                       // all rows are in use
  int dim = 0;
  bool all() const { return counts < 0; }
  bool operator==(const RowsInUse&) const = default;
};

/// By node. Rows are not in use where every reader, seen through elementwise operations, folds of
/// rows, products of rows and AllToAlls, keeps those before a count only (KeepRows in
/// coconet/language/bags.h). Time and memory are linear in the program.
std::vector<RowsInUse> FindRowsInUse(const TypedGraph& program);

/// The AllToAll of counts that belongs to `id`, an AllToAll of a tensor with rows not in use: it
/// moves counts from the layout of id's operand to that of its result, or, `back`, from that of its
/// result to that of its operand.
struct CountsMoved {
  NodeId all_to_all = -1;  // -1: there is none
  bool back = false;
  NodeId before = -1;  // counts in the layout of id's operand
};
CountsMoved CountsMovedWith(const TypedGraph& program, NodeId id, NodeId counts);

}  // namespace coconet
