#include "coconet/ir/infer.h"

#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"

namespace coconet {
namespace {

absl::StatusOr<TensorType> Declared(const Site& site, const TensorType& type, bool is_state) {
  for (const Dim& dim : type.shape) {
    if (!dim.bound() && !IsIdentifier(dim.symbol))
      return site.Error("'", dim.symbol, "' is not a name for a size");
  }
  if (absl::Status extents = CheckExtents(type.shape); !extents.ok())
    return site.Error(extents.message());
  if (type.layout.sliced()) RETURN_IF_ERROR(CheckSlicedDim(site, type.layout.dim, type.shape));
  if (type.layout.kind == Layout::Kind::kAuto && !is_state) {
    return site.Error("layout auto is for states; want local, replicated or sliced");
  }
  if (type.layout.by_place())
    return site.Error("parts of a place are for values between collectives; want sliced");
  return Normalized(type);
}

absl::StatusOr<TensorType> InferConst(const Site& site, const Const& op) {
  double stored = 0;
  alignas(8) char bytes[8] = {};
  StoreElement(op.dtype, bytes, 0, op.value);
  stored = LoadElement(op.dtype, bytes, 0);
  const bool in_range =
      std::isinf(op.value) || (std::isfinite(stored) && (stored != 0 || op.value == 0));
  const bool fits = IsFloat(op.dtype) ? in_range && !std::isnan(op.value) : stored == op.value;
  if (!fits) return site.Error(NumberText(op.value), " is not a number of type ", Name(op.dtype));
  return TensorType{op.dtype, {}, Layout::Replicated()};
}

absl::StatusOr<TensorType> InferWorldSize(const Site& site, const WorldSize& op) {
  if (op.dtype == DType::kBool) return site.Error("the number of ranks is not a bool");
  return TensorType{op.dtype, {}, Layout::Replicated()};
}

absl::Status CheckPointwiseDTypes(const Site& site, Pw fn) {
  const bool is_select = fn == Pw::kSelect;
  if (is_select && site.type(0).dtype != DType::kBool) {
    return site.Error("want a bool as the condition, have ", site.Operand(0));
  }
  const size_t first = is_select ? 1 : 0;
  const DType dtype = site.type(first).dtype;
  for (size_t i = first + 1; i < site.operands().size(); ++i) {
    if (site.type(i).dtype != dtype) {
      return site.Error("want operands of one dtype, ", site.HaveOperands(), "; use cast");
    }
  }
  if (dtype == DType::kBool && !is_select) return site.Error("want numbers, ", site.HaveOperands());
  if (Info(fn).float_only && !IsFloat(dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  return absl::OkStatus();
}

/// The shape that all operands broadcast to, dimensions aligned from the right.
absl::StatusOr<Shape> BroadcastShape(const Site& site) {
  Shape result;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    const Shape& shape = site.type(i).shape;
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), Dim(1));
    const size_t shift = result.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      Dim& extent = result[shift + d];
      if (extent == Dim(1)) {
        extent = shape[d];
      } else if (shape[d] != Dim(1) && shape[d] != extent) {
        return site.Error("shapes do not broadcast, ", site.HaveOperands());
      }
    }
  }
  if (absl::Status extents = CheckExtents(result); !extents.ok())
    return site.Error(extents.message());
  return result;
}

/// Operand i's slicing in terms of the result's dimensions. Every rank must hold the same part of
/// the result as of the operand, so the sliced dimension itself may not be broadcast.
absl::StatusOr<Layout> AlignedSlicing(const Site& site, size_t i, const Shape& result) {
  const TensorType& type = site.type(i);
  if (type.layout.dim == Layout::kFlat) {
    if (type.shape == result) return type.layout;
    return site.Error("an operand sliced flat cannot be broadcast to ", Text(result), ", ",
                      site.HaveOperands());
  }
  const int dim = type.layout.dim + static_cast<int>(result.size() - type.shape.size());
  if (type.shape[type.layout.dim] != result[dim]) {
    return site.Error("a sliced dimension cannot be broadcast to ", Text(result), ", ",
                      site.HaveOperands());
  }
  return Layout::Sliced(dim, type.layout.parts);
}

