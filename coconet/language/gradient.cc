#include "coconet/language/gradient.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/language/bags.h"
#include "coconet/language/gradient_flow.h"

namespace coconet {
namespace {

void AddTo(std::optional<Tensor>& sum, const Tensor& more) {
  sum = sum.has_value() ? *sum + more : more;
}

bool IsReplicated(const Layout& layout) {
  return layout.kind == Layout::Kind::kReplicated || layout.kind == Layout::Kind::kAuto;
}

/// Whether gradients may flow to operands: the result has a derivative, and one that is not 0
/// wherever it exists.
bool HasDerivative(const Op& op, DType result) {
  const auto* pointwise = std::get_if<Pointwise>(&op);
  const bool is_step = pointwise != nullptr && Info(pointwise->fn).is_step;
  return IsFloat(result) && !is_step;
}

}  // namespace

Cut CutOf(const Layout& layout) {
  Cut cut(layout.dim);
  cut.by = layout.by;
  cut.turn = layout.turn;
  return cut;
}

Gradients::Gradients(Program& program, NodeId loss, const std::vector<NodeId>& constants)
    : program_(program), loss_(loss), users_(loss + 1) {
  const std::set<NodeId> constant(constants.begin(), constants.end());
  std::vector<bool> needed(loss + 1);
  needed[loss] = true;
  for (NodeId id = loss; id >= 0; --id) {
    const bool has_derivative = HasDerivative(program_.graph_.nodes[id].op, type(id).dtype);
    if (!needed[id] || constant.contains(id) || !has_derivative) continue;
    const std::vector<NodeId>& inputs = program_.graph_.nodes[id].inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const bool is_old = k == 0 && As<struct Update>(program_.graph_, id);
      if (is_old || !IsFloat(type(inputs[k]).dtype)) continue;
      needed[inputs[k]] = true;
      users_[inputs[k]].emplace_back(id, k);
    }
  }
  each_ = EachNodes(program_.graph_);
}

Tensor Gradients::At(NodeId id) const {
  return id < 0 ? Tensor(Tensor::Kind::kMistake, &program_, -1)
                : Tensor(Tensor::Kind::kNode, &program_, id);
}

const TensorType& Gradients::type(NodeId id) const { return program_.checker_.types()[id]; }

bool Gradients::Fails() const { return !program_.status_.ok(); }

std::optional<Tensor> Gradients::Of(NodeId value) {
  if (value > loss_) return std::nullopt;
  const Parts& parts = PartsOf(value);
  if (Fails() || parts.none()) return std::nullopt;
  return Repeated(Complete(value, parts), At(value));
}

const Gradients::Parts& Gradients::PartsOf(NodeId value) {
  std::set<NodeId> missing;  // the value, and what is computed from it
  std::vector<NodeId> stack = {value};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (found_.contains(id) || !missing.insert(id).second) continue;
    for (const auto& [user, k] : users_[id]) stack.push_back(user);
  }
  for (auto id = missing.rbegin(); id != missing.rend() && !Fails(); ++id)
    found_.emplace(*id, Collect(*id));
  return found_[value];
}

Gradients::Parts Gradients::Collect(NodeId value) {
  Parts parts;
  if (value == loss_) parts.whole = program_.Constant(1, type(value).dtype);
  if (CollectJoined(value, parts)) return parts;
  for (const auto& [user, k] : users_[value]) {
    if (Fails()) break;
    Flow(value, user, k, parts);
    if (Fails()) Explain(value, user);
  }
  return parts;
}

void Gradients::Explain(NodeId value, NodeId user) {
  const absl::string_view message = program_.status_.message();
  if (absl::StartsWith(message, "grad: ")) return;
  program_.status_ = absl::InvalidArgumentError(absl::StrCat(
      "grad: what ", Described(program_.graph_, user), " passes on to ",
      Described(program_.graph_, value), " : ", Text(type(value)), " cannot be computed: ", message,
      "; write it with other slices, or take stop_gradient of the operand"));
}

