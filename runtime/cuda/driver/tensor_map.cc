#include "runtime/cuda/driver/tensor_map.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr cuuint64_t kMostExtent = cuuint64_t{1} << 32, kEndOfStrides = cuuint64_t{1} << 40;
constexpr cuuint32_t kMostBox = 256, kMostStep = 8;
constexpr unsigned kMostRank = 5;

template <class Have>
std::string Mistake(const std::string& want, const Have& have) {
  return absl::StrCat("want ", want, ", have ", have);
}

bool IsFloat(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return true;
    default:  // CUtensorMapDataType is NVIDIA's, and grows
      return false;
  }
}

/// The bytes of a box's row that a swizzle spans; 0: no limit. -1: no swizzle of CUDA's.
int64_t Span(CUtensorMapSwizzle swizzle) {
  // By CUtensorMapSwizzle; those of other chunks than 16 bytes are younger than some headers.
  constexpr int64_t kSpans[] = {0, 32, 64, 128, 128, 128, 128};
  const int number = static_cast<int>(swizzle);
  return number < 0 || number >= static_cast<int>(std::size(kSpans)) ? -1 : kSpans[number];
}

std::string MistakeOfKinds(const TiledTensor& t) {
  if (ElementBytes(t.type) == 0)
    return Mistake("elements of whole bytes", absl::StrCat("type ", static_cast<int>(t.type)));
  if (t.rank < 1 || t.rank > kMostRank)
    return Mistake(absl::StrCat("1 to ", kMostRank, " dimensions"), t.rank);
  if (t.interleave < CU_TENSOR_MAP_INTERLEAVE_NONE || t.interleave > CU_TENSOR_MAP_INTERLEAVE_32B)
    return Mistake("an interleaved layout of CUDA", static_cast<int>(t.interleave));
  if (t.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && t.rank < 3)
    return Mistake("3 dimensions of an interleaved layout", t.rank);
  if (Span(t.swizzle) < 0) return Mistake("a swizzle of CUDA", static_cast<int>(t.swizzle));
  if (t.interleave == CU_TENSOR_MAP_INTERLEAVE_32B && t.swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
    return Mistake("a swizzle of 32 bytes of a layout that interleaves 32",
                   static_cast<int>(t.swizzle));
  if (t.promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE ||
      t.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
    return Mistake("a promotion of CUDA", static_cast<int>(t.promotion));
  const bool nan = t.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  if (!nan && t.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return Mistake("a fill of CUDA", static_cast<int>(t.fill));
  if (nan && !IsFloat(t.type)) return Mistake("floats that are filled with NaN", "integers");
  return "";
}

std::string MistakeOfMemory(const TiledTensor& t) {
  const unsigned unit = t.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  const auto address = reinterpret_cast<uintptr_t>(t.address);
  if (address % unit != 0)
    return Mistake(absl::StrCat("an address that is a multiple of ", unit, " bytes"),
                   absl::StrCat("0x", absl::Hex(address)));
  cuuint64_t least = ElementBytes(t.type);  // bytes from one index of the dimension to the next
  for (unsigned d = 0; d < t.rank; ++d) {
    if (t.extents[d] < 1 || t.extents[d] > kMostExtent)
      return Mistake(absl::StrCat("1 to 2^32 elements in dimension ", d), t.extents[d]);
    if (d + 1 == t.rank) break;
    least *= t.extents[d];
    if (t.strides[d] % unit != 0 || t.strides[d] >= kEndOfStrides) {
      return Mistake(absl::StrCat("a stride of dimension ", d + 1, " that is a multiple of ", unit,
                                  " bytes and less than 2^40"),
                     t.strides[d]);
    }
    if (t.strides[d] < least)
      return Mistake(
          absl::StrCat("at least ", least, " bytes between indices of dimension ", d + 1),
          t.strides[d]);
    least = t.strides[d];
  }
  return "";
}

std::string MistakeOfBox(const TiledTensor& t) {
  const bool plain = t.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
  for (unsigned d = 0; d < t.rank; ++d) {
    if (t.box[d] < 1 || t.box[d] > kMostBox)
      return Mistake(absl::StrCat("1 to ", kMostBox, " elements of a box in dimension ", d),
                     t.box[d]);
    const bool ignored = plain && d == 0;
    if (!ignored && (t.steps[d] < 1 || t.steps[d] > kMostStep))
      return Mistake(absl::StrCat("steps of 1 to ", kMostStep, " elements in dimension ", d),
                     t.steps[d]);
  }
  const int64_t row = int64_t{t.box[0]} * ElementBytes(t.type), span = Span(t.swizzle);
  if (plain && row % 16 != 0)
    return Mistake("rows of a box that are multiples of 16 bytes", absl::StrCat(row));
  if (plain && span > 0 && row > span)
    return Mistake(absl::StrCat("rows of a box of at most the ", span, " bytes of its swizzle"),
                   absl::StrCat(row));
  return "";
}

}  // namespace

unsigned ElementBytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:  // CUtensorMapDataType is NVIDIA's, and grows
      return 0;
  }
}

std::string MistakeOfTensorMap(const TiledTensor& tensor) {
  for (std::string (*of)(const TiledTensor&) : {MistakeOfKinds, MistakeOfMemory, MistakeOfBox}) {
    if (std::string mistake = of(tensor); !mistake.empty()) return mistake;
  }
  return "";
}

}  // namespace coconet