absl::StatusOr<Layout> CommonLayout(const Site& site, const Shape& result) {
  bool local = false;
  std::optional<Layout> sliced;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    switch (site.type(i).layout.kind) {
      case Layout::Kind::kLocal:
        local = true;
        break;
      case Layout::Kind::kSliced: {
        ASSIGN_OR_RETURN(const Layout aligned, AlignedSlicing(site, i, result));
        if (sliced.has_value() && *sliced != aligned) {
          return site.Error("operands are sliced over different ",
                            sliced->dim != aligned.dim ? "dimensions" : "ranks", ", ",
                            site.HaveOperands());
        }
        sliced = aligned;
        break;
      }
      case Layout::Kind::kReplicated:
      case Layout::Kind::kAuto:
        break;
    }
  }
  if (local && sliced.has_value()) {
    return site.Error(
        "a local operand does not meet a sliced one, whose other parts are on other ranks, ",
        site.HaveOperands());
  }
  return sliced.value_or(local ? Layout::Local() : Layout::Replicated());
}

absl::StatusOr<TensorType> InferPointwise(const Site& site, const Pointwise& op) {
  RETURN_IF_ERROR(CheckPointwiseDTypes(site, op.fn));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShape(site));
  ASSIGN_OR_RETURN(const Layout layout, CommonLayout(site, shape));
  const DType dtype = Info(op.fn).result == PwResult::kBool
                          ? DType::kBool
                          : site.type(site.operands().size() - 1).dtype;
  return TensorType{dtype, std::move(shape), layout};
}

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

absl::Status CheckRoot(const Site& site, int root) {
  return root >= 0 ? absl::OkStatus()
                   : site.Error("want the number of a rank as the root, have ", root);
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

absl::StatusOr<TensorType> InferOutput(const Site& site) {
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  return Read(site.type(0));
}

absl::StatusOr<TensorType> InferUpdate(const Site& site) {
  if (As<State>(site.g, site.operands()[0]) == nullptr) {
    return site.Error("want a state as the first operand, ", site.HaveOperands());
  }
  const TensorType& state = site.type(0);
  const TensorType& value = site.type(1);
  if (value.dtype != state.dtype) {
    return site.Error("want a value of the state's dtype, ", site.HaveOperands(), "; use cast");
  }
  if (value.shape != state.shape)
    return site.Error("want a value of the state's shape, ", site.HaveOperands());
  if (ReadLayout(value) != ReadLayout(state)) {
    return site.Error("want a value of the state's layout, ", site.HaveOperands());
  }
  return TensorType{value.dtype, value.shape, ReadLayout(value)};
}

size_t Arity(const Op& op) {
  return std::visit(Match{
                        [](const Input&) { return 0; },
                        [](const State&) { return 0; },
                        [](const Const&) { return 0; },
                        [](const WorldSize&) { return 0; },
                        [](const Pointwise& o) { return Info(o.fn).arity; },
                        [](const Cast&) { return 1; },
                        [](const Fold&) { return 1; },
                        [](const Total&) { return 1; },
                        [](const Dropout&) { return 2; },
                        [](const StochasticRound&) { return 2; },
                        [](const MatMul&) { return 2; },
                        [](const Transpose&) { return 1; },
                        [](const Reshape&) { return 1; },
                        [](const SubTensor&) { return 1; },
                        [](const AllReduce&) { return 1; },
                        [](const ReduceScatter&) { return 1; },
                        [](const AllGather&) { return 1; },
                        [](const Shard&) { return 1; },
                        [](const Broadcast&) { return 1; },
                        [](const ReduceTo&) { return 1; },
                        [](const AllToAll&) { return 1; },
                        [](const Send&) { return 1; },
                        [](const Update&) { return 2; },
                        [](const Output&) { return 1; },
                    },
                    op);
}

absl::Status CheckOperands(const Site& site) {
  const size_t arity = Arity(site.g.nodes[site.id].op);
  for (NodeId operand : site.operands()) {
    if (operand < 0 || operand >= site.id) {
      return absl::InvalidArgumentError(
          absl::StrCat("%", site.id, ": operand %", operand, " does not come before it"));
    }
  }
  if (site.operands().size() != arity) {
    return site.Error("want ", arity, " operand", arity == 1 ? "" : "s", ", have ",
                      site.operands().size());
  }
  for (NodeId operand : site.operands()) {
    if (As<Output>(site.g, operand) != nullptr)
      return site.Error("an output yields no value to use");
  }
  return absl::OkStatus();
}

/// The name that an operation gives to the outside; null for none.
const std::string* DeclaredName(const Op& op) {
  if (const auto* input = std::get_if<Input>(&op)) return &input->name;
  if (const auto* state = std::get_if<State>(&op)) return &state->name;
  if (const auto* output = std::get_if<Output>(&op)) return &output->name;
  return nullptr;
}

}  // namespace