bool Gradients::CollectJoined(NodeId value, Parts& parts) {
  const auto range_of = [&](NodeId user) { return As<struct SubTensor>(program_.graph_, user); };
  std::vector<NodeId> users;
  for (const auto& [user, k] : users_[value]) {
    if (range_of(user) == nullptr || found_.at(user).none()) return false;
    users.push_back(user);
  }
  if (users.size() < 2 || users.size() > kMostJoined) return false;
  absl::c_sort(users, [&](NodeId a, NodeId b) { return range_of(a)->begin < range_of(b)->begin; });
  const int dim = range_of(users[0])->dim;
  int64_t end = 0;
  for (NodeId user : users) {
    if (range_of(user)->dim != dim || range_of(user)->begin != end) return false;
    end = range_of(user)->end;
  }
  const Dim& extent = type(value).shape[dim];
  if (!extent.bound() || extent.size != end) return false;
  // All of one kind, as where a layer's product is cut in three.
  const auto join = [&](auto part_of) -> std::optional<Tensor> {
    std::vector<Tensor> joined;
    for (NodeId user : users) {
      const std::optional<Tensor>& part = part_of(found_.at(user));
      if (part.has_value()) joined.push_back(Repeated(*part, At(user)));
    }
    if (joined.size() < users.size()) return std::nullopt;
    return Concat(std::move(joined), dim);
  };
  const bool wholes = absl::c_all_of(users, [&](NodeId user) {
    const Parts& p = found_.at(user);
    return p.whole.has_value() && !p.partial.has_value() && p.slices.empty();
  });
  const bool partials = absl::c_all_of(users, [&](NodeId user) {
    const Parts& p = found_.at(user);
    return p.partial.has_value() && !p.whole.has_value() && p.slices.empty();
  });
  if (wholes) {
    parts.whole = join([](const Parts& p) -> const std::optional<Tensor>& { return p.whole; });
  } else if (partials) {
    parts.partial = join([](const Parts& p) -> const std::optional<Tensor>& { return p.partial; });
  }
  return wholes || partials;
}

void Gradients::Flow(NodeId value, NodeId user, size_t k, Parts& parts) {
  if (found_.at(user).none() || FlowBetweenRanks(value, user, parts)) return;
  const Parts of_user = Gathered(user, found_.at(user));
  const Op op = program_.graph_.nodes[user].op;
  std::vector<Tensor> operands;
  for (NodeId input : program_.graph_.nodes[user].inputs) operands.push_back(At(input));
  if (std::holds_alternative<struct MatMul>(op) &&
      IsFloat8(type(program_.graph_.nodes[user].inputs[0]).dtype)) {
    program_.Mistake(absl::StrCat(
        "grad: ", Described(program_.graph_, user), " has no gradient with respect to ",
        Described(program_.graph_, value), " : ", Text(type(value)),
        IsFloat8(type(value).dtype) ? ", to whose 8 bits it would be rounded"
                                    : ", the scales of 8-bit floats",
        "; multiply casts of the operands to bf16, or take stop_gradient of them"));
    return;
  }
  for (const bool is_partial : {false, true}) {
    std::optional<Tensor> gradient = is_partial ? of_user.partial : of_user.whole;
    if (!gradient.has_value() || Fails()) continue;
    // A rank takes its own values for its own part only.
    if (type(user).layout.sliced() && type(value).layout.kind == Layout::Kind::kLocal)
      gradient = Repeated(*gradient, At(user));
    const std::optional<Tensor> to = GradientOfOperand(op, operands, At(user), k, *gradient);
    if (to.has_value()) {
      Add(value, user, *to, is_partial, parts);
    } else {
      program_.Mistake(absl::StrCat(
          "grad: ", Described(program_.graph_, user), " has no gradient with respect to ",
          Described(program_.graph_, value), " : ", Text(type(value)),
          "; bind its sizes, write it in other operations, or take stop_gradient of the operand"));
    }
  }
}

