#include "coconet/ir/infer.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"

namespace coconet {
namespace {

absl::Status CheckTurn(const Site& site, const Turn& turn) {
  int64_t room = kMostWeight;
  for (int64_t weight : turn.before()) {
    if (weight < 0 || weight > room)
      return site.Error("want weights of at most 2^52 together, all 0 or more");
    room -= weight;
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const Site& site, const Layout& layout) {
  if (layout.owned()) RETURN_IF_ERROR(CheckTurn(site, layout.turn));
  if (!layout.by.empty() && !IsIdentifier(layout.by))
    return site.Error("'", layout.by, "' is not a name for a list of weights");
  const auto& [before, own, of] = layout.share;
  const bool in_range =
      of >= 0 && of <= kMostWeight && before >= 0 && before <= of && own >= 0 && own <= of - before;
  if (in_range) return absl::OkStatus();
  return site.Error("want weights BEFORE+OWN/ALL of at most 2^52 together, have ", before, "+", own,
                    "/", of);
}

absl::StatusOr<TensorType> InferDeclared(const Site& site, const TensorType& type, bool is_state) {
  for (const Dim& dim : type.shape) {
    for (const std::string& symbol : SymbolsOf(dim)) {
      if (!IsIdentifier(symbol)) return site.Error("'", symbol, "' is not a name for a size");
    }
  }
  if (absl::Status extents = CheckExtents(type.shape); !extents.ok())
    return site.Error(extents.message());
  if (type.layout.sliced()) RETURN_IF_ERROR(CheckSlicedDim(site, type.layout.dim, type.shape));
  RETURN_IF_ERROR(CheckWeights(site, type.layout));
  if (type.layout.kind == Layout::Kind::kAuto && !is_state) {
    return site.Error("layout auto is for states; want local, replicated or sliced");
  }
  if (type.layout.by_place())
    return site.Error("parts of a place are for values between collectives; want sliced");
  return Normalized(type);
}

absl::StatusOr<TensorType> InferConst(const Site& site, const Const& op) {
  const Number stored = Stored(op.dtype, op.value);
  if (!IsFloat(op.dtype)) {
    if (stored == op.value) return TensorType{op.dtype, {}, Layout::Replicated()};
    return site.Error(NumberText(op.value), " is not a number of type ", Name(op.dtype));
  }
  const double value = op.value.real();
  if (!(op.value == value)) {
    return site.Error("want a number that a double holds, have ", NumberText(op.value),
                      "; the nearest is ", NumberText(value));
  }
  const bool fits = (std::isinf(value) && HasInfinity(op.dtype)) ||
                    (stored.is_finite() && !op.value.is_nan() && (value == 0 || !(stored == 0)));
  if (!fits) return site.Error(NumberText(op.value), " is not a number of type ", Name(op.dtype));
  return TensorType{op.dtype, {}, Layout::Replicated()};
}

absl::StatusOr<TensorType> InferWorldSize(const Site& site, const WorldSize& op) {
  if (op.dtype == DType::kBool) return site.Error("the number of ranks is not a bool");
  return TensorType{op.dtype, {}, Layout::Replicated()};
}

absl::StatusOr<TensorType> InferCount(const Site& site, const Count& op) {
  if (op.dtype == DType::kBool) return site.Error("a number of elements is not a bool");
  if (absl::Status extents = CheckExtents(op.shape); !extents.ok())
    return site.Error(extents.message());
  const int64_t count = IsBound(op.shape) ? NumElements(op.shape) : 0;
  if (IsInteger(op.dtype) ? !(Stored(op.dtype, count) == count)
                          : static_cast<double>(count) > MaxFinite(op.dtype))
    return site.Error(NumElements(op.shape), " is not a number of type ", Name(op.dtype));
  return TensorType{op.dtype, {}, Layout::Replicated()};
}

absl::StatusOr<TensorType> InferRankNumber(const Site& site, const RankNumber& op) {
  if (op.dtype == DType::kBool) return site.Error("the number of a rank is not a bool");
  return TensorType{op.dtype, {}, Layout::Local()};
}

absl::StatusOr<TensorType> InferIota(const Site& site, const Iota& op) {
  const TensorType& type = site.type(0);
  const int rank = static_cast<int>(type.shape.size());
  if (op.dtype != DType::kI32 && op.dtype != DType::kI64)
    return site.Error("want an index in i32 or i64, have ", Name(op.dtype), "; use cast");
  if (rank == 0) return site.Error("want a tensor, ", site.HaveOperands());
  if (op.dim < 0 || op.dim >= rank)
    return site.Error("want a dimension below ", rank, ", have ", DimText(op.dim));
  const Dim& extent = type.shape[op.dim];
  if (extent.bound() && extent.size > 0 && !(Stored(op.dtype, extent.size - 1) == extent.size - 1))
    return site.Error("indices below ", Text(extent), " do not fit ", Name(op.dtype));
  return TensorType{op.dtype, type.shape, ReadLayout(type)};
}

absl::StatusOr<TensorType> InferBitCast(const Site& site, const BitCast& op) {
  const TensorType& type = site.type(0);
  if (type.dtype == DType::kBool || op.dtype == DType::kBool ||
      SizeOf(type.dtype) != SizeOf(op.dtype))
    return site.Error("want numbers of as many bits as ", Name(op.dtype), " has, ",
                      site.HaveOperands(), "; use cast");
  return TensorType{op.dtype, type.shape, ReadLayout(type)};
}

absl::StatusOr<TensorType> InferOpaque(const Site& site, const Opaque& op) {
  if (absl::Status extents = CheckExtents(op.shape); !extents.ok())
    return site.Error(extents.message());
  if (!(op.flops >= 0) || !(op.link_bytes >= 0) || std::isinf(op.flops + op.link_bytes))
    return site.Error("want costs of 0 or more, have ", op.flops, " and ", op.link_bytes);
  bool is_local = false;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    if (site.type(i).layout.sliced())
      return site.Error("want whole operands, ", site.HaveOperands(), "; use all_gather");
    is_local |= site.type(i).layout == Layout::Local();
  }
  return TensorType{op.dtype, op.shape, is_local ? Layout::Local() : Layout::Replicated()};
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

/// The last dimensions are folded, and are not known to be empty.
bool HasRows(const Fold& op, const Shape& shape) {
  if (op.dims.empty() || op.dims[0] + op.dims.size() != shape.size()) return false;
  return absl::c_none_of(op.dims, [&](int dim) { return shape[dim] == Dim(0); });
}

absl::StatusOr<TensorType> InferFold(const Site& site, const Fold& op) {
  TensorType type = Read(site.type(0));
  const int rank = static_cast<int>(type.shape.size());
  if (rank == 0) return site.Error("want a tensor, ", site.HaveOperands());
  if (type.dtype == DType::kBool) return site.Error("want numbers, ", site.HaveOperands());
  if (op.kind == FoldKind::kMean && !IsFloat(type.dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  for (size_t i = 0; i < op.dims.size(); ++i) {
    const bool ascends = i == 0 || op.dims[i - 1] < op.dims[i];
    if (op.dims[i] < 0 || op.dims[i] >= rank || !ascends) {
      return site.Error("want different dimensions below ", rank, " in ascending order, ",
                        site.HaveOperands());
    }
  }
  const bool all = op.dims.empty() || static_cast<int>(op.dims.size()) == rank;
  // The parts of a place are folded row by row only; a sum of all their elements would be in a sum
  // over ranks once a node.
  if (type.layout.by_place() && !HasRows(op, type.shape)) RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  if (type.layout.sliced()) {
    const bool folds_slices = absl::c_linear_search(op.dims, type.layout.dim);
    if (!all && type.layout.dim == Layout::kFlat) {
      return site.Error("rows of an operand sliced flat lie on several ranks, ",
                        site.HaveOperands());
    }
    if ((all || folds_slices) && type.layout.by_place()) RETURN_IF_ERROR(CheckNotByPlace(site, 0));
    if (all || folds_slices) type.layout = Layout::Local();
  }
  for (int dim : op.dims) type.shape[dim] = 1;
  if (all) type.shape.clear();
  return type;
}

absl::StatusOr<TensorType> InferTotal(const Site& site) {
  const TensorType& type = site.type(0);
  if (!type.shape.empty())
    return site.Error("want a scalar, ", site.HaveOperands(), "; fold the tensor first");
  if (type.dtype == DType::kBool)
    return site.Error("want a number, ", site.HaveOperands(), "; use cast");
  return Read(type);
}

/// What draws random words.
absl::Status CheckDraws(const Site& site, int64_t stream) {
  if (stream < 0) return site.Error("want a stream of 0 or more, have ", stream);
  const TensorType& seed = site.type(1);
  if (seed.dtype != DType::kI64 || !seed.shape.empty() ||
      ReadLayout(seed) != Layout::Replicated()) {
    return site.Error("want an i64[] replicated as the seed, have ", site.Operand(1));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> InferDropout(const Site& site, const Dropout& op) {
  if (!IsFloat(site.type(0).dtype))
    return site.Error("want floats, ", site.HaveOperands(), "; use cast");
  if (!(op.rate >= 0 && op.rate < 1))
    return site.Error("want a rate from 0 to below 1, have ", NumberText(op.rate));
  RETURN_IF_ERROR(CheckDraws(site, op.stream));
  return Read(site.type(0));
}

absl::StatusOr<TensorType> InferStochasticRound(const Site& site, const StochasticRound& op) {
  if (site.type(0).dtype != DType::kF32)
    return site.Error("want f32, ", site.HaveOperands(), "; use cast");
  RETURN_IF_ERROR(CheckDraws(site, op.stream));
  TensorType type = Read(site.type(0));
  type.dtype = DType::kBF16;
  return type;
}

absl::Status CheckOperands(const Site& site) {
  const Arity arity = ArityOf(site.g.nodes[site.id].op);
  const int count = static_cast<int>(site.operands().size());
  for (NodeId operand : site.operands()) {
    if (operand < 0 || operand >= site.id) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", site.id, ": operand ", operand, " does not come before it"));
    }
  }
  if (count < arity.least || count > arity.most) {
    return site.Error("want ", arity.least,
                      arity.most > arity.least ? absl::StrCat(" to ", arity.most) : "", " operand",
                      arity.most == 1 ? "" : "s", ", have ", count);
  }
  for (NodeId operand : site.operands()) {
    if (As<Output>(site.g, operand) != nullptr)
      return site.Error("an output yields no value to use");
  }
  return absl::OkStatus();
}

}  // namespace

Layout ReadLayout(const TensorType& type) {
  return type.layout.kind == Layout::Kind::kAuto ? Layout::Replicated() : type.layout;
}

TensorType Normalized(TensorType type) {
  const Layout& layout = type.layout;
  if (layout.sliced() && layout.dim == Layout::kFlat && !layout.by_place() &&
      type.shape.size() == 1)
    type.layout.dim = 0;
  return type;
}

absl::Status CheckNotByPlace(const Site& site, size_t i) {
  if (!site.type(i).layout.by_place()) return absl::OkStatus();
  return site.Error(
      "parts of a place are for elementwise operations and collectives within or across nodes, "
      "have ",
      site.Operand(i));
}

absl::Status CheckSlicedDim(const Site& site, int dim, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  if (rank == 0 && dim == Layout::kOwned)
    return site.Error("a scalar has no owner; want it local or replicated");
  if (rank == 0) return site.Error("a scalar has no dimension to slice");
  if (dim == Layout::kFlat || dim == Layout::kOwned || (dim >= 0 && dim < rank))
    return absl::OkStatus();
  return site.Error("want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape), ", have ",
                    dim);
}

absl::Status CheckCut(const Site& site, const Cut& to, const Shape& shape) {
  RETURN_IF_ERROR(CheckSlicedDim(site, to.dim, shape));
  return CheckWeights(site, Layout::Sliced(to));
}

TensorType Read(TensorType type) {
  type.layout = ReadLayout(type);
  return type;
}

bool IsIdentifier(absl::string_view word) {
  if (word.empty() || absl::ascii_isdigit(word[0]) || word[0] == '.') return false;
  for (char c : word) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  }
  return true;
}

bool IsReserved(absl::string_view word) {
  return word == "world" || word == "and" || word == "or" || word == "not";
}

namespace {

/// The rules by operation.
absl::StatusOr<TensorType> InferAt(const Site& site) {
  using Result = absl::StatusOr<TensorType>;
  return std::visit(
      Match{
          [&](const Input& o) { return InferDeclared(site, o.type, /*is_state=*/false); },
          [&](const State& o) { return InferDeclared(site, o.type, /*is_state=*/true); },
          [&](const Const& o) { return InferConst(site, o); },
          [&](const WorldSize& o) { return InferWorldSize(site, o); },
          [&](const Count& o) { return InferCount(site, o); },
          [&](const RankNumber& o) { return InferRankNumber(site, o); },
          [&](const Pointwise& o) { return InferPointwise(site, o); },
          [&](const Cast& o) -> Result {
            return TensorType{o.dtype, site.type(0).shape, ReadLayout(site.type(0))};
          },
          [&](const BitCast& o) { return InferBitCast(site, o); },
          [&](const Iota& o) { return InferIota(site, o); },
          [&](const Fold& o) { return InferFold(site, o); },
          [&](const Total&) { return InferTotal(site); },
          [&](const Dropout& o) { return InferDropout(site, o); },
          [&](const StochasticRound& o) { return InferStochasticRound(site, o); },
          [&](const MatMul& o) { return InferMatMul(site, o); },
          [&](const MappedView auto& o) { return o.Infer(site); },
          [&](const Concat& o) { return InferConcat(site, o); },
          [&](const Gather& o) { return InferGather(site, o); },
          [&](const EmbeddingBag& o) { return InferEmbeddingBag(site, o); },
          [&](const ScatterAdd& o) { return InferScatterAdd(site, o); },
          [&](const AllReduce& o) { return InferAllReduce(site, o); },
          [&](const ReduceScatter& o) { return InferReduceScatter(site, o); },
          [&](const AllGather& o) { return InferAllGather(site, o); },
          [&](const Shard& o) { return InferShard(site, o); },
          [&](const Broadcast& o) { return InferBroadcast(site, o); },
          [&](const ReduceTo& o) { return InferReduceTo(site, o); },
          [&](const AllToAll& o) { return InferAllToAll(site, o); },
          [&](const Send& o) { return InferSend(site, o); },
          [&](const Opaque& o) { return InferOpaque(site, o); },
          [&](const Update&) { return InferUpdate(site); },
          [&](const Output&) { return InferOutput(site); },
      },
      site.g.nodes[site.id].op);
}

}  // namespace

namespace {

std::string DescribedWithin(const Graph& g, NodeId id, int depth) {
  if (id < 0 || id >= g.size()) return "?";
  const Node& node = g.nodes[id];
  if (RoleOf(node.op) == Role::kDeclaration) return *DeclaredName(node.op);
  std::vector<std::string> operands;
  for (NodeId input : node.inputs)
    operands.push_back(depth > 0 ? DescribedWithin(g, input, depth - 1) : "");
  const std::string text = OpText(node.op, operands);
  return depth > 0 || node.inputs.empty() ? text
                                          : absl::StrCat(text.substr(0, text.find('(')), "(...)");
}

}  // namespace

std::string Described(const Graph& g, NodeId id) {
  constexpr int kDepth = 2;
  return DescribedWithin(g, id, kDepth);
}

absl::StatusOr<TensorType> InferNode(const Graph& g, NodeId id,
                                     const std::vector<TensorType>& types_before) {
  const Site site{g, id, types_before};
  RETURN_IF_ERROR(CheckOperands(site));
  if (!HasOwner(site)) return InferAt(site);
  ASSIGN_OR_RETURN(const Site owners, AsItsOwner(site));
  ASSIGN_OR_RETURN(TensorType type, InferAt(owners));
  return OfItsOwner(site, std::move(type));
}

absl::Status TypeChecker::CheckNext(const Graph& g) {
  const NodeId id = static_cast<NodeId>(types_.size());
  const Node& node = g.nodes[id];
  ASSIGN_OR_RETURN(TensorType type, InferNode(g, id, types_));
  if (const std::string* name = DeclaredName(node.op); name != nullptr) {
    const Site site{g, id, types_};
    if (!IsIdentifier(*name) || IsReserved(*name))
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
  return std::move(checker).types();
}

std::string OpaqueOperations(const Graph& g) {
  std::map<std::string, std::pair<int64_t, NodeId>> found;  // count, the first
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* opaque = As<Opaque>(g, id); opaque != nullptr)
      ++found.try_emplace(opaque->what, 0, id).first->second.first;
  }
  return absl::StrJoin(found, ", ", [](std::string* out, const auto& of) {
    const auto& [count, first] = of.second;
    absl::StrAppend(out, count, " x ", of.first, " (first %", first, ")");
  });
}

absl::Status CheckRuns(const Graph& g, int ranks) {
  if (const std::string opaque = OpaqueOperations(g); !opaque.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        NameForMessages(g), ": it can be planned, but not run: of these operations only the costs ",
        "are known: ", opaque));
  }
  for (NodeId id = 0; id < g.size(); ++id) {
    const std::optional<int> root = RootOf(g.nodes[id].op);
    if (!root.has_value() || *root < ranks) continue;
    return absl::InvalidArgumentError(absl::StrCat(Described(g, id), ": want a rank from 0 to ",
                                                   ranks - 1, ", have ", *root, "; there are ",
                                                   ranks, ranks == 1 ? " rank" : " ranks"));
  }
  return CheckScaleSlices(g, ranks);
}

}  // namespace coconet
