#include "bench/embedding/embedding_baseline.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/harness/rounds.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

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
    "_ZN6fbgemm33GenerateEmbeddingSpMDMWithStridesI$0iifLb0EEENS_29EmbeddingSpMDMKernelSignatureIT_"
    "T0_T1_T2_E4TypeElbbibbllbbbb";

absl::StatusOr<void*> Load(const std::string& site_packages) {
  void* library = nullptr;
  // Each by its path, what it needs before it: the loader looks nowhere else for them.
  for (const char* name :
       {"torch/lib/libc10.so", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch.so",
        "fbgemm_gpu/asmjit.so", "fbgemm_gpu/fbgemm.so"}) {
    library = dlopen(absl::StrCat(site_packages, "/", name).c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (library == nullptr) return absl::NotFoundError(absl::StrCat("fbgemm: ", dlerror()));
  }
  return library;
}

}  // namespace

template <class T>
absl::StatusOr<FbgemmBags::Kernel> FbgemmBags::KernelFor(void* library, int64_t columns,
                                                         int64_t out_stride) {
  constexpr bool kIsF32 = std::is_same_v<T, float>;
  const std::string symbol = absl::Substitute(kSymbol, kIsF32 ? "f" : "t");
  void* const generate = dlsym(library, symbol.c_str());
  if (generate == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("fbgemm: want GenerateEmbeddingSpMDMWithStrides, have ", dlerror()));
  }
  KernelOf<T> kernel = reinterpret_cast<Generate<T>>(generate)(
      columns, /*has_weight=*/false, /*normalize_by_lengths=*/false, kRowsAhead,
      /*is_weight_positional=*/false, /*use_offsets=*/true, out_stride, /*input_stride=*/columns,
      /*scale_bias_last=*/true, /*no_bag=*/false, /*is_bf16_out=*/false, /*is_bf16_in=*/!kIsF32);
  return [kernel = std::move(kernel)](int64_t bags, int64_t count, int64_t rows, const void* table,
                                      const int32_t* indices, const int32_t* offsets, float* sums) {
    return kernel(bags, count, rows, static_cast<const T*>(table), indices, offsets, nullptr, sums);
  };
}

absl::StatusOr<FbgemmBags> FbgemmBags::Make(const EmbeddingCase& c,
                                            const std::vector<OwnColumns>& mine,
                                            int64_t out_stride) {
  ASSIGN_OR_RETURN(void* const library, Load(c.fbgemm));
  FbgemmBags made;
  made.bags_ = c.samples;
  made.rows_ = c.rows;
  for (const OwnColumns& own : mine) {
    Table& table = made.tables_.emplace_back();
    const int64_t columns = own.columns.size(), lookups = c.lookups[own.table];
    ASSIGN_OR_RETURN(table.kernel, c.dtype == DType::kF32
                                       ? KernelFor<float>(library, columns, out_stride)
                                       : KernelFor<uint16_t>(library, columns, out_stride));
    table.lookups = c.samples * lookups;
    ASSIGN_OR_RETURN(table.offsets, Array::Allocate((c.samples + 1) * 4));
    for (int64_t b = 0; b <= c.samples; ++b)
      table.offsets.as<int32_t>()[b] = static_cast<int32_t>(b * lookups);
  }
  return made;
}

void FbgemmBags::Pool(const std::vector<Array>& tables, const std::vector<Array>& indices,
                      absl::FunctionRef<float*(size_t k)> out) const {
  for (size_t k = 0; k < tables_.size(); ++k) {
    const Table& table = tables_[k];
    CC_CHECK(table.kernel(bags_, table.lookups, rows_, tables[k].as<void>(),
                          indices[k].as<int32_t>(), table.offsets.as<int32_t>(), out(k)));
  }
}

absl::StatusOr<std::unique_ptr<EmbeddingBaseline>> EmbeddingBaseline::Make(const EmbeddingCase& c,
                                                                           const ColumnCut& cut,
                                                                           IndexSets& sets,
                                                                           const Rank& rank) {
  auto made = std::make_unique<EmbeddingBaseline>();
  made->c_ = c;
  made->cut_ = cut;
  made->sets_ = &sets;
  made->width_ = cut.width[rank.rank()];
  const Slicing samples = SliceExtent(c.samples, rank.size());
  made->samples_ = samples.Of(rank.rank());
  for (int r = 0; r < rank.size(); ++r) {
    made->sent_.push_back(samples.Of(r).size() * made->width_);
    made->received_.push_back(made->samples_.size() * cut.width[r]);
  }
  RETURN_IF_ERROR(made->AllocateTables());
  const auto floats = [](int64_t count) {
    return Array::Allocate(std::max<int64_t>(1, count) * static_cast<int64_t>(sizeof(float)));
  };
  const int64_t arriving =
      made->samples_.size() * c.columns * static_cast<int64_t>(c.lookups.size());
  ASSIGN_OR_RETURN(made->leaving_, floats(c.samples * made->width_));
  ASSIGN_OR_RETURN(made->arriving_, floats(arriving));
  ASSIGN_OR_RETURN(made->pooled_, floats(arriving));
  if (!c.fbgemm.empty()) RETURN_IF_ERROR(made->LoadFbgemm());
  return made;
}

