#include "jit/expressions/loads.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/operand_index.h"
#include "jit/expressions/operations.h"
#include "jit/storage/literal.h"

namespace coconet {

namespace {

/// How a gather reads its table.
struct TableRows {
  StoredMap map;       // of row 0
  int64_t stride = 0;  // from row to row
};

TableRows RowsOf(const Gather& op, const TensorType& table, const Shape& result, int ranks) {
  TableRows rows;
  Shape stored = table.shape;
  TensorSlicing cut;
  if (table.layout.cut()) {
    cut = SlicingOf(table, ranks);
    stored[table.layout.dim] = cut.slicing.per;
  }
  rows.map = ViewMapOf(op, stored, result);
  rows.map.elements_per_rank = cut.slicing.per * cut.inner;
  rows.map.shift = cut.slicing.shift * cut.inner;
  rows.stride = SlicingOf(stored, op.dim, 1).inner;
  return rows;
}

/// The indices as they broadcast to the gather's result: each is that of a whole row.
TensorType SpreadOverRows(TensorType indices, const TensorType& table, const Gather& op) {
  indices.shape.resize(indices.shape.size() + table.shape.size() - op.dim - 1, Dim(1));
  return indices;
}

}  // namespace

absl::string_view ReducedText(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "Summed";
    case ReduceKind::kMax:
      return "Greatest";
    case ReduceKind::kMin:
      return "Least";
  }
  CC_CHECK(false);
}

absl::StatusOr<std::string> Loads::Misplaced(NodeId id, absl::string_view where) const {
  return absl::InternalError(absl::StrCat("emit: ", NodeText(k_.g, id), " is used ", where));
}

std::string Loads::MapField(const StoredMap& map, const TensorType& stored, std::string* base) {
  const int number = k_.named++;
  const std::string field = k_.args.Map(absl::StrCat("map", number), map.dims, map.strides);
  if (stored.layout.cut()) {
    const bool by_place = stored.layout.by_place();
    const std::string skip = k_.args.Integer(absl::StrCat("skip", number), map.elements_per_rank);
    if (stored.layout.weighted()) {
      absl::StrAppend(base, " - BeginOf(", skip, ", ",
                      k_.args.Integer(absl::StrCat("shift", number), map.shift), ", rank)");
    } else {
      absl::StrAppend(base, by_place ? " - slice * " : " - rank * ", skip);
    }
    const int64_t part = SlicingOf(stored, k_.target.ranks).slice_elements();
    if (by_place)
      absl::StrAppend(base, " + node * ", k_.args.Integer(absl::StrCat("part", number), part));
  }
  if (map.offset != 0)
    absl::StrAppend(base, " + ", k_.args.Integer(absl::StrCat("begin", number), map.offset));
  return field;
}

std::string Loads::Fetched(PassText& pass, const std::string& place, DType dtype) {
  return absl::StrCat(
      "ValueOf(",
      pass.Fetch(absl::StrCat("Fetch<V>(", place, ")"), static_cast<int64_t>(SizeOf(dtype))), ")");
}

std::string Loads::Mapped(PassText& pass, const StoredMap& map, const TensorType& stored,
                          std::string base) {
  if (map.identity) return Fetched(pass, base + " + i", stored.dtype);
  const std::string field = MapField(map, stored, &base);
  const bool in_rows = !map.dims.empty() && k_.PacksLieIn(map.dims.back());
  const int64_t stride = in_rows ? map.strides.back() : -1;
  if (stride == 0) return absl::StrCat("Splat<V>(LoadOne(", base, " + At(", field, ", i)))");
  if (stride == 1) return absl::StrCat("LoadAnywhere<V>(", base, " + At(", field, ", i))");
  return absl::StrCat("LoadBroadcast<V>(", base, ", i, ", field, ")");
}

bool Loads::IsRowOfTiles(const Shape& shape) const {
  return shape.back() == k_.space.shape.back() && NumElements(shape) == shape.back().size;
}

absl::StatusOr<std::string> Loads::Element(PhaseText& phase, PassText& pass, NodeId id) {
  const int buffer = k_.table.of[id];
  CC_CHECK(buffer >= 0);
  const TensorType& t = k_.type(id);
  const std::string base = k_.args.Own(buffer, t.dtype);
  phase.CountLoad(base, Bytes(id));
  const bool sliced = t.layout.sliced();
  if (sliced && !phase.on_slices) {
    return absl::InternalError(
        absl::StrCat("emit: ", NodeText(k_.g, id), " is sliced, and read over the whole tensor"));
  }
  if (t.shape == k_.space.shape) {
    pass.places.push_back(absl::StrCat(base, sliced ? " + (i - c.shift)" : " + i"));
    return Fetched(pass, pass.places.back(), t.dtype);
  }
  if (k_.tiled >= 0 && IsRowOfTiles(t.shape))
    return Fetched(pass, absl::StrCat(base, sliced ? " + column" : " + (left + column)"), t.dtype);
  return Mapped(pass, StoredMapOf(t, k_.space.shape, k_.target.ranks), t, base);
}