bool IsIdentifier(absl::string_view word) {
  if (word.empty() || absl::ascii_isdigit(word[0]) || word[0] == '.') return false;
  for (char c : word) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  }
  return true;
}

absl::StatusOr<TensorType> InferNode(const Graph& g, NodeId id,
                                     const std::vector<TensorType>& types_before) {
  const Site site{g, id, types_before};
  RETURN_IF_ERROR(CheckOperands(site));
  using Result = absl::StatusOr<TensorType>;
  return std::visit(Match{
                        [&](const Input& o) { return Declared(site, o.type, /*is_state=*/false); },
                        [&](const State& o) { return Declared(site, o.type, /*is_state=*/true); },
                        [&](const Const& o) { return InferConst(site, o); },
                        [&](const WorldSize& o) { return InferWorldSize(site, o); },
                        [&](const Pointwise& o) { return InferPointwise(site, o); },
                        [&](const Cast& o) -> Result {
                          return TensorType{o.dtype, site.type(0).shape, ReadLayout(site.type(0))};
                        },
                        [&](const Fold& o) { return InferFold(site, o); },
                        [&](const Total&) { return InferTotal(site); },
                        [&](const Dropout& o) { return InferDropout(site, o); },
                        [&](const StochasticRound& o) { return InferStochasticRound(site, o); },
                        [&](const MatMul& o) { return InferMatMul(site, o); },
                        [&](const Transpose& o) { return InferTranspose(site, o); },
                        [&](const Reshape& o) { return InferReshape(site, o); },
                        [&](const SubTensor& o) { return InferSubTensor(site, o); },
                        [&](const AllReduce& o) { return InferAllReduce(site, o); },
                        [&](const ReduceScatter& o) { return InferReduceScatter(site, o); },
                        [&](const AllGather& o) { return InferAllGather(site, o); },
                        [&](const Shard& o) { return InferShard(site, o); },
                        [&](const Broadcast& o) { return InferBroadcast(site, o); },
                        [&](const ReduceTo& o) { return InferReduceTo(site, o); },
                        [&](const AllToAll& o) { return InferAllToAll(site, o); },
                        [&](const Send& o) { return InferSend(site, o); },
                        [&](const Update&) { return InferUpdate(site); },
                        [&](const Output&) { return InferOutput(site); },
                    },
                    g.nodes[id].op);
}

absl::Status TypeChecker::CheckNext(const Graph& g) {
  const NodeId id = static_cast<NodeId>(types_.size());
  const Node& node = g.nodes[id];
  ASSIGN_OR_RETURN(TensorType type, InferNode(g, id, types_));
  if (const std::string* name = DeclaredName(node.op); name != nullptr) {
    const Site site{g, id, types_};
    if (!IsIdentifier(*name) || *name == "world")
      return site.Error("'", *name, "' cannot be a name");
    if (!names_.insert(*name).second) return site.Error("the name '", *name, "' is taken");
  }
  if (std::holds_alternative<Update>(node.op) && !updated_.insert(node.inputs[0]).second) {
    return Site{g, id, types_}.Error("the state is updated twice; a step updates a state once");
  }
  types_.push_back(std::move(type));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const Graph& g) {
  if (!g.name.empty() && !IsIdentifier(g.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", g.name, "' cannot be the name of a program"));
  }
  TypeChecker checker;
  for (NodeId id = 0; id < g.size(); ++id) RETURN_IF_ERROR(checker.CheckNext(g));
  return checker.types();
}

}  // namespace coconet