absl::Status EmbeddingBaseline::AllocateTables() {
  const auto size = static_cast<int64_t>(SizeOf(c_.dtype));
  const Numbers numbers = NumbersOf(c_);
  for (const OwnColumns& own : cut_.mine) {
    const int64_t width = own.columns.size(), lookups = c_.samples * c_.lookups[own.table];
    ASSIGN_OR_RETURN(Array table, Array::Allocate(std::max<int64_t>(1, c_.rows * width * size)));
    const std::string name = TensorName("tables", own.table);
    for (int64_t row = 0; row < c_.rows; ++row) {
      for (int64_t j = 0; j < width; ++j) {
        StoreElement(c_.dtype, table.as<void>(), row * width + j,
                     numbers(name, row * c_.columns + own.columns.begin + j, 0));
      }
    }
    tables_.push_back(std::move(table));
    ASSIGN_OR_RETURN(indices_.emplace_back(), Array::Allocate(std::max<int64_t>(4, 4 * lookups)));
  }
  return absl::OkStatus();
}

void EmbeddingBaseline::Take(int64_t set) {
  for (size_t k = 0; k < indices_.size(); ++k) sets_->Copy(set, k, indices_[k].as<void>());
}

absl::Status EmbeddingBaseline::LoadFbgemm() {
  absl::StatusOr<FbgemmBags> made = FbgemmBags::Make(c_, cut_.mine, width_);
  if (absl::IsNotFound(made.status())) {
    pools_by_ = absl::StrCat("loop; fbgemm is absent: ", made.status().message());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(made.status());
  fbgemm_ = *std::move(made);
  // Its kernel for bf16 is a scalar loop in some versions.
  const auto fastest = [&](void (EmbeddingBaseline::*pool)()) {
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 4; ++round) {
      Take(sets_->Next());
      const double start_s = SecondsNow();
      (this->*pool)();
      const double took_s = SecondsNow() - start_s;
      if (round > 0) least = std::min(least, took_s);
    }
    return least;
  };
  const double loop = fastest(&EmbeddingBaseline::PoolByLoop),
               theirs = fastest(&EmbeddingBaseline::PoolByFbgemm);
  if (loop < theirs)
    fbgemm_.reset();
  else
    pools_by_ = "fbgemm";
  return absl::OkStatus();
}

void EmbeddingBaseline::PoolOnce() { fbgemm_.has_value() ? PoolByFbgemm() : PoolByLoop(); }

void EmbeddingBaseline::PoolByFbgemm() {
  fbgemm_->Pool(tables_, indices_,
                [&](size_t k) { return leaving_.as<float>() + cut_.mine[k].at; });
}

void EmbeddingBaseline::PoolByLoop() {
  const auto pool = c_.dtype == DType::kF32 ? BestKernels().pool_f32 : BestKernels().pool_bf16;
  for (size_t k = 0; k < cut_.mine.size(); ++k) {
    pool({.table = tables_[k].as<void>(),
          .columns = cut_.mine[k].columns.size(),
          .indices = indices_[k].as<int32_t>(),
          .bags = c_.samples,
          .length = c_.lookups[cut_.mine[k].table],
          .out = leaving_.as<float>() + cut_.mine[k].at,
          .out_stride = width_});
  }
}

absl::Status EmbeddingBaseline::RunOnce() {
  PoolOnce();
  RETURN_IF_ERROR(MpiAllToAll(leaving_.as<float>(), sent_, arriving_.as<float>(), received_));
  const float* from = arriving_.as<float>();
  float* to = pooled_.as<float>();  // [own samples, columns of all tables]
  const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
  for (int64_t width : cut_.width) {
    for (int64_t b = 0; b < samples_.size(); ++b)
      std::memcpy(to + b * all, from + b * width, width * sizeof(float));
    from += samples_.size() * width;
    to += width;
  }
  return absl::OkStatus();
}

float EmbeddingBaseline::At(int table, int64_t sample, int64_t column) const {
  const int64_t all = c_.columns * static_cast<int64_t>(c_.lookups.size());
  return pooled_.as<float>()[(sample - samples_.begin) * all + table * c_.columns + column];
}

}  // namespace coconet::bench