absl::StatusOr<std::string> Loads::ViewOfSlices(const PhaseText& phase, PassText& pass, NodeId id) {
  const NodeId operand = k_.Operand(id);
  const TensorType& t = k_.type(operand);
  if (!phase.on_slices) return Misplaced(id, "over the whole tensor");
  std::string base = k_.args.Own(k_.table.of[operand], t.dtype);
  const Op& view = k_.g.nodes[id].op;
  // The parts of both lie alike, wherever they begin.
  if (!MovesElements(view, k_.type(id).shape, t.shape))
    return Fetched(pass, base + " + (i - c.shift)", t.dtype);
  if (t.layout.owned())
    return Mapped(pass, ViewMapOf(view, t.shape, k_.type(id).shape), t, std::move(base));
  // A part of one element along the sliced dimension is not broadcast along it.
  if (As<struct Expand>(k_.g, id) != nullptr)
    return Mapped(pass, StoredMapOf(t, k_.type(id).shape, k_.target.ranks), t, std::move(base));
  const TensorSlicing cut = SlicingOf(t, k_.target.ranks);
  Shape stored = t.shape;
  stored[t.layout.dim] = cut.slicing.per;
  StoredMap map = ViewMapOf(view, stored, k_.type(id).shape);
  map.identity = false;
  map.elements_per_rank = cut.slicing.per * cut.inner;
  map.shift = cut.slicing.shift * cut.inner;
  return Mapped(pass, map, t, std::move(base));
}

absl::StatusOr<std::string> Loads::View(PhaseText& phase, PassText& pass, NodeId id,
                                        const std::map<NodeId, std::string>& computed) {
  const NodeId operand = k_.Operand(id);
  const TensorType& t = k_.type(operand);
  if (const auto name = computed.find(operand); name != computed.end()) return name->second;
  CC_CHECK(k_.table.of[operand] >= 0);
  phase.CountLoad(NodeText(k_.g, id), Bytes(id));
  if (const auto* concat = As<Concat>(k_.g, id); concat != nullptr)
    return Joined(phase, id, *concat);
  if (const auto* bag = As<EmbeddingBag>(k_.g, id); bag != nullptr) return Pooled(id, *bag);
  std::string base = k_.args.Own(k_.table.of[operand], t.dtype);
  const auto* gather = As<Gather>(k_.g, id);
  if (gather == nullptr && t.layout.sliced()) return ViewOfSlices(phase, pass, id);
  if (gather == nullptr)
    return Mapped(pass, ViewMapOf(k_.g.nodes[id].op, t.shape, k_.type(id).shape), t,
                  std::move(base));

  ASSIGN_OR_RETURN(const std::string indices, [&]() -> absl::StatusOr<std::string> {
    const NodeId chosen = k_.Operand(id, 1);
    if (const auto name = computed.find(chosen); name != computed.end()) return name->second;
    if (k_.type(chosen).shape == k_.space.shape) return Element(phase, pass, chosen);
    const TensorType spread = SpreadOverRows(k_.type(chosen), t, *gather);
    const std::string from = k_.args.Own(k_.table.of[chosen], spread.dtype);
    return Mapped(pass, StoredMapOf(spread, k_.space.shape, k_.target.ranks), spread, from);
  }());
  const TableRows rows = RowsOf(*gather, t, k_.type(id).shape, k_.target.ranks);
  const std::string map = MapField(rows.map, t, &base);
  const int number = k_.named++;
  const std::string extent =
      k_.args.Integer(absl::StrCat("extent", number), t.shape[gather->dim].size);
  return absl::StrCat("LoadRows<V>(", base, ", ", indices, ", i, ", map, ", ",
                      k_.args.Integer(absl::StrCat("stride", number), rows.stride), ", ",
                      OwnRows(t, gather->dim, extent, number), ")");
}

