#include <cstddef>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// The operand's type, under another layout; what all collectives that reduce each rank's own
/// values have in common.
absl::StatusOr<TensorType> InferAcrossRanks(const Site& site, const Layout& layout) {
  const TensorType& type = site.type(0);
  if (type.layout != Layout::Local())
    return site.Error("want a local operand, ", site.HaveOperands());
  if (type.dtype == DType::kBool) return site.Error("want numbers, ", site.HaveOperands());
  return Normalized({type.dtype, type.shape, layout});
}

/// What reduces across nodes takes what a reduce_scatter within each of them left.
absl::StatusOr<TensorType> InferAcrossNodes(const Site& site, Layout::Parts parts) {
  TensorType type = site.type(0);
  if (type.layout.parts != Layout::Parts::kPartialPlace) {
    return site.Error("want what reduce_scatter(..., node) gives, ", site.HaveOperands());
  }
  type.layout.parts = parts;
  return type;
}

absl::Status CheckRoot(const Site& site, int root) {
  return root >= 0 ? absl::OkStatus()
                   : site.Error("want the number of a rank as the root, have ", root);
}

}  // namespace

absl::StatusOr<TensorType> InferAllReduce(const Site& site, const AllReduce& op) {
  if (op.span == Span::kNode)
    return site.Error(
        "an all_reduce within nodes gives nothing that other operations take; want all ranks, or "
        "across");
  if (op.span == Span::kAcross) return InferAcrossNodes(site, Layout::Parts::kPlace);
  return InferAcrossRanks(site, Layout::Replicated());
}

absl::StatusOr<TensorType> InferReduceScatter(const Site& site, const ReduceScatter& op) {
  RETURN_IF_ERROR(CheckCut(site, op.to, site.type(0).shape));
  if (op.to.dim == Layout::kOwned && op.span != Span::kAll)
    return site.Error("an owner gets its tensor from all ranks at once; leave ", Name(op.span),
                      " out");
  if (op.span != Span::kAcross) {
    return InferAcrossRanks(
        site, Layout::Sliced(op.to, op.span == Span::kNode ? Layout::Parts::kPartialPlace
                                                           : Layout::Parts::kOwn));
  }
  ASSIGN_OR_RETURN(TensorType type, InferAcrossNodes(site, Layout::Parts::kOwn));
  const Layout wanted = Normalized({type.dtype, type.shape, Layout::Sliced(op.to)}).layout;
  if (type.layout != wanted)
    return site.Error("want an operand sliced over the same dimension, ", site.HaveOperands());
  return type;
}

absl::StatusOr<TensorType> InferAllGather(const Site& site, const AllGather& op) {
  TensorType type = site.type(0);
  const bool of_place = op.span == Span::kNode;
  if (type.layout.weighted() && op.span != Span::kAll)
    return site.Error("parts by weight, and owned tensors, are gathered over all ranks at once, ",
                      site.HaveOperands());
  if (!type.layout.sliced() ||
      type.layout.parts != (of_place ? Layout::Parts::kPlace : Layout::Parts::kOwn)) {
    return site.Error("want a sliced operand",
                      of_place               ? " with the parts of a place"
                      : type.layout.sliced() ? " with each rank's own part"
                                             : "",
                      ", ", site.HaveOperands());
  }
  type.layout = op.span == Span::kAcross ? Layout::Sliced(type.layout.dim, Layout::Parts::kPlace)
                                         : Layout::Replicated();
  return type;
}

absl::StatusOr<TensorType> InferShard(const Site& site, const Shard& op) {
  const TensorType& type = site.type(0);
  if (ReadLayout(type) != Layout::Replicated())
    return site.Error("want a replicated operand, ", site.HaveOperands());
  RETURN_IF_ERROR(CheckCut(site, op.to, type.shape));
  return Normalized({type.dtype, type.shape, Layout::Sliced(op.to)});
}

absl::StatusOr<TensorType> InferBroadcast(const Site& site, const Broadcast& op) {
  RETURN_IF_ERROR(CheckRoot(site, op.root));
  const TensorType& type = site.type(0);
  if (type.layout != Layout::Local())
    return site.Error("want a local operand, ", site.HaveOperands());
  return TensorType{type.dtype, type.shape, Layout::Replicated()};
}

