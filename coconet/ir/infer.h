#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// Type of one node from the types of its inputs.
///
/// Elementwise: dtypes equal (no silent promotion: Cast), shapes broadcast as in NumPy (symbols
/// broadcast only with themselves and with 1), layouts by the table
///   Local with Local or Replicated -> Local;  Local with Sliced(d) -> Sliced(d)
///   Sliced(d) with Sliced(d) or Replicated -> Sliced(d);  Sliced of different dims -> error
///   Replicated with Replicated -> Replicated
/// where dims are aligned from the right as in broadcasting. A sliced operand may not be broadcast
/// at or after its sliced dim (its ranks would hold other parts than the result's), one sliced flat
/// not at all. kAuto counts as Replicated; only State nodes have it. Arithmetic and comparisons
/// refuse bool. Sliced(flat) of a vector is written Sliced(0). AllReduce, ReduceScatter want Local;
/// AllGather wants Sliced. Update wants a State, and a value of the same dtype, shape and layout. A
/// Const must be representable (and a nonzero one not round to 0). Errors name the operation, its
/// operands and their types: InvalidArgument.
absl::StatusOr<TensorType> InferNode(const Graph& g, NodeId id,
                                     const std::vector<TensorType>& types_before);

/// What a value is, for readers of messages: its name, or the operation that gives it with its
/// operands, of which inner ones are left out: "add(mul(x, y), exp(...))".
std::string Described(const Graph& g, NodeId id);

/// Letters, digits, '_' and '.', not starting with a digit or '.': what names of tensors, sizes and
/// programs are.
bool IsIdentifier(absl::string_view word);
/// "world", and the operators "and", "or", "not": not the name of a value.
bool IsReserved(absl::string_view word);

/// InferTypes one node at a time, while a graph is built.
class TypeChecker {
 public:
  /// Checks the next node of `g`, number types().size(); the nodes before it were checked.
  absl::Status CheckNext(const Graph& g);
  const std::vector<TensorType>& types() const& { return types_; }
  std::vector<TensorType> types() && { return std::move(types_); }

 private:
  std::vector<TensorType> types_;
  std::set<std::string> names_;
  std::set<NodeId> updated_;
};

/// Types of all nodes, and the graph's invariants (names unique, states updated at most once).
/// Output nodes get the type of their operand.
absl::StatusOr<std::vector<TensorType>> InferTypes(const Graph& g);

/// The opaque operations by name: how many there are of each, and the first one; empty: none.
std::string OpaqueOperations(const Graph& g);

/// Whether a world of `ranks` ranks (of one pipeline stage) can run the program. InvalidArgument if
/// an operation names a rank beyond them, or slices end within blocks of scales (operand_index.h);
/// Unimplemented for opaque operations.
absl::Status CheckRuns(const Graph& g, int ranks);

}  // namespace coconet