absl::StatusOr<std::string> Loads::Joined(const PhaseText& phase, NodeId id, const Concat& op) {
  const TensorType& joined = k_.type(id);
  if (joined.layout.sliced() && !phase.on_slices) return Misplaced(id, "over whole tensors");
  // Slices lie alike: what a rank stores of the result is joined from what it stores of operands.
  // Operands that are not sliced are read where whole tensors have their elements.
  std::vector<Shape> whole, stored;
  for (NodeId input : k_.g.nodes[id].inputs) {
    whole.push_back(k_.type(input).shape);
    stored.push_back(whole.back());
    if (joined.layout.cut())
      stored.back()[joined.layout.dim] = SlicingOf(joined, k_.target.ranks).slicing.per;
  }
  const int number = k_.named++;
  std::vector<std::string> joints;
  for (size_t i = 0; i < whole.size(); ++i) {
    const NodeId operand = k_.Operand(id, static_cast<int>(i));
    const TensorType& t = k_.type(operand);
    const bool sliced = t.layout.cut();
    const JoinedRange range = JoinedRanges(op, sliced ? stored : whole)[i];
    const std::string name = absl::StrCat(sliced ? "of_part" : "of_whole", number);
    const auto bound = [&](size_t at, int64_t value) {
      return at == 0 ? std::string("0") : k_.args.Integer(absl::StrCat(name, "_", at), value);
    };
    joints.push_back(absl::StrCat(
        "Joint<", KernelType(t.dtype), ">{", k_.args.Own(k_.table.of[operand], t.dtype), ", ",
        sliced ? "i - c.shift" : "i", ", ", k_.args.Divisor(name + "_row", range.row), ", ",
        bound(i, range.begin), ", ", bound(i + 1, range.end), "}"));
  }
  return absl::StrCat("LoadJoined<V>(", absl::StrJoin(joints, ", "), ")");
}

std::string Loads::OwnRows(const TensorType& table, int dim, const std::string& extent,
                           int number) {
  if (!table.layout.sliced() || table.layout.dim != dim) return absl::StrCat("0, ", extent);
  const Slicing cut = SlicingOf(table, k_.target.ranks).slicing;
  const std::string per = k_.args.Integer(absl::StrCat("per", number), cut.per);
  if (!table.layout.weighted())
    return absl::StrCat("rank * ", per, ", OwnPart(", extent, ", ", per, ", rank)");
  const std::string shift = k_.args.Integer(absl::StrCat("rows_shift", number), cut.shift);
  return absl::StrCat("BeginOf(", per, ", ", shift, ", rank), OwnPart(", extent, ", ", per, ", ",
                      shift, ", rank)");
}

std::string Loads::Pooled(NodeId id, const EmbeddingBag& bag) {
  const NodeId table = k_.Operand(id, 0), indices = k_.Operand(id, 1);
  const TensorType &t = k_.type(table), &chosen = k_.type(indices);
  const auto own = [&](NodeId operand) {
    return k_.args.Own(k_.table.of[operand], k_.type(operand).dtype);
  };
  std::string offsets, weights = "nullptr";
  for (size_t i = 2; i < k_.g.nodes[id].inputs.size(); ++i) {
    const NodeId operand = k_.Operand(id, static_cast<int>(i));
    (k_.type(operand).dtype == DType::kI32 ? offsets : weights) = own(operand);
  }
  const Shape& shape = k_.type(id).shape;
  const Gather of_rows{*RowDimOf(bag, t.shape.size())};  // with one index per bag
  const TableRows rows = RowsOf(of_rows, t, shape, k_.target.ranks);
  std::string base = own(table);
  const std::string map = MapField(rows.map, t, &base);
  const int number = k_.named++;
  const auto integer = [&](absl::string_view name, int64_t value) {
    return k_.args.Integer(absl::StrCat(name, number), value);
  };
  std::string bag_of;
  if (!offsets.empty()) {
    bag_of = absl::StrCat("RaggedBag(", own(indices), ", ", weights, ", ", offsets, ", bag, ",
                          integer("bags", shape[0].size), ", ",
                          integer("end", NumElements(chosen.shape)), ")");
  } else {
    const StoredMap stored = StoredMapOf(chosen, chosen.shape, k_.target.ranks);
    const std::string length = integer("length", chosen.shape.back().size);
    std::string at = absl::StrCat("bag * ", length);
    int64_t end = NumElements(chosen.shape);
    if (chosen.layout.cut()) {
      std::string skip;
      at = absl::StrCat("At(", MapField(stored, chosen, &skip), ", ", at, ")", skip);
      end = SlicingOf(chosen, k_.target.ranks).slice_elements();
    }
    bag_of = absl::StrCat("FixedBag(", own(indices), ", ", weights, ", ", at, ", ", length, ", ",
                          integer("end", end), ")");
  }
  const std::string extent = integer("extent", t.shape[of_rows.dim].size);
  return absl::StrCat("LoadPooled<V, ", bag.pooling == Pooling::kMean ? "true" : "false", ">(",
                      base, ", i, ", map, ", TableRows{", integer("stride", rows.stride), ", ",
                      OwnRows(t, of_rows.dim, extent, number), ", ", extent, "}, ",
                      k_.args.Divisor(absl::StrCat("columns", number), shape.back().size),
                      ", [&](Index bag) { return ", bag_of, "; })");
}

