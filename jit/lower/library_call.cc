#include "jit/lower/library_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/config/launch_shapes.h"
#include "jit/launches/collective_step.h"
#include "jit/storage/arguments.h"
#include "jit/storage/exchanged_dims.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

/// The number of ranks that do a step together.
int RanksOf(const CollectiveStep& step, const Target& target) {
  Plan plan;
  plan.ranks = target.ranks;
  plan.nodes = target.nodes;
  return SizeOf(plan, step.group);
}

/// The elements that a step takes and makes, from its offsets on.
int64_t ElementsIn(const CollectiveStep& step, const Target& target) {
  return step.count * (step.kind == Kind::kReduceScatter ? RanksOf(step, target) : 1);
}
int64_t ElementsOut(const CollectiveStep& step, const Target& target) {
  return step.count * (step.kind == Kind::kAllGather ? RanksOf(step, target) : 1);
}

int64_t Stored(const TensorType& type, int ranks) {
  return type.layout.sliced() ? SlicingOf(type, ranks).slice_elements() : NumElements(type.shape);
}

/// The tensor of an AllToAll, and what of it is moved: all, or the piece of it.
CollectiveStep::Exchanged ExchangedOf(const ExchangedDims& x, const Piece* piece) {
  const int low = x.low();
  const auto extents = [&](int begin, int end) {
    return NumElements({x.shape.begin() + begin, x.shape.begin() + end});
  };
  const auto cut = [&](int dim) {
    const Slicing& slicing = x.Of(dim);
    return RankExtent{slicing.extent, slicing.per, slicing.shift};
  };
  CollectiveStep::Exchanged exchanged{.outer = extents(0, low),
                                      .middle = extents(low + 1, x.high()),
                                      .inner = x.inner(),
                                      .low = cut(low),
                                      .high = cut(x.high()),
                                      .from_low = x.from == low,
                                      .outer_end = extents(0, low),
                                      .low_end = x.Of(low).per};
  if (piece == nullptr) return exchanged;
  if (piece->dim == low) {
    exchanged.low_begin = piece->begin;
    exchanged.low_end = piece->end;
  } else {
    const int64_t rows = extents(piece->dim + 1, low);
    exchanged.outer_begin = piece->begin * rows;
    exchanged.outer_end = piece->end * rows;
  }
  return exchanged;
}

/// The words of the dialect's Blocks: the slice of a tensor that a rank has before an AllToAll, or
/// else after it, in blocks that the other cut gives.
std::vector<Arg> BlockWords(const CollectiveStep::Exchanged& x, bool before) {
  std::vector<Arg> words;
  for (int64_t value :
       {x.outer_end - x.outer_begin, x.middle, x.inner, x.low.total, x.low.per, x.low.shift,
        x.high.total, x.high.per, x.high.shift, int64_t{before == x.from_low}, x.outer_begin,
        x.low_begin, x.low_end - x.low_begin})
    words.push_back({Arg::Kind::kInt, -1, value});
  return words;
}

/// How many packs of a copy a thread begins before it finishes the first.
int PacksOfCopy(DType dtype, const Config& config) {
  return PacksToFetch(static_cast<int64_t>(SizeOf(dtype)) * config.vec, config.unroll);
}

/// The kernel that moves between `storage`, the rank's part before the exchange where it packs,
/// else after it, and `blocks`, one for each rank.
EmittedKernel BlocksKernel(const TensorType& type, const CollectiveStep::Exchanged& x, bool pack,
                           int storage, int blocks, const Config& config, int ranks,
                           const Piece* piece) {
  Arguments args;
  args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  const std::string shape = args.Member("Blocks shape", "shape", BlockWords(x, /*before=*/pack));
  const bool packed = x.inner * x.high.total % config.vec == 0 &&
                      x.inner * x.high.per % config.vec == 0 &&
                      x.inner * x.high.shift % config.vec == 0;
  const std::string whole = args.Integer("packed", packed);
  const std::string own = args.Own(storage, type.dtype), other = args.Own(blocks, type.dtype);
  const std::string body =
      absl::StrCat("  const int rank = int(p.rank);\n", args.LocalsText(), "  MoveBlocks<kV, ",
                   PacksOfCopy(type.dtype, config), ", ", pack ? "true" : "false", ">(grid, ", own,
                   ", ", other, ", ", shape, ", kRanks, rank, ", whole, " != 0);\n");
  return KernelOf(ranks, config.vec, args, body,
                  2 * Stored(type, ranks) * static_cast<int64_t>(SizeOf(type.dtype)) /
                      (piece == nullptr ? 1 : piece->of));
}

