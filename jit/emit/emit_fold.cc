#include "jit/emit/emit_fold.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/kernel_phases.h"
#include "jit/emit/expressions.h"
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
  const bool sliced = type.layout.sliced();
  if (sliced) stored[type.layout.dim] = SlicingOf(type.shape, type.layout.dim, ranks).slicing.per;
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
  std::vector<Arg> words;
  for (int64_t dim : axes.dims) words.push_back({Arg::Kind::kInt, -1, dim});
  for (int64_t stride : axes.strides) words.push_back({Arg::Kind::kInt, -1, stride});
  const std::string type = absl::StrCat("BroadcastMap<", axes.dims.size(), ">");
  const std::string field = args.Member(absl::StrCat(type, " ", name), name, std::move(words));
  std::string text = absl::StrCat("  auto ", name, " = ", field, ";\n");
  if (axes.sliced >= 0) absl::StrAppend(&text, "  ", name, ".dim[", axes.sliced, "] = own_part;\n");
  return text;
}

NodeId FoldOf(const Units& u, int unit) {
  for (NodeId id : u.units[unit].nodes) {
    if (Is<Fold>(u.graph(), id)) return id;
  }
  return -1;
}

}  // namespace

bool IsStridedFold(const Units& u, int unit) {
  const NodeId fold = FoldOf(u, unit);
  return fold >= 0 && !FoldsAll(u.program, fold) && !FoldsRows(u.program, fold);
}

absl::StatusOr<EmittedKernel> EmitStridedFold(const Units& u, int unit, const Config& config,
                                              int ranks, BufferTable& table) {
  const Graph& g = u.graph();
  const NodeId id = FoldOf(u, unit);
  const auto& fold = *As<Fold>(g, id);
  const NodeId operand = u.Value(g.nodes[id].inputs[0]);
  const TensorType &from = u.type(operand), &to = u.type(id);
  const auto folded = [&](int d) {
    return std::find(fold.dims.begin(), fold.dims.end(), d) != fold.dims.end();
  };
  const auto kept = [&](int d) { return !folded(d); };
  const Axes in = AxesOf(from, ranks, kept), over = AxesOf(from, ranks, folded),
             out = AxesOf(to, ranks, kept);
  Arguments args;
  args.Member("Index rank", "rank", {{Arg::Kind::kRank, -1, 0}});
  std::string body = "  const int rank = int(p.rank);\n";
  if (from.layout.sliced()) {
    const TensorSlicing cut = SlicingOf(from.shape, from.layout.dim, ranks);
    absl::StrAppend(&body, "  const Index own_part = OwnPart(",
                    args.Integer("extent", cut.slicing.extent), ", ",
                    args.Integer("per", cut.slicing.per), ", rank);\n");
  }
  absl::StrAppend(&body, MapText(in, "in", args), MapText(over, "over", args),
                  MapText(out, "out", args));
  const std::string compute = absl::StrCat("Compute<", KernelType(to.dtype), ">");
  std::string value = absl::StrCat("ConvertLanes<", compute, ">(f.many)");
  if (fold.kind == FoldKind::kMean) {
    int64_t count = 1;
    for (int64_t dim : over.dims) count *= dim;
    value = absl::StrCat("ConvertLanes<", compute, ">(f.many / Splat<V>(Wide<SumOf, ", compute,
                         ">(", args.Integer("count", count), ")))");
  }
  if (to.dtype == DType::kU8) value = absl::StrCat("Wrapped<u8>(", value, ")");
  const std::string source = args.Own(table.of[operand], from.dtype);
  std::vector<int> targets;
  for (NodeId node : u.units[unit].nodes) {
    if (IsStore(g, node)) targets.push_back(table.target[node]);
  }
  if (table.of[id] >= 0 && table.buffers[table.of[id]].role == BufferRole::kTemp)
    targets.push_back(table.of[id]);
  std::string stores;
  for (int target : targets) {
    absl::StrAppend(&stores, "      Store<kCached>(", args.Own(target, to.dtype),
                    " + At(out, o), x);\n");
  }
  // Packs where neighbouring results are neighbours in memory, and rows of them are whole packs.
  const bool packed = in.strides.back() == 1 && out.strides.back() == 1 &&
                      in.dims.back() % config.vec == 0 &&
                      in.sliced != static_cast<int>(in.dims.size()) - 1;
  args.Integer("packed", packed);
  args.Integer("chunk", config.chunk);
  absl::StrAppend(
      &body, args.LocalsText(), "  const Index n = CountOf(in), folded = CountOf(over);\n",
      "  ForChunks(grid, Cut{1, n, n}, 0, p.chunk, [&](const Chunk& c) {\n",
      "    ForEach<kV>(grid, c.begin, c.end, p.packed != 0, [&](auto lanes, Index o) {\n",
      "      constexpr int V = decltype(lanes)::kCount;\n", "      auto f = MakeAccumulator<",
      FoldKindText(fold.kind), ", V>(", Literal(FirstOfFold(fold.kind, to.dtype), to.dtype), ");\n",
      "      const auto* from = ", source, " + At(in, o);\n",
      "      for (Index k = 0; k < folded; ++k) Accumulate(f, Load<V>(from + At(over, k)));\n",
      "      const auto x = ", value, ";\n", stores, "    });\n    return true;\n  });\n");
  const int64_t bytes =
      (NumElements(from.shape) + NumElements(to.shape)) * static_cast<int64_t>(SizeOf(to.dtype));
  return FinishedKernel(ranks, config.vec, args, body, bytes);
}

}  // namespace coconet
