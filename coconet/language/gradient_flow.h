#pragma once

#include <map>
#include <optional>
#include <vector>

#include "coconet/language/language.h"

namespace coconet {

/// Gradients of one loss (Baydin et al., JMLR 2018, section 3.2). The gradient of a value is built
/// from its users' gradients, once, when it is first asked for.
class Gradients {
 public:
  /// `loss` is a scalar of the program; no gradient flows through `constants`.
  Gradients(Program& program, NodeId loss, const std::vector<NodeId>& constants);

  /// None if the loss does not depend on the value, or after a mistake of the program.
  std::optional<Tensor> Of(NodeId value);

  /// What Grad returns. The program keeps the gradients of each loss for the next call.
  static Tensor GradientOf(Tensor loss, Tensor of);
  /// Makes an operation that was just added a constant for gradients, and yields it.
  static Tensor AsConstant(Tensor a);
  /// The number that every element of a constant is; none for other tensors.
  static std::optional<double> NumberOf(const Tensor& a);
  /// The number of elements of a tensor of `shape`, in the dtype of `like`.
  static Tensor CountLike(Tensor like, const Shape& shape);
  /// What an extremum passes on to elements that are not it: 0, or NaN if it is NaN itself.
  static Tensor ZeroOrNaN(Tensor extremum);
  /// A sliced tensor as a Local one: this rank's part, and zeros elsewhere.
  static Tensor OwnPart(Tensor slices);

 private:
  /// The gradient of one value, in parts that are added. A part may have extents of 1, or fewer
  /// dimensions, if it is the same along a dimension.
  struct Parts {
    /// This rank's gradient of a sliced or Local value; of a Replicated value, the same on all
    /// ranks.
    std::optional<Tensor> whole = {};
    /// What this rank contributes to the gradient of a Replicated value, Local.
    std::optional<Tensor> partial = {};
    /// Slices, by dimension, that are to be gathered into the gradient of a Replicated value.
    std::map<int, Tensor> slices = {};
    bool none() const { return !whole.has_value() && !partial.has_value() && slices.empty(); }
  };

  const Parts& PartsOf(NodeId value);
  Parts Collect(NodeId value);
  /// Joins the ranges of a value that its users take; false unless they make all of it.
  bool CollectJoined(NodeId value, Parts& parts);
  /// Adds to `parts` what operand `k` of `user`, which is `value`, gets of the gradient of the
  /// user.
  void Flow(NodeId value, NodeId user, size_t k, Parts& parts);
  /// Adds to the error of an operation that was added for `user` which gradient it was for.
  void Explain(NodeId value, NodeId user);
  /// Adds what `user` contributes to the part that its layout belongs to. `is_partial`: it comes
  /// from a partial gradient of the user.
  void Add(NodeId value, NodeId user, const Tensor& contribution, bool is_partial, Parts& parts);
  /// The whole gradient, summed and gathered; perhaps with extents of 1.
  Tensor Complete(NodeId value, const Parts& parts);
  /// The parts with slices gathered into `whole`; the value's, kept so.
  Parts Gathered(NodeId value, const Parts& parts);

  /// The same for an operation between ranks; false if `user` is none.
  bool FlowBetweenRanks(NodeId value, NodeId user, Parts& parts);

  Tensor At(NodeId id) const;
  const TensorType& type(NodeId id) const;
  bool Fails() const;

  Program& program_;
  const NodeId loss_;
  std::vector<std::vector<std::pair<NodeId, size_t>>> users_;  // and which operand; up to the loss
  std::vector<bool> each_;                                     // EachNodes
  std::map<NodeId, Parts> found_;
};

/// The Cut of slices without weights, which a Cut cannot express.
Cut CutOf(const Layout& layout);
/// A gradient of a value in the value's shape and layout: what has extents of 1 is repeated.
Tensor Repeated(Tensor gradient, Tensor value);
/// The gradient of operand `k` of an operation that moves nothing between ranks, from `gradient`,
/// that of its result; its extents are the operand's, or 1. None: the operation has no gradient.
std::optional<Tensor> GradientOfOperand(const Op& op, const std::vector<Tensor>& operands,
                                        Tensor result, size_t k, Tensor gradient);

}  // namespace coconet