void Gradients::Add(NodeId value, NodeId user, const Tensor& contribution, bool is_partial,
                    Parts& parts) {
  if (contribution.id() < 0) return;  // a mistake, which the program holds
  Tensor to = contribution;
  if (!each_.empty() && each_[user] && !each_[value]) {
    if (!to.type().shape.empty()) {
      program_.Mistake(absl::StrCat(
          "grad: ", Described(program_.graph_, value),
          " is shared by the tensors of a list; want a scalar, or one tensor each, have ",
          Text(type(value))));
      return;
    }
    to = Total(to);
  }
  const Layout& layout = to.type().layout;
  if (type(value).layout.kind == Layout::Kind::kLocal && layout.sliced())
    return AddTo(parts.whole, OwnPart(to));
  if (type(value).layout.sliced() && layout.kind == Layout::Kind::kLocal)
    return AddTo(parts.whole, Repeated(to, At(value)));  // of a rank's slice only
  if (!IsReplicated(type(value).layout)) return AddTo(parts.whole, to);
  if (layout.sliced()) {
    const auto [at, is_new] = parts.slices.try_emplace(layout.dim, to);
    if (!is_new) at->second = at->second + to;
  } else if (layout.kind == Layout::Kind::kLocal) {
    AddTo(parts.partial, to);
  } else if (is_partial || type(user).layout.kind == Layout::Kind::kLocal) {
    AddTo(parts.whole, to * program_.world(to.type().dtype));  // each rank contributes as much
  } else {
    AddTo(parts.whole, to);
  }
}

Tensor Gradients::OwnPart(Tensor slices) {
  if (!slices.is_node()) return slices;
  const Tensor rank = slices.program_->rank(DType::kI32);
  const Tensor owner =
      AllGather(Select(Iota(DType::kI32, slices, 0) >= 0, rank, Iota(DType::kI32, slices, 0)));
  return Select(Equal(owner, rank), AllGather(slices), 0);
}

Gradients::Parts Gradients::Gathered(NodeId value, const Parts& parts) {
  Parts gathered = parts;
  for (const auto& [dim, slices] : parts.slices)
    AddTo(gathered.whole, AllGather(Repeated(slices, At(value))));
  gathered.slices.clear();
  if (!parts.slices.empty()) found_[value] = gathered;  // gathered once
  return gathered;
}

Tensor Gradients::Complete(NodeId value, const Parts& parts) {
  const Parts gathered = Gathered(value, parts);
  std::optional<Tensor> sum = gathered.whole;
  if (gathered.partial.has_value()) AddTo(sum, AllReduce(ReduceKind::kSum, *gathered.partial));
  return *sum;
}

bool Gradients::FlowBetweenRanks(NodeId value, NodeId user, Parts& parts) {
  const Op op = program_.graph_.nodes[user].op;  // a copy: the graph grows
  const Tensor x = At(value), y = At(user);
  const auto refuse = [&](absl::string_view wanted) {
    program_.Mistake(absl::StrCat("grad: ", Described(program_.graph_, user),
                                  " has no gradient: want ", wanted,
                                  ", or stop_gradient of its operand"));
    return true;
  };
  constexpr absl::string_view kAllRanks = "a sum over all ranks, or the greatest of all";
  const auto add = [&](const Tensor& to) {
    if (to.id() >= 0) AddTo(parts.whole, to);
    return true;
  };
  if (const auto* all_reduce = std::get_if<struct AllReduce>(&op)) {
    if (all_reduce->span != Span::kAll) return refuse(kAllRanks);
    const bool sums = all_reduce->kind == ReduceKind::kSum;
    const Tensor whole = Complete(user, found_.at(user));
    if (sums || whole.id() < 0) return add(whole);
    // Equal ranks share.
    const Tensor found = Equal(x, y);
    const Tensor ranks = AllReduce(ReduceKind::kSum, CastTo(type(user).dtype, found));
    return add(Select(found, whole / ranks, ZeroOrNaN(y)));
  }
  if (const auto* reduce_scatter = std::get_if<struct ReduceScatter>(&op)) {
    if (reduce_scatter->kind != ReduceKind::kSum || reduce_scatter->span != Span::kAll)
      return refuse("a sum over all ranks");
    return add(AllGather(Repeated(*Gathered(user, found_.at(user)).whole, y)));
  }
  const Layout& layout = type(value).layout;
  const bool is_by_weights = layout.cut() && layout.weighted();  // which a Cut cannot say
  const bool takes_parts =
      std::holds_alternative<struct AllGather>(op) || std::holds_alternative<struct AllToAll>(op);
  if (takes_parts && is_by_weights) return refuse("slices of one size, or an owned tensor");
  if (const auto* gather = std::get_if<struct AllGather>(&op)) {
    if (gather->span != Span::kAll) return refuse("all ranks");
    const Cut cut = CutOf(type(value).layout);
    Parts of_user = found_.at(user);
    if (const auto same = of_user.slices.find(cut.dim);
        same != of_user.slices.end() && same->second.type().layout == type(value).layout) {
      add(same->second);
      of_user.slices.erase(same);
    }
    for (const auto& [dim, slices] : of_user.slices)
      AddTo(of_user.whole, AllGather(Repeated(slices, y)));
    if (of_user.whole.has_value()) add(Shard(Repeated(*of_user.whole, y), cut));
    if (of_user.partial.has_value())
      add(ReduceScatter(ReduceKind::kSum, Repeated(*of_user.partial, y), cut));
    return true;
  }
  if (const auto* broadcast = std::get_if<struct Broadcast>(&op)) {
    const Parts of_user = Gathered(user, found_.at(user));
    if (of_user.whole.has_value()) {
      const Tensor is_root = Equal(program_.rank(DType::kI32), broadcast->root);
      add(Select(is_root, *of_user.whole, 0));
    }
    if (of_user.partial.has_value())
      add(Reduce(ReduceKind::kSum, Repeated(*of_user.partial, y), broadcast->root));
    return true;
  }
  if (const auto* reduce = std::get_if<ReduceTo>(&op)) {
    if (reduce->kind != ReduceKind::kSum) return refuse("a sum over all ranks");
    const Tensor whole = *found_.at(user).whole;
    const bool is_local = whole.id() >= 0 && whole.type().layout == Layout::Local();
    return add(is_local ? Broadcast(Repeated(whole, y), reduce->root) : whole);
  }
  if (std::holds_alternative<struct AllToAll>(op))
    return add(AllToAll(Repeated(*found_.at(user).whole, y), CutOf(type(value).layout)));
  return false;
}

