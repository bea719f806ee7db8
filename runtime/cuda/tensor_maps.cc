#include "runtime/cuda/tensor_maps.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/cuda/driver/tensor_map.h"

namespace coconet {
namespace {

CUtensorMapDataType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::kF16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::kBF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::kF64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case DType::kI16:
    case DType::kU16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case DType::kI32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::kU32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case DType::kI64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::kU64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  }
  CC_CHECK(false);
}

absl::StatusOr<TensorMapWords> Encode(const DriverApi& driver, const ArgumentSource& source,
                                      const MatrixMap& map) {
  const int rank = source.rank % source.plan.ranks;
  const bool of_many = map.matrices.total > 0;
  const int64_t matrices = of_many ? map.matrices.On(rank) : 1;
  const bool empty = map.rows.On(rank) == 0 || map.columns.On(rank) == 0 || matrices == 0;
  const auto size = static_cast<int64_t>(SizeOf(map.dtype));
  const int64_t first = empty ? 0 : map.offset;
  const char* const base =
      static_cast<const char*>(source.address(map.buffer, source.rank)) + first * size;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(empty ? 1 : map.columns.On(rank)),
                                static_cast<cuuint64_t>(empty ? 1 : map.rows.On(rank)),
                                static_cast<cuuint64_t>(empty ? 1 : matrices)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(map.ld * size),
                                static_cast<cuuint64_t>(map.matrix_step * size)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(map.box_columns),
                            static_cast<cuuint32_t>(map.box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const TiledTensor tensor{.type = TypeOf(map.dtype),
                           .rank = of_many ? 3u : 2u,
                           .address = base,
                           .extents = extents,
                           .strides = strides,
                           .box = box,
                           .steps = steps,
                           .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                           .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
  if (const std::string mistake = MistakeOfTensorMap(tensor); !mistake.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(mistake, " (dimension 1: its rows; 2: its matrices)"));
  CUtensorMap made;
  RETURN_IF_CU(driver, TensorMapEncodeTiled, &made, tensor.type, tensor.rank,
               const_cast<char*>(base), extents, strides, box, steps, tensor.interleave,
               tensor.swizzle, tensor.promotion, tensor.fill);
  TensorMapWords words;
  static_assert(sizeof made == sizeof words);
  std::memcpy(words.data(), &made, sizeof words);
  return words;
}

}  // namespace

absl::StatusOr<std::vector<TensorMapWords>> EncodeMaps(const Device& device,
                                                       const ArgumentSource& source,
                                                       const KernelStep& step) {
  std::vector<TensorMapWords> words;
  if (step.maps.empty()) return words;
  const DeviceFacts& facts = device.facts();
  if (!facts.simulated() && !facts.copies_in_bulk()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Bind: ", step.label, ": want a GPU with tensor maps, of compute capability 9.0 or later, ",
        "have ", facts.major, ".", facts.minor, " (GPU ", device.ordinal(), ")"));
  }
  for (const MatrixMap& map : step.maps) {
    const absl::StatusOr<TensorMapWords> made = Encode(device.driver(), source, map);
    RETURN_IF_ERROR(
        WithContext(made.status(), absl::StrCat("Bind: ", step.label, ": the tensor map of \"",
                                                source.plan.buffers[map.buffer].name, "\"")));
    words.push_back(*made);
  }
  return words;
}

}  // namespace coconet