/// The number of a buffer of node `id`, which its calls share: they run one after the other.
int SharedBuffer(absl::string_view name, NodeId id, const TensorType& type, int64_t elements,
                 const PlacedLaunches& u, BufferTable& table) {
  const std::string full = absl::StrCat(name, id);
  for (int buffer = 0; buffer < static_cast<int>(table.buffers.size()); ++buffer) {
    if (table.buffers[buffer].name != full) continue;
    table.buffers[buffer].elements = std::max(table.buffers[buffer].elements, elements);
    return buffer;
  }
  return AddBuffer(table, {full, BufferRole::kTemp, type.dtype, std::max<int64_t>(1, elements)},
                   u.each[id]);
}

/// The rows in use of AllToAll `id`.
CollectiveStep::Rows RowsOf(const PlacedLaunches& u, NodeId id, const BufferTable& table) {
  const NodeId before = u.CountsBeforeAllToAll(id);
  if (before < 0) return {};
  const Shape& shape = u.type(id).shape;
  const int dim = u.rows[id].dim;
  return {.leaving = table.of[before],
          .arriving = table.of[u.Value(u.rows[id].counts)],
          .capacity = shape[dim].size,
          .row = NumElements({shape.begin() + dim + 1, shape.end()})};
}

LibraryCall AllToAllOf(const PlacedLaunches& u, NodeId id, const Config& config, int ranks,
                       const Piece* piece, BufferTable& table) {
  const NodeId operand = u.Value(u.graph().nodes[id].inputs[0]);
  const TensorType& type = u.type(id);
  const CollectiveStep::Exchanged x =
      ExchangedOf(ExchangedDimsOf(type.shape, u.type(operand).layout, type.layout, ranks), piece);
  CollectiveStep step = StepOf(u.graph().nodes[id].op);
  step.dtype = type.dtype;
  if (config.threads == 1) {  // a host
    step.in = table.of[operand];
    step.out = table.of[id];
    step.exchanged = x;
    step.count = MostOfBlock(x);
    step.rows = RowsOf(u, id, table);
    return {{step}};
  }
  const int64_t block =
      (x.outer_end - x.outer_begin) * (x.low_end - x.low_begin) * x.middle * x.high.per * x.inner;
  step.in = SharedBuffer("leaving", id, type, ranks * block, u, table);
  step.out = SharedBuffer("arriving", id, type, ranks * block, u, table);
  step.count = block;
  LibraryCall call{{step}};
  call.before =
      BlocksKernel(type, x, /*pack=*/true, table.of[operand], step.in, config, ranks, piece);
  call.after = BlocksKernel(type, x, /*pack=*/false, table.of[id], step.out, config, ranks, piece);
  return call;
}

