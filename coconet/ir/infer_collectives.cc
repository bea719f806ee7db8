#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"

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
  RETURN_IF_ERROR(CheckSlicedDim(site, op.dim, site.type(0).shape));
  if (op.span != Span::kAcross) {
    return InferAcrossRanks(
        site, Layout::Sliced(op.dim, op.span == Span::kNode ? Layout::Parts::kPartialPlace
                                                            : Layout::Parts::kOwn));
  }
  ASSIGN_OR_RETURN(TensorType type, InferAcrossNodes(site, Layout::Parts::kOwn));
  const Layout wanted = Normalized({type.dtype, type.shape, Layout::Sliced(op.dim)}).layout;
  if (type.layout != wanted)
    return site.Error("want an operand sliced over the same dimension, ", site.HaveOperands());
  return type;
}

absl::StatusOr<TensorType> InferAllGather(const Site& site, const AllGather& op) {
  TensorType type = site.type(0);
  const bool of_place = op.span == Span::kNode;
  if (type.layout.weighted() && op.span != Span::kAll)
    return site.Error("parts by weight are gathered over all ranks at once, ", site.HaveOperands());
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
  RETURN_IF_ERROR(CheckSlicedDim(site, op.dim, type.shape));
  return Normalized({type.dtype, type.shape, Layout::Sliced(op.dim)});
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
    return site.Error("want an operand sliced over a dimension, ", site.HaveOperands());
  }
  if (op.dim == Layout::kFlat) return site.Error("want a dimension to slice, have flat");
  RETURN_IF_ERROR(CheckSlicedDim(site, op.dim, type.shape));
  if (op.dim == type.layout.dim)
    return site.Error("the operand is sliced so already, ", site.HaveOperands());
  return TensorType{type.dtype, type.shape, Layout::Sliced(op.dim)};
}

absl::StatusOr<TensorType> InferSend(const Site& site, const Send& op) {
  if (op.shift != 1 && op.shift != -1)
    return site.Error("want the next stage or the previous one, have a shift of ", op.shift);
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  return Read(site.type(0));
}

}  // namespace coconet
