#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/infer.h"

namespace coconet {

/// One operation under inference: what the rules read, and how they report errors.
struct Site {
  const Graph& g;
  NodeId id;
  const std::vector<TensorType>& types;
  /// Types of the operands if the rules see others than `types` has (AsItsOwner).
  std::vector<TensorType> seen = {};

  const std::vector<NodeId>& operands() const { return g.nodes[id].inputs; }
  const TensorType& type(size_t i) const { return seen.empty() ? types[operands()[i]] : seen[i]; }

  template <class... Parts>
  absl::Status Error(const Parts&... parts) const {
    const bool is_declared = DeclaredName(g.nodes[id].op) != nullptr;
    return absl::InvalidArgumentError(
        absl::StrCat(is_declared ? NodeText(g, id) : Described(g, id), ": ", parts...));
  }
  /// "g, f32[N] local"
  std::string Operand(size_t i) const {
    return absl::StrCat(Described(g, operands()[i]), " : ", Text(types[operands()[i]]));
  }
  /// "have a : f32[N] local and b : f16[N] local"
  std::string HaveOperands() const {
    std::string text = "have ";
    for (size_t i = 0; i < operands().size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : i + 1 == operands().size() ? " and " : ", ", Operand(i));
    }
    return text;
  }
};

/// A state whose layout is open is read as Replicated.
Layout ReadLayout(const TensorType& type);
TensorType Read(TensorType type);

/// Sliced(flat) of a vector is written Sliced(0).
TensorType Normalized(TensorType type);

/// Fails if operand i is sliced by place: several ranks would have the same part of it, or each
/// node another contribution to it.
absl::Status CheckNotByPlace(const Site& site, size_t i);

/// Fails unless a tensor of `shape` can be sliced over `dim`.
absl::Status CheckSlicedDim(const Site& site, int dim, const Shape& shape);

/// Fails unless `to` is a place for the elements of a tensor of `shape`.
absl::Status CheckCut(const Site& site, const Cut& to, const Shape& shape);

// Rules in files of their own, but for MappedViews, whose Infer is in infer_views.cc. All others
// are in infer.cc.

// infer_collectives.cc, which has what lies on one rank, too
/// Whether one of a computation's operands is owned.
bool HasOwner(const Site& site);
/// The same operation as the owner of its operands sees it: owned operands are whole. An error if
/// the operands have different owners, or one of them is whole on no rank.
absl::StatusOr<Site> AsItsOwner(const Site& site);
/// The type of what the owner computes, from the type that it sees.
absl::StatusOr<TensorType> OfItsOwner(const Site& site, TensorType seen);

// infer_elementwise.cc
absl::StatusOr<TensorType> InferPointwise(const Site& site, const Pointwise& op);
// infer_views.cc
absl::StatusOr<TensorType> InferConcat(const Site& site, const Concat& op);
absl::StatusOr<TensorType> InferGather(const Site& site, const Gather& op);
absl::StatusOr<TensorType> InferEmbeddingBag(const Site& site, const EmbeddingBag& op);
absl::StatusOr<TensorType> InferScatterAdd(const Site& site, const ScatterAdd& op);
// infer_matmul.cc
absl::StatusOr<TensorType> InferMatMul(const Site& site, const MatMul& op);
// infer_collectives.cc
absl::StatusOr<TensorType> InferAllReduce(const Site& site, const AllReduce& op);
absl::StatusOr<TensorType> InferReduceScatter(const Site& site, const ReduceScatter& op);
absl::StatusOr<TensorType> InferAllGather(const Site& site, const AllGather& op);
absl::StatusOr<TensorType> InferShard(const Site& site, const Shard& op);
absl::StatusOr<TensorType> InferBroadcast(const Site& site, const Broadcast& op);
absl::StatusOr<TensorType> InferReduceTo(const Site& site, const ReduceTo& op);
absl::StatusOr<TensorType> InferAllToAll(const Site& site, const AllToAll& op);
absl::StatusOr<TensorType> InferSend(const Site& site, const Send& op);

}  // namespace coconet