/// The kernel that copies columns between the rows of `storage` and `block`.
EmittedKernel ColumnsKernel(const TensorType& type, int64_t rows, const Piece& piece, bool pack,
                            int storage, int block, const Config& config, int ranks) {
  const int64_t length = type.shape.back().size, run = piece.end - piece.begin;
  Arguments args;
  std::vector<Arg> words;
  for (int64_t word : {rows, length, piece.begin, piece.end})
    words.push_back({Arg::Kind::kInt, -1, word});
  const std::string columns = args.Member("ColumnsOfRows columns", "columns", std::move(words));
  const std::string whole = args.Integer(
      "packed", length % config.vec == 0 && piece.begin % config.vec == 0 && run % config.vec == 0);
  const std::string own = args.Own(storage, type.dtype), other = args.Own(block, type.dtype);
  const std::string body =
      absl::StrCat(args.LocalsText(), "  MoveColumns<kV, ", PacksOfCopy(type.dtype, config), ", ",
                   pack ? "true" : "false", ">(grid, ", own, ", ", other, ", ", columns, ", ",
                   whole, " != 0);\n");
  return KernelOf(ranks, config.vec, args, body,
                  2 * rows * run * static_cast<int64_t>(SizeOf(type.dtype)));
}

/// The call that moves columns only: `steps` do all of the collective. Rows stay where they are
/// among the others, so that columns of them, packed, are cut over ranks as the whole is.
LibraryCall OfColumns(std::vector<CollectiveStep> steps, const PlacedLaunches& u, NodeId id,
                      const Config& config, const Target& target, const Piece& piece,
                      BufferTable& table) {
  const TensorType& type = u.type(id);
  const int64_t length = type.shape.back().size, run = piece.end - piece.begin;
  const int from = steps[0].in, to = steps[0].out;
  int64_t rows_in = 0, rows_out = 0;
  for (CollectiveStep& step : steps) {
    CC_CHECK(step.count % length == 0 && step.in_offset % length == 0 &&
             step.out_offset % length == 0);
    for (int64_t* elements : {&step.count, &step.in_offset, &step.out_offset})
      *elements = *elements / length * run;
    rows_in = std::max(rows_in, (step.in_offset + ElementsIn(step, target)) / run);
    rows_out = std::max(rows_out, (step.out_offset + ElementsOut(step, target)) / run);
  }
  const int leaving = SharedBuffer("leaving", id, type, rows_in * run, u, table);
  const int arriving = steps[0].kind == Kind::kAllReduce
                           ? leaving
                           : SharedBuffer("arriving", id, type, rows_out * run, u, table);
  for (CollectiveStep& step : steps) step.in = leaving, step.out = arriving;
  LibraryCall call{std::move(steps)};
  call.before = ColumnsKernel(type, rows_in, piece, /*pack=*/true, from, leaving, config,
                              target.ranks_per_node());
  call.after = ColumnsKernel(type, rows_out, piece, /*pack=*/false, to, arriving, config,
                             target.ranks_per_node());
  return call;
}

/// What one rank owns whole is gathered from there, or scattered to there.
void FromOrToOwner(CollectiveStep& step, const Layout& layout, int ranks) {
  if (!layout.owned()) return;
  if (step.kind == Kind::kAllGather) step.kind = Kind::kBroadcast;
  if (step.kind == Kind::kReduceScatter) step.kind = Kind::kReduce;
  step.root = layout.turn.RankOf(ranks);
}

/// The part of a collective that moves a piece.
std::vector<CollectiveStep> StepsOf(CollectiveStep step, const TensorType& operand,
                                    const TensorType& result, const Piece& piece, int ranks) {
  const int64_t unit = piece.unit(result.shape), begin = piece.begin * unit;
  const bool scatters = step.kind == Kind::kReduceScatter, gathers = step.kind == Kind::kAllGather;
  if (operand.layout.sliced() || scatters) {
    step.in_offset = step.out_offset = begin;
    step.count = (piece.end - piece.begin) * unit;
    if (scatters || gathers) step.stride = piece.per * unit;
    return {step};
  }
  std::vector<CollectiveStep> steps;
  for (const Range& range : piece.Whole(ranks)) {
    step.in_offset = step.out_offset = range.begin * unit;
    step.count = range.size() * unit;
    steps.push_back(step);
  }
  return steps;
}