std::string Loads::Row(NodeId id) {
  std::string base = k_.args.Own(k_.table.of[id], k_.type(id).dtype);
  const StoredMap map = StoredMapOf(k_.type(id), k_.space.rows(), k_.target.ranks);
  const std::string field = MapField(map, k_.type(id), &base);
  return absl::StrCat("LoadBroadcast<1>(", base, ", r, ", field, ")");
}

std::string Loads::RowOffset(NodeId id) {
  const StoredMap map = StoredMapOf(k_.type(id), k_.space.rows(), k_.target.ranks);
  std::string base = "0";
  const std::string field = MapField(map, k_.type(id), &base);
  return absl::StrCat(base, " + BroadcastMap<", map.dims.size(), ">::Offset(", field, ", r)");
}

std::string Loads::Scalar(NodeId id) {
  return absl::StrCat("Load<1>(", k_.args.Own(k_.table.of[id], k_.type(id).dtype), ")");
}

absl::StatusOr<std::string> Loads::Collective(PhaseText& phase, PassText& pass, NodeId id) {
  using Result = absl::StatusOr<std::string>;
  return std::visit(Match{[&](const AllReduce& op) -> Result {
                            return phase.on_slices ? Misplaced(id, "on slices")
                                                   : Reduction(phase, pass, id, op.kind);
                          },
                          [&](const ReduceScatter& op) -> Result {
                            return phase.on_slices ? Reduction(phase, pass, id, op.kind)
                                                   : Misplaced(id, "over the whole tensor");
                          },
                          [&](const AllGather&) -> Result { return Gathered(phase, pass, id); },
                          [&](const AllToAll&) -> Result { return Exchanged(phase, pass, id); },
                          [&]<class T>(const T&) -> Result
                            requires(kRow<T>.role != Role::kCollective)
                          { return Misplaced(id, "in the kernel that communicates it"); }},
                          k_.g.nodes[id].op);
}

absl::StatusOr<std::string> Loads::Gathered(PhaseText& phase, PassText& pass, NodeId id) {
  if (phase.on_slices) return Misplaced(id, "on slices, in the kernel that gathers it");
  phase.reads_gathered = true;
  phase.CountLoad(NodeText(k_.g, id), Bytes(id));
  const DType dtype = k_.type(id).dtype;
  return Fetched(pass, k_.args.Own(k_.table.push_targets.at(id)[0], dtype) + " + i", dtype);
}

absl::StatusOr<std::string> Loads::Exchanged(PhaseText& phase, PassText& pass, NodeId id) {
  phase.CountLoad(NodeText(k_.g, id), Bytes(id));
  const DType dtype = k_.type(id).dtype;
  if (k_.IsExchanged(id)) {
    if (!phase.arriving) return Misplaced(id, "before it arrives");
    return Fetched(pass, k_.args.Own(k_.table.push_targets.at(id)[0], dtype) + " + (i - c.shift)",
                   dtype);
  }
  const NodeId operand = k_.Operand(id);
  if (k_.IsMember(operand) || k_.table.of[operand] < 0 || !phase.on_slices)
    return Misplaced(id, "on a value that is not in memory");
  return Fetched(pass, k_.args.Peers(k_.table.of[operand], dtype) + "[from] + (i - c.there)",
                 dtype);
}

absl::StatusOr<std::string> Loads::Reduction(PhaseText& phase, PassText& pass, NodeId id,
                                             ReduceKind kind) {
  const NodeId operand = k_.Crossing(id);
  if (k_.IsMember(operand) || k_.table.of[operand] < 0)
    return Misplaced(id, "on a value that is not in memory");
  const int64_t bytes = k_.target.ranks_per_node() * Bytes(operand);
  phase.CountLoad(NodeText(k_.g, id), bytes);
  const auto sum = [&](const std::string& from) {
    const std::string fetched = pass.Fetch(absl::StrCat("FetchAll<V>(", from, ", i)"), bytes);
    return InRange(k_.type(id).dtype, absl::StrCat(ReducedText(kind), "(", fetched, ")"));
  };
  if (const auto ring = rings_.find(id); ring != rings_.end()) return sum(ring->second);
  const DType dtype = k_.type(operand).dtype;
  const auto source = sources_.find(operand);
  const std::string from =
      source != sources_.end() ? source->second : k_.args.Peers(k_.table.of[operand], dtype);
  const bool switched = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  // The switch rounds its sums to the type that it reads.
  const bool by_switch = k_.Multicasts() && switched && dtype == k_.type(id).dtype &&
                         kind == ReduceKind::kSum && Is<ReduceScatter>(k_.g, id);
  if (!by_switch) return sum(from);
  return sum(absl::StrCat(k_.args.OnAll(k_.table.of[operand], dtype), ", ", from));
}

}  // namespace coconet
