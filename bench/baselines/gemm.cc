#include "bench/baselines/gemm.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "coconet/base/status.h"
#include "runtime/node/loops/halves.h"

namespace coconet::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Tensor = dnnl::memory::desc;

absl::StatusOr<dnnl::memory::data_type> TypeOf(DType dtype) {
  using Type = dnnl::memory::data_type;
  if (dtype == DType::kF32) return Type::f32;
  if (dtype == DType::kF16) return Type::f16;
  if (dtype == DType::kBF16) return Type::bf16;
  return absl::InvalidArgumentError(
      absl::StrCat("OneDnnGemm: want f32, f16 or bf16, have ", Name(dtype)));
}

/// Runs `call` and turns its exceptions into a status.
template <class Call>
absl::Status Try(Call call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    const std::string text = absl::StrCat("oneDNN: ", error.what());
    // Some versions call a type that the processor lacks an invalid argument.
    const bool lacks = error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
    return lacks ? absl::UnimplementedError(text) : absl::InternalError(text);
  }
}

void* Data(const void* data) { return const_cast<void*>(data); }

class Gemm final : public OneDnnGemm {
 public:
  /// Throws dnnl::error.
  Gemm(DType dtype, dnnl::memory::data_type type, dnnl::memory::data_type result,
       const GemmSize& size, bool packed)
      : dtype_(dtype),
        plain_b_({size.k, size.n}, type, Tag::ab),
        description_({Tensor({size.m, size.k}, type, Tag::ab),
                      packed ? Tensor({size.k, size.n}, type, Tag::any) : plain_b_,
                      Tensor({size.m, size.n}, result, Tag::ab)},
                     OwnScratchpad(), engine_),
        matmul_(description_),
        packed_(description_.weights_desc() != plain_b_) {}

  absl::Status Open() {
    if (absl::StartsWith(description_.impl_info_str(), "ref") && dtype_ != DType::kF32)
      return absl::UnimplementedError("oneDNN has only its reference");
    ASSIGN_OR_RETURN(
        scratch_, Array::Allocate(static_cast<int64_t>(description_.scratchpad_desc().get_size())));
    if (packed_) {
      ASSIGN_OR_RETURN(
          weights_, Array::Allocate(static_cast<int64_t>(description_.weights_desc().get_size())));
    }
    return Try([&] {
      tensors_ = {
          {DNNL_ARG_SRC, {description_.src_desc(), engine_, nullptr}},
          {DNNL_ARG_WEIGHTS, {description_.weights_desc(), engine_, weights_.as<void>()}},
          {DNNL_ARG_DST, {description_.dst_desc(), engine_, nullptr}},
          {DNNL_ARG_SCRATCHPAD, {description_.scratchpad_desc(), engine_, scratch_.as<void>()}}};
      plain_weights_ = dnnl::memory(plain_b_, engine_, nullptr);
      if (packed_) pack_ = dnnl::reorder(plain_weights_, tensors_.at(DNNL_ARG_WEIGHTS));
    });
  }

  DType multiplies() const override { return dtype_; }

  absl::Status SetWeights(const void* b) override {
    return Try([&] {
      if (!packed_) return tensors_.at(DNNL_ARG_WEIGHTS).set_data_handle(Data(b));
      plain_weights_.set_data_handle(Data(b));
      pack_.execute(stream_, plain_weights_, tensors_.at(DNNL_ARG_WEIGHTS));
      stream_.wait();
    });
  }

  absl::Status Run(const void* a, void* c) override {
    return Try([&] {
      tensors_.at(DNNL_ARG_SRC).set_data_handle(Data(a));
      tensors_.at(DNNL_ARG_DST).set_data_handle(c);
      matmul_.execute(stream_, tensors_);
      stream_.wait();
    });
  }

 private:
  static dnnl::primitive_attr OwnScratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  DType dtype_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Tensor plain_b_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul matmul_;
  dnnl::reorder pack_;
  bool packed_;
  Array scratch_, weights_;
  dnnl::memory plain_weights_;
  std::unordered_map<int, dnnl::memory> tensors_;
};

absl::StatusOr<std::unique_ptr<OneDnnGemm>> MakeDirect(DType dtype, DType result,
                                                       const GemmSize& size, bool packed) {
  ASSIGN_OR_RETURN(const dnnl::memory::data_type type, TypeOf(dtype));
  ASSIGN_OR_RETURN(const dnnl::memory::data_type result_type, TypeOf(result));
  std::unique_ptr<Gemm> gemm;
  RETURN_IF_ERROR(
      Try([&] { gemm = std::make_unique<Gemm>(dtype, type, result_type, size, packed); }));
  RETURN_IF_ERROR(gemm->Open());
  return gemm;
}

/// A product of f16 or bf16 by way of oneDNN's product of f32.
class WidenedGemm final : public OneDnnGemm {
 public:
  WidenedGemm(DType dtype, DType result, const GemmSize& size, bool packed)
      : dtype_(dtype), result_(result), size_(size), packed_(packed) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(product_, MakeDirect(DType::kF32, DType::kF32, size_, packed_));
    const auto floats = [](int64_t rows, int64_t columns) {
      return Array::Allocate(rows * columns * static_cast<int64_t>(sizeof(float)));
    };
    ASSIGN_OR_RETURN(a_, floats(size_.m, size_.k));
    ASSIGN_OR_RETURN(b_, floats(size_.k, size_.n));
    if (result_ == DType::kF32) return absl::OkStatus();
    ASSIGN_OR_RETURN(c_, floats(size_.m, size_.n));
    return absl::OkStatus();
  }

  DType multiplies() const override { return DType::kF32; }

  absl::Status SetWeights(const void* b) override {
    plain_ = b;
    if (packed_) WidenWeights();
    return product_->SetWeights(b_.as<void>());
  }

  absl::Status Run(const void* a, void* c) override {
    WidenHalves(dtype_, a_.as<float>(), a, size_.m * size_.k);
    if (!packed_) WidenWeights();
    if (result_ == DType::kF32) return product_->Run(a_.as<void>(), c);
    RETURN_IF_ERROR(product_->Run(a_.as<void>(), c_.as<void>()));
    NarrowHalves(result_, c, c_.as<float>(), size_.m * size_.n);
    return absl::OkStatus();
  }

 private:
  void WidenWeights() { WidenHalves(dtype_, b_.as<float>(), plain_, size_.k * size_.n); }

  DType dtype_, result_;
  GemmSize size_;
  bool packed_;
  const void* plain_ = nullptr;
  Array a_, b_, c_;
  std::unique_ptr<OneDnnGemm> product_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OneDnnGemm>> OneDnnGemm::Make(DType dtype, const GemmSize& size,
                                                             Weights weights,
                                                             std::optional<DType> result) {
  const bool packed = weights == Weights::kPacked;
  const DType to = result.value_or(dtype);
  if (to != dtype && to != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("OneDnnGemm: want a result of the operands' type or of f32, have ", Name(to)));
  }
  omp_set_num_threads(1);
  absl::StatusOr<std::unique_ptr<OneDnnGemm>> direct = MakeDirect(dtype, to, size, packed);
  if (!absl::IsUnimplemented(direct.status()) || dtype == DType::kF32) return direct;
  auto widened = std::make_unique<WidenedGemm>(dtype, to, size, packed);
  RETURN_IF_ERROR(widened->Open());
  return widened;
}

}  // namespace coconet::bench
