#include "jit/emit/prologue.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

std::string ExtentText(Arguments& args, const std::string& name, const RankExtent& extent) {
  const std::string total = args.Integer(name, extent.total);
  if (extent.per == 0) return total;
  const std::string per = args.Integer(name + "_per", extent.per);
  const std::string shift =
      extent.shift == 0 ? "" : absl::StrCat(args.Integer(name + "_shift", extent.shift), ", ");
  return absl::StrCat("OwnPart(", total, ", ", per, ", ", shift, "rank)");
}

}  // namespace

std::string ProductText(Arguments& args, const GemmBatch& batch, absl::string_view suffix) {
  const GemmStep& gemm = batch.gemm;
  std::vector<std::string> members;
  for (const GemmStep::Matrix* matrix : {&gemm.a, &gemm.b, &gemm.c})
    members.push_back(matrix->buffer < 0 ? "nullptr"
                                         : args.Own(matrix->buffer, gemm.TypeOf(*matrix)));
  for (const auto& [name, matrix] : {std::pair("lda", &gemm.a), {"ldb", &gemm.b}, {"ldc", &gemm.c}})
    members.push_back(args.Integer(absl::StrCat(name, suffix), matrix->ld));
  for (const auto& [name, extent] : {std::pair("m", &gemm.m), {"n", &gemm.n}, {"k", &gemm.k}})
    members.push_back(ExtentText(args, absl::StrCat(name, suffix), *extent));
  const std::string one = absl::StrJoin(members, ", ");
  std::string types(KernelType(gemm.dtype));
  if (gemm.a.float8.has_value()) {
    absl::StrAppend(&types, ", ", KernelType(*gemm.a.float8), ", ", KernelType(*gemm.b.float8));
  }
  const auto declared = [&](absl::string_view type, const auto&... values) {
    return absl::StrCat("  const ", type, "<", types, "> product", suffix, "{", values..., "};\n");
  };
  if (!batch.IsMany()) return declared("Product", one);
  const auto taken = [&](absl::string_view name, const GemmStep::Matrix& matrix,
                         const GemmBatch::Taken& of) {
    return absl::StrCat("{", args.Integer(absl::StrCat(name, "_step", suffix), matrix.batch_stride),
                        ", ", args.Divisor(absl::StrCat(name, "_each", suffix), of.each), ", ",
                        args.Divisor(absl::StrCat(name, "_matrices", suffix), of.count.total), "}");
  };
  return declared("Products", "{", one, "}, ",
                  ExtentText(args, absl::StrCat("matrices", suffix), batch.matrices), ", ",
                  taken("a", gemm.a, batch.of_a), ", ", taken("b", gemm.b, batch.of_b), ", ",
                  gemm.rows.counts < 0 ? "nullptr" : args.Own(gemm.rows.counts, DType::kI32));
}

