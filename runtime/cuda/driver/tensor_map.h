#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

namespace coconet {

/// The arguments of cuTensorMapEncodeTiled.
struct TiledTensor {
  CUtensorMapDataType type{};
  unsigned rank = 0;  // dimensions, the innermost one first
  const void* address = nullptr;
  const cuuint64_t* extents = nullptr;  // [rank], in elements
  const cuuint64_t* strides = nullptr;  // [rank - 1], in bytes: of dimension 1 and those above it
  const cuuint32_t* box = nullptr;      // [rank], in elements
  const cuuint32_t* steps = nullptr;    // [rank], in elements
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

/// Bytes of an element; 0 for packed types, whose elements have less than one, and for no type.
unsigned ElementBytes(CUtensorMapDataType type);

/// What the driver's documentation asks of a tensor map and this one lacks, as "want ..., have
/// ..."; "" if the driver encodes it. Packed types are refused.
std::string MistakeOfTensorMap(const TiledTensor& tensor);

}  // namespace coconet