Tensor Gradients::CountLike(Tensor like, const Shape& shape) {
  return like.is_node() ? like.program_->count(like.type().dtype, shape) : like;
}

std::optional<double> Gradients::NumberOf(const Tensor& a) {
  if (!a.is_node()) return std::nullopt;
  const auto* constant = std::get_if<Const>(&a.program_->graph_.nodes[a.id_].op);
  return constant == nullptr ? std::nullopt : std::optional(constant->value.real());
}

Tensor Gradients::ZeroOrNaN(Tensor extremum) {
  return AsConstant(Select(Equal(extremum, extremum), 0, extremum));
}

Tensor Gradients::AsConstant(Tensor a) {
  if (a.is_node()) a.program_->constants_.push_back(a.id_);
  return a;
}

Tensor Gradients::GradientOf(Tensor loss, Tensor of) {
  Program* const in = loss.program_ != nullptr ? loss.program_ : of.program_;
  const Tensor mistake(Tensor::Kind::kMistake, in, -1);
  if (in == nullptr || !in->status_.ok()) return mistake;
  const bool is_scalar = loss.is_node() && loss.type().shape.empty() && IsFloat(loss.type().dtype);
  if (!is_scalar) {
    return in->Mistake(absl::StrCat("grad: want a loss that is a scalar of floats, have ",
                                    in->OperandText(loss),
                                    loss.is_node() ? absl::StrCat(" : ", Text(loss.type())) : "",
                                    "; reduce it by sum or mean"));
  }
  if (!of.is_node() || of.program_ != in)
    return in->Mistake(
        absl::StrCat("grad: want a value of the loss's program, have ", in->OperandText(of)));
  std::unique_ptr<Gradients>& gradients = in->gradients_[loss.id_];
  if (gradients == nullptr) gradients = std::make_unique<Gradients>(*in, loss.id_, in->constants_);
  const std::optional<Tensor> gradient = gradients->Of(of.id_);
  if (gradient.has_value()) return *gradient;
  return in->Mistake(absl::StrCat("grad: ", in->OperandText(loss), " does not depend on ",
                                  in->OperandText(of), " : ", Text(of.type()),
                                  " by operations that have a gradient; leave it out"));
}

Tensor Grad(Tensor loss, Tensor of) { return Gradients::GradientOf(loss, of); }

std::vector<Tensor> Grad(Tensor loss, const std::vector<Tensor>& of) {
  std::vector<Tensor> gradients;
  gradients.reserve(of.size());
  for (const Tensor& value : of) gradients.push_back(Grad(loss, value));
  return gradients;
}

Tensor StopGradient(Tensor a) {
  return a.id() < 0 ? a : Gradients::AsConstant(Reshape(a, a.type().shape));
}

}  // namespace coconet
