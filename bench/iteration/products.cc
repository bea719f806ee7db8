#include "bench/iteration/products.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/typed_graph.h"

namespace coconet::bench {

absl::StatusOr<Products> Products::Of(const Graph& program) {
  ASSIGN_OR_RETURN(const TypedGraph typed, TypedGraph::Of(program));
  Products products;
  for (NodeId id = 0; id < typed.size(); ++id) {
    const auto* product = As<MatMul>(program, id);
    if (product == nullptr) continue;
    const TensorType &a = typed.type(typed.inputs(id)[0]), &c = typed.type(id);
    for (const TensorType* type : {&a, &typed.type(typed.inputs(id)[1]), &c}) {
      if (!type->layout.sliced() && IsBound(type->shape)) continue;
      return absl::InvalidArgumentError(absl::StrCat(NodeText(program, id),
                                                     ": want operands that are bound and not "
                                                     "sliced, have ",
                                                     Text(*type)));
    }
    const size_t dims = c.shape.size();
    const GemmSize size{.m = c.shape[dims - 2].size,
                        .n = c.shape[dims - 1].size,
                        .k = a.shape[a.shape.size() - (product->transpose_a ? 2 : 1)].size};
    if (size.flops() == 0) continue;
    One one;
    one.batches = NumElements(c.shape) / (size.m * size.n);
    const auto element = static_cast<int64_t>(SizeOf(c.dtype));
    one.a_bytes = size.m * size.k * element;
    one.b_bytes = size.k * size.n * element;
    one.c_bytes = size.m * size.n * element;
    ASSIGN_OR_RETURN(one.a, Array::Allocate(one.batches * one.a_bytes));
    ASSIGN_OR_RETURN(one.b, Array::Allocate(one.batches * one.b_bytes));
    ASSIGN_OR_RETURN(one.c, Array::Allocate(one.batches * one.c_bytes));
    ASSIGN_OR_RETURN(one.gemm, OneDnnGemm::Make(c.dtype, size, OneDnnGemm::Weights::kAsTheyLie));
    products.flops_ += static_cast<double>(one.batches) * size.flops();
    products.all_.push_back(std::move(one));
  }
  return products;
}

absl::Status Products::Run() {
  for (const One& one : all_) {
    for (int64_t i = 0; i < one.batches; ++i) {
      RETURN_IF_ERROR(one.gemm->SetWeights(one.b.as<char>() + i * one.b_bytes));
      RETURN_IF_ERROR(
          one.gemm->Run(one.a.as<char>() + i * one.a_bytes, one.c.as<char>() + i * one.c_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
