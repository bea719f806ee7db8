#include "autotune/measure/poison.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Poison, IsNaNsAndOnes) {
  for (DType dtype : kAllDTypes) {
    std::vector<char> memory(1 << 12);
    Poison(dtype, 0, absl::MakeSpan(memory));
    for (int64_t i : {0, 1, 77, 500}) {
      const Number value = LoadElement(dtype, memory.data(), i);
      if (IsFloat(dtype))
        EXPECT_TRUE(value.is_nan()) << Name(dtype);
      else
        EXPECT_EQ(value, 1) << Name(dtype);
    }
  }
}

TEST(Poison, GoesOnWherePoisonBegan) {
  for (DType dtype : kAllDTypes) {
    std::vector<char> whole(3000), parts(3000);
    Poison(dtype, 0, absl::MakeSpan(whole));
    for (size_t at : {0, 3, 12, 1001, 1007, 2999}) {
      Poison(dtype, static_cast<int64_t>(at), absl::MakeSpan(parts).subspan(at));
      EXPECT_EQ(std::string(parts.begin() + static_cast<ptrdiff_t>(at), parts.end()),
                std::string(whole.begin() + static_cast<ptrdiff_t>(at), whole.end()))
          << Name(dtype) << " from " << at;
    }
  }
}

TEST(Poison, ShowsWhichByteIsAnother) {
  std::vector<char> memory(3000);
  for (DType dtype : kAllDTypes) {
    for (int64_t changed : {0, 7, 511, 512, 2999}) {
      Poison(dtype, 5, absl::MakeSpan(memory));
      EXPECT_EQ(FirstUnpoisoned(dtype, 5, memory), 3000);
      memory[changed] ^= 1;
      EXPECT_EQ(FirstUnpoisoned(dtype, 5, memory), changed) << Name(dtype);
    }
  }
}

TEST(Poison, ShowsASumThatIsStoredInPlace) {
  volatile float added = 0.25f;
  std::vector<float> memory(64);
  const auto bytes = [&] {
    return absl::MakeSpan(reinterpret_cast<char*>(memory.data()), memory.size() * sizeof(float));
  };
  Poison(DType::kF32, 0, bytes());
  memory[9] += added;
  EXPECT_GE(FirstUnpoisoned(DType::kF32, 0, bytes()), 36);
  EXPECT_LT(FirstUnpoisoned(DType::kF32, 0, bytes()), 40);
}

}  // namespace
}  // namespace coconet
