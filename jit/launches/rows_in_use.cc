#include "jit/launches/rows_in_use.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// What readers use of a tensor: nothing, where it has none.
using Use = std::optional<RowsInUse>;

const Use kNothing = std::nullopt;
const Use kAll = RowsInUse{};

/// What is used where both readers read: where they count alike, that.
Use Both(const Use& a, const Use& b) {
  if (!a.has_value()) return b;
  if (!b.has_value() || *a == *b) return a;
  return kAll;
}

class Uses {
 public:
  explicit Uses(const TypedGraph& p) : p_(p), of_(p.size()) {}

  std::vector<RowsInUse> Find() {
    std::vector<RowsInUse> rows(p_.size());
    for (NodeId id = p_.size() - 1; id >= 0; --id) {
      for (NodeId user : p_.users()[id]) {
        for (size_t operand = 0; operand < p_.inputs(user).size(); ++operand) {
          if (p_.inputs(user)[operand] == id)
            of_[id] = Both(of_[id], By(user, static_cast<int>(operand)));
        }
      }
      rows[id] = of_[id].value_or(RowsInUse{});
    }
    return rows;
  }

 private:
  const Op& op(NodeId id) const { return p_.op(id); }

  /// What `user` uses of its operand.
  Use By(NodeId user, int operand) const {
    const NodeId id = p_.inputs(user)[operand];
    if (std::holds_alternative<Iota>(op(user))) return kNothing;
    if (operand == 1) {
      if (const Use kept = Kept(user); kept.has_value()) return kept;
    }
    const Use& of_user = of_[user];
    if (RoleOf(op(user)) == Role::kStore || (of_user.has_value() && of_user->all())) return kAll;
    if (!of_user.has_value()) return kNothing;
    switch (RoleOf(op(user))) {
      case Role::kElementwise:
        return Through(user, id);
      case Role::kFold: {
        const std::vector<int>& dims = std::get<Fold>(op(user)).dims;
        const bool of_rows = !dims.empty() && dims[0] > of_user->dim;
        return of_rows ? Through(user, id) : kAll;
      }
      case Role::kProduct: {
        const bool of_rows = operand == 0 && !std::get<MatMul>(op(user)).transpose_a &&
                             of_user->dim + 2 == static_cast<int>(p_.type(id).shape.size());
        return of_rows ? Through(user, id) : kAll;
      }
      case Role::kCollective: {
        if (!std::holds_alternative<AllToAll>(op(user))) return kAll;
        const NodeId before = CountsBefore(p_, user, of_user->counts);
        return before < 0 ? kAll : Use({before, of_user->dim});
      }
      case Role::kNone:
      case Role::kDeclaration:
      case Role::kConstant:
      case Role::kTotal:
      case Role::kView:
      case Role::kScatter:
      case Role::kPooling:
      case Role::kShard:
      case Role::kTransfer:
      case Role::kSend:
      case Role::kStore:
      case Role::kOpaque:
        return kAll;
    }
    CC_CHECK(false);
  }

  /// The use of the result, where the operand has the same rows.
  Use Through(NodeId user, NodeId id) const {
    const Shape &of = p_.type(id).shape, &to = p_.type(user).shape;
    const int dims = of_[user]->dim + 1;
    const bool alike = of.size() == to.size() && dims <= static_cast<int>(of.size()) &&
                       std::equal(of.begin(), of.begin() + dims, to.begin());
    return alike && LaidOutAlike(id, of_[user]->counts, of_[user]->dim) ? of_[user] : kAll;
  }

  /// Whether a rank that has rows has their counts at the same place.
  bool LaidOutAlike(NodeId id, NodeId counts, int dim) const {
    const Layout &of = p_.type(id).layout, &by = p_.type(counts).layout;
    if (!of.sliced()) return !by.sliced();
    if (of.dim < 0 || of.dim == dim || of.by_place()) return false;  // flat or owned
    return of.dim > dim ? !by.sliced() : of == by;
  }

  /// The use of `a` by select(counts > row, a, ...): a's rows before the counts.
  Use Kept(NodeId select) const {
    const auto is = [&](NodeId id, Pw fn) {
      const auto* pointwise = std::get_if<Pointwise>(&op(id));
      return pointwise != nullptr && pointwise->fn == fn;
    };
    const NodeId condition = p_.inputs(select)[0], a = p_.inputs(select)[1];
    if (!is(select, Pw::kSelect) || !is(condition, Pw::kGt)) return std::nullopt;
    const auto* row = std::get_if<Iota>(&op(p_.inputs(condition)[1]));
    const NodeId counts_of_rows = p_.inputs(condition)[0];
    const auto* widened = std::get_if<Reshape>(&op(counts_of_rows));
    if (row == nullptr || row->dtype != DType::kI32 || widened == nullptr) return std::nullopt;
    const NodeId counts = p_.inputs(counts_of_rows)[0];
    const Shape &shape = p_.type(a).shape, &lead = p_.type(counts).shape;
    const bool counts_rows =
        row->dim == static_cast<int>(lead.size()) && lead.size() < shape.size() &&
        std::equal(lead.begin(), lead.end(), shape.begin()) &&
        p_.type(p_.inputs(condition)[1]).shape == shape && p_.type(select).shape == shape &&
        std::equal(lead.begin(), lead.end(), widened->shape.begin());
    if (!counts_rows || !LaidOutAlike(a, counts, row->dim)) return std::nullopt;
    return RowsInUse{counts, row->dim};
  }

  const TypedGraph& p_;
  std::vector<Use> of_;
};

}  // namespace

std::vector<RowsInUse> FindRowsInUse(const TypedGraph& program) { return Uses(program).Find(); }

NodeId CountsBefore(const TypedGraph& program, NodeId id, NodeId counts) {
  const Layout& before = program.type(program.inputs(id)[0]).layout;
  const Layout& after = program.type(id).layout;
  const int dims = static_cast<int>(program.type(counts).shape.size());
  if (before.dim < 0 || before.dim >= dims || after.dim < 0 || after.dim >= dims ||
      program.type(counts).layout != after)
    return -1;
  if (std::holds_alternative<AllToAll>(program.op(counts))) {
    const NodeId operand = program.inputs(counts)[0];
    if (program.type(operand).layout == before) return operand;
  }
  for (NodeId user : program.users()[counts]) {
    if (std::holds_alternative<AllToAll>(program.op(user)) && program.type(user).layout == before)
      return user;
  }
  return -1;
}

}  // namespace coconet
