#include "jit/emit/products.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "jit/storage/gemms.h"
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

std::string ProductText(Arguments& args, const GemmStep& gemm, absl::string_view suffix) {
  std::vector<std::string> members;
  for (const GemmStep::Matrix* matrix : {&gemm.a, &gemm.b, &gemm.c})
    members.push_back(args.Own(matrix->buffer, gemm.dtype));
  for (const auto& [name, matrix] : {std::pair("lda", &gemm.a), {"ldb", &gemm.b}, {"ldc", &gemm.c}})
    members.push_back(args.Integer(absl::StrCat(name, suffix), matrix->ld));
  for (const auto& [name, extent] : {std::pair("m", &gemm.m), {"n", &gemm.n}, {"k", &gemm.k}})
    members.push_back(ExtentText(args, absl::StrCat(name, suffix), *extent));
  return absl::StrCat("  const Product<", KernelType(gemm.dtype), "> product", suffix, "{",
                      absl::StrJoin(members, ", "), "};\n");
}

std::string ProductsText(KernelContext& k) {
  std::string text;
  for (size_t i = 0; i < k.products.size(); ++i) {
    const std::vector<GemmStep> gemms =
        GemmsOf(k.u, k.products[i], k.table, k.target.ranks, 0, nullptr);
    CC_CHECK(gemms.size() == 1 && gemms[0].batch == 1);  // HasFewRows
    const GemmStep& gemm = gemms[0];
    const auto flag = [](bool is) { return is ? "true" : "false"; };
    absl::StrAppend(&text, ProductText(k.args, gemm, absl::StrCat(i)), "  MultiplyFewRows<",
                    flag(gemm.transpose_a), ", ", flag(gemm.transpose_b), ">(grid, product", i,
                    ");\n");
    k.bytes += GemmBytes(gemm);
  }
  return text;
}

}  // namespace coconet
