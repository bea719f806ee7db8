#include "tests/kernels/dialect_kernels.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace coconet {
namespace {

constexpr int kCastLanes = 16;

absl::string_view KernelTypeName(DType dtype) {
  return dtype == DType::kBool ? "boolean" : Name(dtype);
}

std::vector<int> LanesOf(DType dtype) {
  if (dtype == DType::kF32) return {4, 16};
  return {8};
}

}  // namespace

std::string KernelText(const ElementwiseKernel& kernel) {
  constexpr absl::string_view kNames = "xyz";
  std::string members, loads;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    absl::StrAppend(&members, "const ", KernelTypeName(kernel.operands[i]), "* in", i, "; ");
    absl::StrAppend(&loads, "[[maybe_unused]] const auto ", kNames.substr(i, 1), " = Load<V>(p.in",
                    i, " + i); ");
  }
  return absl::StrReplaceAll(R"(
namespace @name@_n {
using namespace coconet;
struct Params { @members@@result@* out; Index n; };
CC_KERNEL(@name@) {
  ForEach<@lanes@, 1>(grid, 0, p.n, true, [&](auto lanes, Index i) {
    return [&, i] {
      constexpr int V = decltype(lanes)::kCount;
      @loads@
      Store<kCached>(p.out + i, @expression@);
    };
  });
}
}
)",
                             {{"@name@", kernel.name},
                              {"@members@", members},
                              {"@result@", KernelTypeName(kernel.result)},
                              {"@lanes@", absl::StrCat(kernel.lanes)},
                              {"@loads@", loads},
                              {"@expression@", kernel.expression}});
}

ElementwiseKernel CastKernel(DType from, DType to) {
  return {absl::StrCat("cast_", Name(from), "_", Name(to)),
          {from},
          to,
          kCastLanes,
          absl::StrCat("CastTo<", KernelTypeName(to), ">(x)")};
}

ElementwiseKernel BitCastKernel(DType from, DType to) {
  return {absl::StrCat("bit_cast_", Name(from), "_", Name(to)),
          {from},
          to,
          kCastLanes,
          absl::StrCat("BitCastTo<", KernelTypeName(to), ", ", KernelTypeName(from), ">(x)")};
}

bool AreBitCast(DType from, DType to) {
  return from != DType::kBool && to != DType::kBool && SizeOf(from) == SizeOf(to);
}

ElementwiseKernel PointwiseKernel(Pw fn, DType dtype, int lanes) {
  const PwInfo& info = Info(fn);
  ElementwiseKernel kernel{
      absl::StrCat(info.name, "_", Name(dtype), "_", lanes), {}, dtype, lanes, ""};
  kernel.operands.assign(info.arity, dtype);
  if (fn == Pw::kSelect) kernel.operands[0] = DType::kBool;
  if (info.result == PwResult::kBool) kernel.result = DType::kBool;
  kernel.expression = absl::StrReplaceAll(
      info.kernel_expr, {{"$0", "x"}, {"$1", "y"}, {"$2", "z"}, {"$T", KernelTypeName(dtype)}});
  return kernel;
}

std::vector<ElementwiseKernel> PointwiseKernels() {
  std::vector<ElementwiseKernel> kernels;
  for (int row = 0; row < static_cast<int>(AllPointwise().size()); ++row) {
    const Pw fn = static_cast<Pw>(row);
    for (DType dtype : kAllDTypes) {
      if (dtype == DType::kBF16) continue;  // computed as f16 is
      if (Info(fn).float_only && !IsFloat(dtype)) continue;
      if (Info(fn).of_bools != (dtype == DType::kBool)) continue;
      if (Info(fn).of_bits && !IsInteger(dtype)) continue;
      for (int lanes : LanesOf(dtype)) kernels.push_back(PointwiseKernel(fn, dtype, lanes));
    }
  }
  return kernels;
}

std::vector<ElementwiseKernel> CastKernels() {
  std::vector<ElementwiseKernel> kernels;
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      kernels.push_back(CastKernel(from, to));
      if (AreBitCast(from, to)) kernels.push_back(BitCastKernel(from, to));
    }
  }
  return kernels;
}

}  // namespace coconet
