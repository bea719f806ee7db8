#include "autotune/c/dlpack.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr uint8_t kDlpackBool = 6;  // kDLBool, from DLPack 0.8 on
// kDLFloat8_e4m3fn and kDLFloat8_e5m2, from DLPack 1.1 on.
constexpr uint8_t kDlpackF8E4M3 = 10, kDlpackF8E5M2 = 12;
constexpr int kMostDimensions = 64;

/// What a DLManagedTensor points to.
struct SharedTensor {
  DLManagedTensor managed = {};
  DeviceBuffer buffer;
  std::vector<int64_t> shape, strides;
};

absl::Status ReadTensor(const DLTensor& from, ForeignTensor& to) {
  ASSIGN_OR_RETURN(to.dtype, FromDlpack(from.dtype));
  to.element_bytes = SizeOf(*to.dtype);
  switch (from.device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
      break;
    case kDLCUDA:
    case kDLCUDAManaged:
      to.on_gpu = true;
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "want a tensor on a CPU (DLPack device ", static_cast<int>(kDLCPU), ") or a CUDA GPU (",
          static_cast<int>(kDLCUDA), "), have device ", static_cast<int>(from.device.device_type)));
  }
  if (from.ndim < 0 || from.ndim > kMostDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("want 0 to ", kMostDimensions, " dimensions, have ", from.ndim));
  }
  if (from.ndim > 0 && from.shape == nullptr)
    return absl::InvalidArgumentError("want a shape, have NULL");
  to.shape.assign(from.shape, from.shape + from.ndim);
  if (from.strides != nullptr) to.strides.assign(from.strides, from.strides + from.ndim);
  if (from.data != nullptr) to.data = static_cast<char*>(from.data) + from.byte_offset;
  return absl::OkStatus();
}

}  // namespace

DLDataType ToDlpack(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * SizeOf(dtype));
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kF64:
      return {kDLFloat, bits, 1};
    case DType::kBF16:
      return {kDLBfloat, bits, 1};
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return {kDLInt, bits, 1};
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return {kDLUInt, bits, 1};
    case DType::kBool:
      return {kDlpackBool, bits, 1};
    case DType::kF8E4M3:
      return {kDlpackF8E4M3, bits, 1};
    case DType::kF8E5M2:
      return {kDlpackF8E5M2, bits, 1};
  }
  CC_CHECK(false);
}

absl::StatusOr<DType> FromDlpack(DLDataType dtype) {
  for (DType known : kAllDTypes) {
    const DLDataType as = ToDlpack(known);
    if (as.code == dtype.code && as.bits == dtype.bits && as.lanes == dtype.lanes) return known;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "want a dtype of f32, f16, bf16, f64, f8e4m3, f8e5m2, i8 to i64, u8 to u64 or bool, have "
      "DLPack code ",
      dtype.code, ", ", dtype.bits, " bits, ", dtype.lanes, " lanes"));
}

ForeignTensor FromDlpack(const DLTensor* tensor) {
  ForeignTensor foreign;
  foreign.error = tensor == nullptr ? absl::InvalidArgumentError("want a tensor, have NULL")
                                    : ReadTensor(*tensor, foreign);
  return foreign;
}

DLManagedTensor* ToDlpack(const DeviceBuffer& buffer, DLDataType dtype, std::vector<int64_t> shape,
                          std::vector<int64_t> strides) {
  auto shared = std::make_unique<SharedTensor>();
  shared->buffer = buffer;
  shared->shape = std::move(shape);
  shared->strides = std::move(strides);
  DLTensor& tensor = shared->managed.dl_tensor;
  tensor.data = buffer.data();
  tensor.device = {buffer.on_host() ? kDLCPU : kDLCUDA, buffer.gpu()};
  tensor.ndim = static_cast<int>(shared->shape.size());
  tensor.dtype = dtype;
  tensor.shape = shared->shape.data();
  tensor.strides = shared->strides.empty() ? nullptr : shared->strides.data();
  shared->managed.manager_ctx = shared.get();
  shared->managed.deleter = [](DLManagedTensor* self) {
    if (self == nullptr) return;
    const std::unique_ptr<SharedTensor> owned(static_cast<SharedTensor*>(self->manager_ctx));
    owned->buffer.Release();
  };
  return &shared.release()->managed;
}

}  // namespace coconet
