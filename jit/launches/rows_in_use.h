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

/// By node. Rows are not in use if every reader, seen through elementwise operations, folds of
/// rows, products of rows and AllToAlls, keeps only those before a count (KeepRows in
/// coconet/language/bags.h). Time and memory are linear in the program.
std::vector<RowsInUse> FindRowsInUse(const TypedGraph& program);

/// The counts of AllToAll `id` in the layout of its operand, if its tensor has rows not in use.
/// Another AllToAll brings them to the layout of its result, `counts`, or brings them from there.
/// -1: there are none.
NodeId CountsBefore(const TypedGraph& program, NodeId id, NodeId counts);

}  // namespace coconet
