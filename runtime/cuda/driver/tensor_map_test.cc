#include "runtime/cuda/driver/tensor_map.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// A tensor and the arrays that it points to.
struct Case {
  cuuint64_t extents[5] = {64, 100, 7, 2, 2}, strides[4] = {128, 12800, 89600, 179200};
  cuuint32_t box[5] = {64, 128, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  TiledTensor tensor = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                        .rank = 2,
                        .address = reinterpret_cast<const void*>(0x1000),
                        .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                        .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
};

/// The mistake of a good tensor after `change`.
std::string MistakeAfter(const std::function<void(Case&)>& change) {
  Case c;
  change(c);
  c.tensor.extents = c.extents, c.tensor.strides = c.strides;
  c.tensor.box = c.box, c.tensor.steps = c.steps;
  return MistakeOfTensorMap(c.tensor);
}

TEST(TensorMap, IsGoodWhereAllRulesHold) {
  EXPECT_EQ(MistakeAfter([](Case&) {}), "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.tensor.rank = 5; }), "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.tensor.rank = 1; }), "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.extents[1] = cuuint64_t{1} << 32; }), "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.strides[0] = (cuuint64_t{1} << 40) - 16; }), "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.box[1] = 256, c.steps[1] = 8; }), "");
  EXPECT_EQ(MistakeAfter([](Case& c) {
              c.tensor.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, c.strides[0] = 256, c.box[0] = 32;
              c.tensor.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
            }),
            "");
  EXPECT_EQ(MistakeAfter([](Case& c) { c.tensor.swizzle = {}, c.box[0] = 256; }), "");
}

TEST(TensorMap, NamesWhatTheDriverWouldRefuse) {
  const struct {
    std::function<void(Case&)> change;
    const char* mistake;
  } kCases[] = {
      {[](Case& c) { c.tensor.type = static_cast<CUtensorMapDataType>(99); },
       "want elements of whole bytes, have type 99"},
      {[](Case& c) { c.tensor.rank = 0; }, "want 1 to 5 dimensions, have 0"},
      {[](Case& c) { c.tensor.rank = 6; }, "want 1 to 5 dimensions, have 6"},
      {[](Case& c) { c.tensor.interleave = static_cast<CUtensorMapInterleave>(3); },
       "want an interleaved layout of CUDA, have 3"},
      {[](Case& c) { c.tensor.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; },
       "want 3 dimensions of an interleaved layout, have 2"},
      {[](Case& c) { c.tensor.swizzle = static_cast<CUtensorMapSwizzle>(7); },
       "want a swizzle of CUDA, have 7"},
      {[](Case& c) { c.tensor.rank = 3, c.tensor.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; },
       "want a swizzle of 32 bytes of a layout that interleaves 32, have 3"},
      {[](Case& c) { c.tensor.promotion = static_cast<CUtensorMapL2promotion>(4); },
       "want a promotion of CUDA, have 4"},
      {[](Case& c) { c.tensor.fill = static_cast<CUtensorMapFloatOOBfill>(2); },
       "want a fill of CUDA, have 2"},
      {[](Case& c) {
         c.tensor.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
         c.tensor.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
       },
       "want floats that are filled with NaN, have integers"},
      {[](Case& c) { c.tensor.address = reinterpret_cast<const void*>(0x1008); },
       "want an address that is a multiple of 16 bytes, have 0x1008"},
      {[](Case& c) {
         c.tensor.rank = 3, c.tensor.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
         c.tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
         c.tensor.address = reinterpret_cast<const void*>(0x1010);
       },
       "want an address that is a multiple of 32 bytes, have 0x1010"},
      {[](Case& c) { c.extents[1] = 0; }, "want 1 to 2^32 elements in dimension 1, have 0"},
      {[](Case& c) { c.extents[1] = (cuuint64_t{1} << 32) + 1; },
       "want 1 to 2^32 elements in dimension 1, have 4294967297"},
      {[](Case& c) { c.strides[0] = 136; },
       "want a stride of dimension 1 that is a multiple of 16 bytes and less than 2^40, have 136"},
      {[](Case& c) { c.strides[0] = cuuint64_t{1} << 40; },
       "want a stride of dimension 1 that is a multiple of 16 bytes and less than 2^40, have "
       "1099511627776"},
      {[](Case& c) { c.strides[0] = 112; },
       "want at least 128 bytes between indices of dimension 1, have 112"},
      {[](Case& c) { c.tensor.rank = 3, c.strides[1] = 12784; },
       "want at least 12800 bytes between indices of dimension 2, have 12784"},
      {[](Case& c) { c.box[1] = 0; }, "want 1 to 256 elements of a box in dimension 1, have 0"},
      {[](Case& c) { c.box[1] = 257; }, "want 1 to 256 elements of a box in dimension 1, have 257"},
      {[](Case& c) { c.steps[1] = 0; }, "want steps of 1 to 8 elements in dimension 1, have 0"},
      {[](Case& c) { c.steps[1] = 9; }, "want steps of 1 to 8 elements in dimension 1, have 9"},
      {[](Case& c) { c.box[0] = 60; },
       "want rows of a box that are multiples of 16 bytes, have 120"},
      {[](Case& c) { c.box[0] = 72; },
       "want rows of a box of at most the 128 bytes of its swizzle, have 144"},
      {[](Case& c) { c.tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; },
       "want rows of a box of at most the 32 bytes of its swizzle, have 128"},
  };
  for (const auto& [change, mistake] : kCases) EXPECT_EQ(MistakeAfter(change), mistake);
}

}  // namespace
}  // namespace coconet
