#include "bench/embedding/fbgemm.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kRowsAhead = 16;  // GenerateEmbeddingSpMDM's own

// fbgemm/FbgemmEmbedding.h: EmbeddingSpMDMKernelSignature<T, int32_t, int32_t, float>::Type and
// GenerateEmbeddingSpMDMWithStrides<T, int32_t, int32_t, float>, which GenerateEmbeddingSpMDM
// calls. std::function is libstdc++'s in both.
template <class T>
using KernelOf = std::function<bool(int64_t output_size, int64_t index_size, int64_t data_size,
                                    const T* input, const int32_t* indices, const int32_t* offsets,
                                    const float* weights, float* out)>;
template <class T>
using Generate = KernelOf<T> (*)(int64_t block_size, bool has_weight, bool normalize_by_lengths,
                                 int prefetch, bool is_weight_positional, bool use_offsets,
                                 int64_t output_stride, int64_t input_stride, bool scale_bias_last,
                                 bool no_bag, bool is_bf16_out, bool is_bf16_in);

constexpr char kSymbol[] =
    "_ZN6fbgemm33GenerateEmbeddingSpMDMWithStridesI@iifLb0EEENS_29EmbeddingSpMDMKernelSignatureIT_"
    "T0_T1_T2_E4TypeElbbibbllbbbb";

absl::StatusOr<void*> SymbolOf(void* library, char type) {
  std::string symbol = kSymbol;
  symbol[symbol.find('@')] = type;
  void* const address = dlsym(library, symbol.c_str());
  if (address != nullptr) return address;
  return absl::NotFoundError(
      absl::StrCat("fbgemm: want GenerateEmbeddingSpMDMWithStrides, have ", dlerror()));
}

template <class T>
Fbgemm::Pool PoolOf(void* generate, int64_t columns, int64_t out_stride, bool is_bf16) {
  KernelOf<T> kernel = reinterpret_cast<Generate<T>>(generate)(
      columns, /*has_weight=*/false, /*normalize_by_lengths=*/false, kRowsAhead,
      /*is_weight_positional=*/false, /*use_offsets=*/true, out_stride, /*input_stride=*/columns,
      /*scale_bias_last=*/true, /*no_bag=*/false, /*is_bf16_out=*/false, is_bf16);
  return [kernel = std::move(kernel)](int64_t bags, int64_t count, int64_t rows, const void* table,
                                      const int32_t* indices, const int32_t* offsets, float* sums) {
    return kernel(bags, count, rows, static_cast<const T*>(table), indices, offsets, nullptr, sums);
  };
}

}  // namespace

absl::StatusOr<Fbgemm> Fbgemm::Load(const std::string& site_packages) {
  void* library = nullptr;
  // Each by its path, what it needs before it: the loader looks nowhere else for them.
  for (const char* name :
       {"torch/lib/libc10.so", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch.so",
        "fbgemm_gpu/asmjit.so", "fbgemm_gpu/fbgemm.so"}) {
    library = dlopen(absl::StrCat(site_packages, "/", name).c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (library == nullptr) return absl::NotFoundError(absl::StrCat("fbgemm: ", dlerror()));
  }
  Fbgemm loaded;
  ASSIGN_OR_RETURN(loaded.f32_, SymbolOf(library, 'f'));
  ASSIGN_OR_RETURN(loaded.bf16_, SymbolOf(library, 't'));
  return loaded;
}

Fbgemm::Pool Fbgemm::MakePool(DType dtype, int64_t columns, int64_t out_stride) const {
  return dtype == DType::kF32 ? PoolOf<float>(f32_, columns, out_stride, false)
                              : PoolOf<uint16_t>(bf16_, columns, out_stride, true);
}

absl::StatusOr<FbgemmBags> FbgemmBags::Make(const EmbeddingCase& c,
                                            const std::vector<OwnColumns>& mine,
                                            int64_t out_stride) {
  ASSIGN_OR_RETURN(const Fbgemm fbgemm, Fbgemm::Load(c.fbgemm));
  FbgemmBags made;
  made.bags_ = c.samples;
  made.rows_ = c.rows;
  for (const OwnColumns& own : mine) {
    const int64_t lookups = c.lookups[own.table];
    ASSIGN_OR_RETURN(Array offsets, Array::Allocate((c.samples + 1) * 4));
    for (int64_t b = 0; b <= c.samples; ++b)
      offsets.as<int32_t>()[b] = static_cast<int32_t>(b * lookups);
    made.tables_.push_back({fbgemm.MakePool(c.dtype, own.columns.size(), out_stride),
                            c.samples * lookups, std::move(offsets)});
  }
  return made;
}

void FbgemmBags::Pool(const std::vector<Array>& tables, const std::vector<Array>& indices,
                      absl::FunctionRef<float*(size_t k)> out) const {
  for (size_t k = 0; k < tables_.size(); ++k) {
    const Table& table = tables_[k];
    CC_CHECK(table.pool(bags_, table.lookups, rows_, tables[k].as<void>(), indices[k].as<int32_t>(),
                        table.offsets.as<int32_t>(), out(k)));
  }
}

}  // namespace coconet::bench