/// `steps` are those for the first node's part of a tensor; returns those for the parts of all
/// nodes. `part`: elements of one rank's part.
std::vector<CollectiveStep> OfEveryNode(const std::vector<CollectiveStep>& steps, int64_t part,
                                        const Target& target) {
  std::vector<CollectiveStep> all;
  for (int64_t node = 0; node < target.nodes; ++node) {
    for (CollectiveStep step : steps) {
      // The operand of a scatter and the result of a gather have the parts of all ranks of a node.
      step.in_offset +=
          node * part * (step.kind == Kind::kReduceScatter ? target.ranks_per_node() : 1);
      step.out_offset +=
          node * part * (step.kind == Kind::kAllGather ? target.ranks_per_node() : 1);
      all.push_back(step);
    }
  }
  return all;
}

/// Tells a reduction of the library what the user admits of it, where that matters to its type.
void Admit(const Numerics& numerics, CollectiveStep& step) {
  const bool reduces = step.kind == Kind::kAllReduce || step.kind == Kind::kReduceScatter ||
                       step.kind == Kind::kReduce;
  if (!reduces || !IsFloat(step.dtype)) return;
  const bool sums = step.reduce == ReduceKind::kSum;
  step.rounds_each =
      sums && IsNarrowFloat(step.dtype) && numerics.sum_rounding == SumRounding::kEach;
  step.no_nans = !sums && numerics.nans == Nans::kNone;
}

}  // namespace

LibraryCall LibraryCallOf(const PlacedLaunches& u, const PlacedLaunch& launch, const Config& config,
                          const Target& target, const Piece* piece, BufferTable& table) {
  const int ranks = target.ranks;
  const Graph& g = u.graph();
  const auto collective = std::find_if(launch.nodes.begin(), launch.nodes.end(),
                                       [&](NodeId id) { return Communicates(g, id); });
  CC_CHECK(collective != launch.nodes.end());
  const NodeId id = *collective;
  if (Is<AllToAll>(g, id)) return AllToAllOf(u, id, config, ranks, piece, table);
  const NodeId operand = u.Value(g.nodes[id].inputs[0]);
  CollectiveStep step = StepOf(g.nodes[id].op);
  step.dtype = u.type(id).dtype;
  step.in = table.of[operand];
  step.out = table.of[id];
  step.count = Stored(u.type(Is<AllGather>(g, id) ? operand : id), ranks);
  FromOrToOwner(step, (Is<AllGather>(g, id) ? u.type(operand) : u.type(id)).layout, ranks);
  Admit(target.numerics, step);
  std::vector<CollectiveStep> steps = {step};
  const bool of_columns = piece != nullptr && piece->columns,
             of_part = piece != nullptr && !of_columns;
  if (of_part) steps = StepsOf(step, u.type(operand), u.type(id), *piece, ranks);
  // A reduction across nodes is of one range of memory, or of a piece of each node's part; scatters
  // and gathers are of one part per node.
  const bool reduces_across = step.group == Group::kAcross && step.kind == Kind::kAllReduce;
  if (step.group == Group::kNode || (reduces_across && of_part)) {
    steps = OfEveryNode(steps, step.count, target);
  } else if (reduces_across) {
    steps[0].count *= target.nodes;
  }
  if (of_columns) return OfColumns(std::move(steps), u, id, config, target, *piece, table);
  return {std::move(steps)};
}

int64_t LibraryBytes(const CollectiveStep& step, const Target& target) {
  const int64_t size = static_cast<int64_t>(SizeOf(step.dtype));
  const int ranks = RanksOf(step, target);
  switch (step.kind) {
    case Kind::kAllReduce:
    case Kind::kBroadcast:
    case Kind::kReduce:
    case Kind::kSend:
      return 2 * step.count * size;
    case Kind::kReduceScatter:
    case Kind::kAllGather:
      return (ranks + 1) * step.count * size;
    case Kind::kAllToAll:
      return 2 * ranks * step.count * size;
  }
  CC_CHECK(false);
}

}  // namespace coconet
