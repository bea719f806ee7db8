#include "jit/emit/strided_fold.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/schedule/kernel_phases.h"
#include "jit/expressions/folds.h"
#include "jit/expressions/operations.h"
#include "jit/storage/arguments.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

/// Some dimensions of a stored tensor: extents, strides in storage, and which of them this rank has
/// a part of (-1: none).
struct Axes {
  std::vector<int64_t> dims, strides;
  int sliced = -1;
};

/// The dimensions of `type` for which `wanted` holds.
template <class Wanted>
Axes AxesOf(const TensorType& type, int ranks, Wanted wanted) {
  Axes axes;
  std::vector<int64_t> stored;
  for (const Dim& dim : type.shape) stored.push_back(dim.size);
  const bool sliced = type.layout.cut();
  if (sliced) stored[type.layout.dim] = SlicingOf(type, ranks).slicing.per;
  std::vector<int64_t> strides(stored.size());
  int64_t stride = 1;
  for (size_t d = stored.size(); d-- > 0; stride *= stored[d]) strides[d] = stride;
  for (size_t d = 0; d < stored.size(); ++d) {
    if (!wanted(static_cast<int>(d))) continue;
    if (sliced && type.layout.dim == static_cast<int>(d))
      axes.sliced = static_cast<int>(axes.dims.size());
    axes.dims.push_back(type.shape[d].size);
    axes.strides.push_back(strides[d]);
  }
  return axes;
}

/// Declares the map `name` over the axes.
std::string MapText(const Axes& axes, const std::string& name, Arguments& args) {
  const std::string field = args.Map(name, axes.dims, axes.strides);
  std::string text = absl::StrCat("  auto ", name, " = ", field, ";\n");
  if (axes.sliced >= 0)
    absl::StrAppend(&text, "  ", name, ".dim[", axes.sliced, "] = MakeDivisor(own_part);\n");
  return text;
}

/// The values of V results, from their accumulator `f` of `count` elements each.
std::string ValueText(FoldKind kind, DType dtype, int64_t count, Arguments& args) {
  const std::string compute = absl::StrCat("Compute<", KernelType(dtype), ">");
  if (kind != FoldKind::kMean) return InRange(dtype, absl::StrCat("FoldedLanes<", compute, ">(f)"));
  return InRange(
      dtype, absl::StrCat("AveragedLanes<", compute, ">(f, ", args.Integer("count", count), ")"));
}

/// What stores `x`, result `o`, wherever the launch has it.
std::string StoresText(const KernelContext& k, Arguments& args) {
  const NodeId fold = k.strided_fold;
  const BufferTable& table = k.table;
  std::vector<int> targets;
  for (NodeId node : k.members) {
    if (IsStore(k.g, node)) targets.push_back(table.target[node]);
  }
  if (table.of[fold] >= 0 && table.buffers[table.of[fold]].role == BufferRole::kTemp)
    targets.push_back(table.of[fold]);
  std::string stores;
  for (int target : targets) {
    absl::StrAppend(&stores, "      Store<kCached>(", args.Own(target, k.type(fold).dtype),
                    " + At(out, o), x);\n");
  }
  return stores;
}

/// Packs where neighbouring results are neighbours in memory.
bool IsPacked(const Axes& in, const Axes& out) {
  return in.strides.back() == 1 && out.strides.back() == 1;
}
/// Rows of results are whole packs.
bool IsAligned(const Axes& in, int vec) {
  return in.dims.back() % vec == 0 && in.sliced != static_cast<int>(in.dims.size()) - 1;
}

}  // namespace

EmittedKernel EmitStridedFold(const KernelContext& k) {
  const PlacedLaunches& u = k.u;
  const NodeId id = k.strided_fold;
  const int ranks = k.target.ranks;
  const auto& fold = *As<Fold>(u.graph(), id);
  const NodeId operand = u.Value(u.graph().nodes[id].inputs[0]);
  const TensorType &from = u.type(operand), &to = u.type(id);
  const auto folded = [&](int d) { return absl::c_linear_search(fold.dims, d); };
  const auto kept = [&](int d) { return !folded(d); };
  const Axes in = AxesOf(from, ranks, kept), over = AxesOf(from, ranks, folded),
             out = AxesOf(to, ranks, kept);
  Arguments args;
  args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  std::string body = "  const int rank = int(p.rank);\n";
  if (from.layout.sliced()) {
    // An owner has all results, others none.
    const Slicing cut = from.layout.owned() ? SliceWhole(1, ranks, from.layout.turn.RankOf(ranks))
                                            : SlicingOf(from, ranks).slicing;
    const std::string per = args.Integer("per", cut.per),
                      extent = args.Integer("extent", cut.extent);
    const std::string shift =
        from.layout.weighted() ? absl::StrCat(args.Integer("shift", cut.shift), ", ") : "";
    absl::StrAppend(&body, "  const Index own_part = OwnPart(", extent, ", ", per, ", ", shift,
                    "rank);\n");
  }
  const std::string out_text = MapText(out, "out", args), over_text = MapText(over, "over", args),
                    in_text = MapText(in, "in", args);
  absl::StrAppend(&body, in_text, over_text, out_text);
  const int64_t count = absl::c_accumulate(over.dims, int64_t{1}, std::multiplies<int64_t>());
  const std::string value = ValueText(fold.kind, to.dtype, count, args);
  const std::string source = args.Own(k.table.of[operand], from.dtype);
  const std::string stores = StoresText(k, args);
  args.Integer("packed", IsPacked(in, out));
  args.Integer("aligned", IsAligned(in, k.config.vec));
  args.Integer("chunk", k.config.chunk);
  absl::StrAppend(
      &body, args.LocalsText(), "  const Index n = CountOf(in)",
      from.layout.owned() ? " * own_part" : "", ", folded = CountOf(over);\n",
      "  ForChunks(grid, Cut{1, n, n}, 0, p.chunk, [&](const Chunk& c) {\n",
      "    const bool packed = p.packed != 0 && (kPacksAnywhere || p.aligned != 0);\n",
      "    ForEachInRows<kV>(grid, c.begin, c.end, in, packed, [&](auto lanes, Index o) {\n",
      "      constexpr int V = decltype(lanes)::kCount;\n", "      auto f = MakeAccumulator<",
      FoldKindText(fold.kind), ", V>(", Literal(FirstOfFold(fold.kind, to.dtype), to.dtype), ");\n",
      "      const auto* from = ", source, " + At(in, o);\n", "      auto at = Begin(over);\n",
      "      for (Index k = 0; k < folded; ++k) {\n",
      "        Accumulate(f, Load<V>(from + at.offset));\n", "        Advance(at, over);\n",
      "      }\n", "      const auto x = ", value, ";\n", stores,
      "    });\n    return true;\n  });\n");
  const int64_t bytes =
      (NumElements(from.shape) + NumElements(to.shape)) * static_cast<int64_t>(SizeOf(to.dtype));
  return KernelOf(ranks, k.config.vec, args, body, bytes);
}

}  // namespace coconet
