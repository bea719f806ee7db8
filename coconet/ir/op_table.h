#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/ir/op.h"

namespace coconet {

// Questions about all operations, answered by their rows.

const OpRow& RowOf(const Op& op);
inline Role RoleOf(const Op& op) { return RowOf(op).role; }

/// The operation that calls of this name make, with the defaults of its attributes; none for other
/// words.
std::optional<Op> FindCall(absl::string_view name);
/// The names of all operations that are written as calls, elementwise functions last.
std::vector<absl::string_view> CallNames();

/// The member of `op` that one of its row's attributes stands for.
AttributeField FieldOf(const Op& op, const Attribute& attribute);
/// The value of that member; T is the type of the attribute's form.
template <class T>
T& Get(Op& op, const Attribute& attribute) {
  return *std::get<T*>(FieldOf(op, attribute));
}
template <class T>
const T& Get(const Op& op, const Attribute& attribute) {
  return *std::get<T*>(FieldOf(op, attribute));
}

/// The alternative of the variant that `op` is: what the functions of its row take.
const void* StructOf(const Op& op);

/// The least and the greatest number of operands.
struct Arity {
  int least = 0, most = 0;
};
Arity ArityOf(const Op& op);
/// The name that an input, state or output has to the outside; null for others.
const std::string* DeclaredName(const Op& op);
/// The type of an input or state; null for others.
const TensorType* DeclaredType(const Op& op);
/// What the operation declares; null members if it declares nothing.
Declared DeclaredIn(Op& op);
/// The shape that an operation holds; null for most.
Shape* DeclaredShape(Op& op);
/// The destination of a ReduceScatter, Shard or AllToAll; null for others.
Cut* CutIn(Op& op);
/// The name of the list of weights in the operation's layout, empty if it has no weights; null if
/// the operation has no layout.
std::string* WeightsIn(Op& op);

/// The span of an AllReduce, ReduceScatter or AllGather; kAll for others.
Span SpanOf(const Op& op);
/// The stream of an operation that draws a random word per element, whose second operand is then
/// the seed; none for others.
std::optional<int64_t> StreamOf(const Op& op);
/// The rank that a Broadcast or a ReduceTo names; none for others.
std::optional<int> RootOf(const Op& op);

/// The dimension of the first operand, of `dims` dimensions, along which the operation takes rows
/// by index; none for others.
std::optional<int> RowDimOf(const Op& op, size_t dims);

/// The reduction over ranks of each rank's fold; a sum for means.
ReduceKind AcrossRanks(FoldKind kind);
/// The same reduction within a rank.
FoldKind WithinRank(ReduceKind kind);

/// Whether each element is computed from the operands' elements in the same place, however the
/// tensor is cut.
bool IsElementwise(const Op& op);
/// Whether elements are computed from those in the same place without random words. A scalar result
/// is recomputed by every kernel that needs it.
bool IsComputation(const Op& op);
/// A view: Transpose, Reshape, Expand, Reverse, SubTensor, Concat, Gather. Its elements are its
/// operands', in other places.
bool IsView(const Op& op);
/// Whether it takes elements of its first operand, and maybe of others, at other places than the
/// result's: a view or a pooling. A kernel loads these operands from memory.
bool TakesOtherPlaces(const Op& op);
/// How many of its operands, from the first on, TakesOtherPlaces is about.
size_t OperandsOfOtherPlaces(const Op& op, size_t operands);
/// Whether it moves data between ranks.
bool Communicates(const Op& op);
/// Whether it can be in a generated kernel. Libraries launch the rest: matrix products, rooted and
/// point-to-point communication, collectives across nodes.
bool IsKernelWork(const Op& op);

/// "all_reduce", "add", "input @g": for messages.
std::string OpText(const Op& op);

/// The whole operation as the text form writes it: "mul(%3, %5)", "input g : f32[N] local". Two
/// operations on the same operands are equal exactly when these texts are.
std::string OpText(const Op& op, absl::Span<const std::string> operands);

}  // namespace coconet
