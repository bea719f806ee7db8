#include "runtime/node/loops/reduce.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace coconet {
namespace {

/// The exact value rounded once. The values below have exact sums in double.
double Reference(ReduceKind kind, const std::vector<double>& values) {
  double all = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    switch (kind) {
      case ReduceKind::kSum:
        all += values[i];
        break;
      case ReduceKind::kMax:
        all = std::max(all, values[i]);
        break;
      case ReduceKind::kMin:
        all = std::min(all, values[i]);
        break;
    }
  }
  return all;
}

std::string NameOf(DType dtype) { return std::string(Name(dtype)); }

class Reduce : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, Reduce, testing::ValuesIn(kAllDTypes),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(Reduce, EqualsTheScalarReference) {
  const DType dtype = GetParam();
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  std::mt19937 random(1);
  for (int inputs : {2, 3, 8}) {
    for (int64_t count : {0, 1, 15, 64, 2047, 2049, 5000}) {
      for (ReduceKind kind : kAllReduceKinds) {
        std::vector<std::vector<char>> data(inputs, std::vector<char>(count * size + 1));
        std::vector<const void*> ins;
        for (auto& in : data) {
          for (int64_t i = 0; i < count; ++i)
            StoreElement(dtype, in.data(), i, static_cast<double>(random() % 15));
          ins.push_back(in.data());
        }
        std::vector<char> want(count * size), first(count * size), second(count * size);
        for (int64_t i = 0; i < count; ++i) {
          std::vector<double> values;
          for (const void* in : ins) values.push_back(LoadElement(dtype, in, i).real());
          StoreElement(dtype, want.data(), i, Reference(kind, values));
        }
        ReduceInto({first.data(), second.data()}, ins, count, dtype, kind);
        EXPECT_EQ(first, want) << Name(kind) << " of " << inputs << " x " << count;
        EXPECT_EQ(second, want) << Name(kind) << " of " << inputs << " x " << count;
        ReduceInto({data[1].data()}, ins, count, dtype, kind);  // in place
        data[1].pop_back();
        EXPECT_EQ(data[1], want) << Name(kind) << " in place, of " << inputs << " x " << count;
      }
    }
  }
}

TEST(Reduce, ExtremesWithANaNAreNaN) {
  constexpr int kInputs = 3;
  for (DType dtype :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kF8E4M3, DType::kF8E5M2}) {
    for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
      for (int which = 0; which < kInputs; ++which) {
        double held[kInputs], result = 0;
        std::vector<const void*> ins;
        for (int k = 0; k < kInputs; ++k) {
          StoreElement(dtype, &held[k], 0, k == which ? std::nan("") : k - 1);
          ins.push_back(&held[k]);
        }
        ReduceInto({&result}, ins, 1, dtype, kind);
        EXPECT_TRUE(LoadElement(dtype, &result, 0).is_nan())
            << Name(kind) << " of " << NameOf(dtype) << ", NaN is operand " << which;
      }
    }
  }
}

TEST(ReduceHalves, WidensAndRoundsEveryBitPatternAsTheScalarsDo) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> all(65536), zeros(65536, 0x8000), out(65536);  // x + -0 is x
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    ReduceInto({out.data()}, {all.data(), zeros.data()}, 65536, dtype, ReduceKind::kSum);
    for (size_t i = 0; i < all.size(); ++i) {
      const Number want = LoadElement(dtype, all.data(), i),
                   have = LoadElement(dtype, out.data(), i);
      EXPECT_TRUE(want.is_nan() ? have.is_nan() : out[i] == all[i])
          << NameOf(dtype) << " bits " << i;
    }
  }
}

TEST(ReduceHalves, RoundsOnceToNearestEven) {
  const auto sum = [](DType dtype, std::vector<double> values) {
    std::vector<uint16_t> bits(values.size());
    std::vector<const void*> ins;
    for (size_t i = 0; i < values.size(); ++i) {
      StoreElement(dtype, &bits[i], 0, values[i]);
      ins.push_back(&bits[i]);
    }
    uint16_t out;
    ReduceInto({&out}, ins, 1, dtype, ReduceKind::kSum);
    return LoadElement(dtype, &out, 0);
  };
  EXPECT_EQ(sum(DType::kF16, {2048, 1}), 2048);     // a tie
  EXPECT_EQ(sum(DType::kF16, {2048, 1, 1}), 2050);  // no rounding in between
  EXPECT_EQ(sum(DType::kF16, {2050, 1}), 2052);     // a tie, to even
  EXPECT_EQ(sum(DType::kF16, {65504, 15}), 65504);
  EXPECT_EQ(sum(DType::kF16, {65504, 16}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(sum(DType::kF16, {0x1p-24, 0x1p-24}), 0x1p-23);  // subnormals
  EXPECT_EQ(sum(DType::kF16, {0x1p-14, -0x1p-24}), 0x1p-14 - 0x1p-24);
  EXPECT_EQ(sum(DType::kBF16, {256, 1}), 256);
  EXPECT_EQ(sum(DType::kBF16, {256, 1, 1}), 258);
}

TEST(ReduceIntegers, WrapAroundAndCompareWithSign) {
  const auto reduce = [](int32_t a, int32_t b, ReduceKind kind) {
    int32_t out;
    ReduceInto({&out}, {&a, &b}, 1, DType::kI32, kind);
    return out;
  };
  EXPECT_EQ(reduce(std::numeric_limits<int32_t>::max(), 1, ReduceKind::kSum),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(reduce(-5, 3, ReduceKind::kMax), 3);
  EXPECT_EQ(reduce(-5, 3, ReduceKind::kMin), -5);
}

TEST(ReduceInto, AddsInPlace) {
  float in[3] = {1, 2, 3}, inout[3] = {10, 20, 30};
  ReduceInto({inout}, {in, inout}, 3, DType::kF32, ReduceKind::kSum);
  EXPECT_EQ(inout[0], 11);
  EXPECT_EQ(inout[2], 33);
}

}  // namespace
}  // namespace coconet