namespace {

/// How the rows of a tensor lie in a rank's storage: `outer` times `length` of them, `pitch` apart.
struct StoredRuns {
  int64_t outer = 1, inner = 1;  // around the sliced dimension
  RankExtent along;
  int64_t pitch() const { return (along.per > 0 ? along.per : along.total) * inner; }
};

/// The runs of dimensions [begin, end) of a tensor.
StoredRuns RunsOf(const TensorType& type, size_t begin, size_t end, int ranks) {
  StoredRuns runs{.along = {1, 0}};
  const int sliced = type.layout.sliced() ? type.layout.dim : -1;
  for (size_t d = begin; d < end; ++d) {
    if (static_cast<int>(d) == sliced) {
      const Slicing cut = SlicingOf(type, ranks).slicing;
      runs.outer = runs.inner;
      runs.inner = 1;
      runs.along = {cut.extent, cut.per, cut.shift};
    } else {
      runs.inner *= type.shape[d].size;
    }
  }
  if (type.layout.owned()) {  // the others have nothing to read
    const Slicing whole = SliceWhole(runs.inner, ranks, type.layout.turn.RankOf(ranks));
    runs = {.along = {whole.extent, whole.per, whole.shift}};
  }
  return runs;
}

std::string ScatterText(KernelContext& k, NodeId id, size_t number) {
  const TensorType &updates = k.type(k.Operand(id, 0)), &indices = k.type(k.Operand(id, 1));
  const size_t dims = indices.shape.size();
  const StoredRuns rows = RunsOf(indices, 0, dims, k.target.ranks),
                   columns = RunsOf(updates, dims, updates.shape.size(), k.target.ranks);
  const auto own = [&](NodeId operand) {
    return k.args.Own(k.table.of[operand], k.type(operand).dtype);
  };
  const auto runs = [&](absl::string_view name, const StoredRuns& r) {
    const auto integer = [&](absl::string_view what, int64_t value) {
      return k.args.Integer(absl::StrCat(name, what, number), value);
    };
    return absl::StrCat("Runs{", integer("_runs", r.outer), ", ",
                        ExtentText(k.args, absl::StrCat(name, number), r.along), " * ",
                        integer("_inner", r.inner), ", ", integer("_pitch", r.pitch()), "}");
  };
  const bool weighted = k.g.nodes[id].inputs.size() > 2;
  // Only the owner of the sums adds; the others have no rows.
  RankExtent sums{k.type(id).shape[0].size, 0};
  if (const Layout& layout = k.type(id).layout; layout.owned()) {
    const Slicing whole =
        SliceWhole(sums.total, k.target.ranks, layout.turn.RankOf(k.target.ranks));
    sums = {whole.extent, whole.per, whole.shift};
  }
  const int64_t per_update = ScatterAdd::IndicesPerUpdate(updates.shape, indices.shape);
  const int64_t row = columns.outer * columns.pitch(), count = rows.outer * rows.pitch();
  k.bytes += count * (row * static_cast<int64_t>(SizeOf(updates.dtype)) + 4) +
             k.type(id).shape[0].size * row * 4;
  return absl::StrCat(k.TensorIndent(), "AddRows(grid, Scatter<", KernelType(updates.dtype), ">{",
                      own(k.Operand(id, 0)), ", ", own(k.Operand(id, 1)), ", ",
                      weighted ? own(k.Operand(id, 2)) : "nullptr", ", ",
                      k.args.Own(k.table.of[id], DType::kF32), ", ",
                      ExtentText(k.args, absl::StrCat("rows", number), sums), ", ",
                      runs("of_rows", rows), ", ", runs("of_columns", columns), ", ",
                      k.args.Divisor(absl::StrCat("per_update", number), per_update), "});\n");
}

}  // namespace

std::string PrologueText(KernelContext& k) {
  std::string text;
  for (size_t i = 0; i < k.prologue.size() && k.awaited < 0; ++i) {
    if (Is<ScatterAdd>(k.g, k.prologue[i])) {
      absl::StrAppend(&text, ScatterText(k, k.prologue[i], i));
      continue;
    }
    const std::vector<GemmStep> gemms =
        GemmsOf(k.u, k.prologue[i], k.table, k.target.ranks, 0, nullptr);
    CC_CHECK(gemms.size() == 1 && gemms[0].batch == 1);  // FitsPrologue
    const GemmStep& gemm = gemms[0];
    const auto flag = [](bool is) { return is ? "true" : "false"; };
    absl::StrAppend(&text, ProductText(k.args, {gemm}, absl::StrCat(i)), "  MultiplyFewRows<",
                    flag(gemm.transpose_a), ", ", flag(gemm.transpose_b), ">(grid, product", i,
                    ");\n");
    k.bytes += GemmBytes(gemm);
  }
  if (!k.over_tensors || text.empty()) return text;
  return absl::StrCat("  for (Index t = 0; t < p.tensors; ++t) {\n", Arguments::TensorLocals(),
                      text, "  }\n");
}

}  // namespace coconet
