#include "jit/expressions/operations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/philox.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

/// Every use of `id` rounds it to its type anyway.
bool IsOnlyStored(const KernelContext& k, NodeId id) {
  std::vector<NodeId> pending = {id};
  while (!pending.empty()) {
    const NodeId next = pending.back();
    pending.pop_back();
    for (NodeId user : k.u.program.users()[next]) {
      if (!k.IsMember(user) || Is<AllGather>(k.g, user) || Is<AllToAll>(k.g, user) ||
          Is<Send>(k.g, user) || Is<Output>(k.g, user))
        continue;
      if (!Is<Update>(k.g, user)) return false;
      pending.push_back(user);
    }
  }
  return true;
}

/// Whether OperationText writes operations of a role.
constexpr bool ComputesElements(Role role) {
  switch (role) {
    case Role::kConstant:
    case Role::kElementwise:
    case Role::kTotal:
    case Role::kShard:
      return true;
    case Role::kNone:
    case Role::kDeclaration:
    case Role::kFold:
    case Role::kProduct:
    case Role::kView:
    case Role::kPooling:
    case Role::kScatter:
    case Role::kCollective:
    case Role::kTransfer:
    case Role::kSend:
    case Role::kStore:
    case Role::kOpaque:
      return false;
  }
  return false;
}

/// Writes one operation.
class Operation {
 public:
  Operation(KernelContext& k, NodeId id, const std::vector<std::string>& operands,
            absl::string_view lanes, absl::string_view index)
      : k_(k), id_(id), operands_(operands), lanes_(lanes), index_(index) {}

  absl::StatusOr<std::string> Text() const {
    return std::visit([&](const auto& op) { return TextOf(op); }, k_.g.nodes[id_].op);
  }

 private:
  using Result = absl::StatusOr<std::string>;

  Result TextOf(const Const& op) const { return Splat(Literal(op.value, op.dtype)); }
  Result TextOf(const WorldSize& op) const { return Splat(Literal(k_.target.ranks, op.dtype)); }
  Result TextOf(const Count& op) const {
    const std::string name = absl::StrCat("count", k_.named++);
    const int64_t count = NumElements(op.shape);
    const std::string value =
        k_.u.each[id_] ? k_.args.TensorInteger(name, count) : k_.args.LaunchInteger(name, count);
    return absl::StrCat("CastTo<", KernelType(op.dtype), ">(", Splat(value), ")");
  }
  Result TextOf(const RankNumber& op) const {
    return absl::StrCat("CastTo<", KernelType(op.dtype), ">(", Splat("rank"), ")");
  }
  Result TextOf(const Pointwise& op) const {
    std::vector<std::pair<std::string, std::string>> holes;
    holes.push_back({"$T", std::string(KernelType(dtype()))});
    for (size_t i = 0; i < operands_.size(); ++i)
      holes.push_back({absl::StrCat("$", i), operands_[i]});
    std::string expression = absl::StrReplaceAll(Info(op.fn).kernel_expr, holes);
    return Info(op.fn).result == PwResult::kSame ? InRange(dtype(), std::move(expression))
                                                 : expression;
  }
  Result TextOf(const Cast& op) const {
    if (IsNarrowFloat(op.dtype) && IsOnlyStored(k_, id_)) {
      const DType from = k_.type(k_.g.nodes[id_].inputs[0]).dtype;
      const bool is_exact = from == DType::kF32 || SizeOf(from) <= 2;
      return absl::StrCat(is_exact ? "ConvertLanes<float>(" : "FloatsToNarrow(", operands_[0], ")");
    }
    return absl::StrCat("CastTo<", KernelType(op.dtype), ">(", operands_[0], ")");
  }
  Result TextOf(const BitCast& op) const {
    const DType from = k_.type(k_.g.nodes[id_].inputs[0]).dtype;
    return absl::StrCat("BitCastTo<", KernelType(op.dtype), ", ", KernelType(from), ">(",
                        operands_[0], ")");
  }
  Result TextOf(const Iota& op) const {
    const Shape& shape = k_.type(id_).shape;
    const int number = k_.named++;
    const int64_t inner = SlicingOf(shape, op.dim, 1).inner;
    const bool once = k_.PacksLieIn(inner);
    const std::string indices =
        absl::StrCat("IndicesAlong<", KernelType(op.dtype), ", ", once ? "1" : lanes_, ">(", index_,
                     ", ", k_.args.Divisor(absl::StrCat("inner", number), inner), ", ",
                     k_.args.Divisor(absl::StrCat("extent", number), shape[op.dim].size), ")");
    return once ? absl::StrCat("Splat<", lanes_, ">(Get(", indices, ", 0))") : indices;
  }
  Result TextOf(const Dropout& op) const {
    return absl::StrCat("Dropped<", lanes_, ">(", operands_[0], ", ", index_, ", Get(",
                        operands_[1], ", 0), ", op.stream, "ll, ", DropoutThreshold(op.rate), "u, ",
                        Literal(1 / (1 - op.rate), dtype()), ")");
  }
  Result TextOf(const StochasticRound& op) const {
    return absl::StrCat("RoundedByWords<", lanes_, ">(", operands_[0], ", ", index_, ", Get(",
                        operands_[1], ", 0), ", op.stream, "ll)");
  }
  Result TextOf(const Shard&) const { return operands_[0]; }
  Result TextOf(const Total&) const { return operands_[0]; }  // of a single tensor
  /// Loads and stores, and what other parts of the kernel or libraries compute.
  template <class T>
    requires(!ComputesElements(kRow<T>.role))
  Result TextOf(const T&) const {
    return absl::InternalError(absl::StrCat("emit: ", NodeText(k_.g, id_), " is not arithmetic"));
  }

  DType dtype() const { return k_.type(id_).dtype; }
  std::string Splat(absl::string_view literal) const {
    return absl::StrCat("Splat<", lanes_, ">(", literal, ")");
  }
  KernelContext& k_;
  const NodeId id_;
  const std::vector<std::string>& operands_;
  const absl::string_view lanes_, index_;
};

}  // namespace

std::vector<NodeId> ElementOperands(const KernelContext& k, NodeId id) {
  std::vector<NodeId> operands = k.g.nodes[id].inputs;
  if (!TakesOtherPlaces(k.g.nodes[id].op)) return operands;
  std::erase_if(operands, [&](NodeId operand) {
    const NodeId value = k.u.Value(operand);
    return !k.IsMember(value) && !k.u.IsScalar(value);
  });
  return operands;
}

absl::StatusOr<std::string> OperationText(KernelContext& k, NodeId id,
                                          const std::vector<std::string>& operands,
                                          absl::string_view lanes, absl::string_view index) {
  return Operation(k, id, operands, lanes, index).Text();
}

std::string InRange(DType dtype, std::string expression) {
  const bool is_computed_wider = IsInteger(dtype) && SizeOf(dtype) < sizeof(int32_t);
  return is_computed_wider ? absl::StrCat("Wrapped<", KernelType(dtype), ">(", expression, ")")
                           : expression;
}

}  // namespace coconet