absl::StatusOr<TensorType> InferReduceTo(const Site& site, const ReduceTo& op) {
  RETURN_IF_ERROR(CheckRoot(site, op.root));
  return InferAcrossRanks(site, Layout::Local());
}

absl::StatusOr<TensorType> InferAllToAll(const Site& site, const AllToAll& op) {
  const TensorType& type = site.type(0);
  if (!type.layout.sliced() || type.layout.dim == Layout::kFlat || type.layout.by_place()) {
    return site.Error("want an operand sliced over a dimension, or owned, ", site.HaveOperands());
  }
  if (op.to.dim == Layout::kFlat) return site.Error("want a dimension to slice, have flat");
  RETURN_IF_ERROR(CheckCut(site, op.to, type.shape));
  if (op.to.dim == type.layout.dim)
    return site.Error("the operand is ", type.layout.owned() ? "owned" : "sliced so", " already, ",
                      site.HaveOperands());
  return TensorType{type.dtype, type.shape, Layout::Sliced(op.to)};
}

absl::StatusOr<TensorType> InferSend(const Site& site, const Send& op) {
  if (op.shift != 1 && op.shift != -1)
    return site.Error("want the next stage or the previous one, have a shift of ", op.shift);
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  if (site.type(0).layout.owned())
    return site.Error("want what each rank has, ", site.HaveOperands(), "; use all_gather");
  return Read(site.type(0));
}

namespace {

/// Whether each element of a result is of the rank that has those of its operands: what computes,
/// not what moves elements between ranks or gives them a name.
bool Computes(const Op& op) {
  switch (RoleOf(op)) {
    case Role::kElementwise:
    case Role::kFold:
    case Role::kProduct:
    case Role::kView:
    case Role::kPooling:
    case Role::kScatter:
      return true;
    case Role::kDeclaration:
    case Role::kConstant:
    case Role::kTotal:  // of scalars, which have no owner
    case Role::kShard:
    case Role::kCollective:
    case Role::kTransfer:
    case Role::kSend:
    case Role::kStore:
    case Role::kOpaque:
      return false;
    case Role::kNone:
      break;
  }
  CC_CHECK(false);
}

/// The first owned operand; as many as there are operands: none.
size_t FirstOwned(const Site& site) {
  size_t i = 0;
  while (i < site.operands().size() && !site.type(i).layout.owned()) ++i;
  return i;
}

/// Operand i, together with the owned one `owned`.
absl::Status CheckBeside(const Site& site, size_t i, size_t owned) {
  const Layout& layout = site.type(i).layout;
  if (layout.owned() && layout != site.type(owned).layout)
    return site.Error("operands have different owners, ", site.Operand(owned), " and ",
                      site.Operand(i), "; use all_gather");
  if (layout.cut())
    return site.Error("no rank has both ", site.Operand(owned), " and ", site.Operand(i),
                      " whole; use all_gather or all_to_all");
  // Each of an owner's elements meets that of its own local operand; of other places it might not.
  if (layout == Layout::Local() && As<Pointwise>(site.g, site.id) == nullptr)
    return site.Error("want operands of the same owner, or equal on all ranks, ",
                      site.HaveOperands());
  return absl::OkStatus();
}

}  // namespace

bool HasOwner(const Site& site) {
  return Computes(site.g.nodes[site.id].op) && FirstOwned(site) < site.operands().size();
}

absl::StatusOr<Site> AsItsOwner(const Site& site) {
  Site owners = site;
  const size_t owned = FirstOwned(site);
  for (size_t i = 0; i < site.operands().size(); ++i) {
    RETURN_IF_ERROR(CheckBeside(site, i, owned));
    owners.seen.push_back(site.type(i));
    if (site.type(i).layout.owned()) owners.seen.back().layout = Layout::Replicated();
  }
  return owners;
}

absl::StatusOr<TensorType> OfItsOwner(const Site& site, TensorType seen) {
  if (!seen.shape.empty()) {
    seen.layout = site.type(FirstOwned(site)).layout;
    return seen;
  }
  // Ranks other than the owner fold nothing, as of a slice that is empty.
  if (As<Fold>(site.g, site.id) == nullptr)
    return site.Error("a scalar has no owner, ", site.HaveOperands(),
                      "; use sum, which gives a local one, or all_gather");
  seen.layout = Layout::Local();
  return seen;
}

}  // namespace coconet
