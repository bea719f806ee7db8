#include "jit/storage/divisor.h"

#include <random>

#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Quotient of the dialect.
int64_t Quotient(int64_t n, const std::vector<Arg>& divisor) {
  const auto multiplier = static_cast<uint64_t>(divisor[1].value);
  const auto product = static_cast<unsigned __int128>(2 * static_cast<uint64_t>(n)) * multiplier;
  return static_cast<int64_t>(static_cast<uint64_t>(product >> 64) >> divisor[2].value);
}

/// Numbers around the multiples of `by` and the powers of two, below 2^62.
std::vector<int64_t> Dividends(int64_t by, std::mt19937_64& random) {
  constexpr int64_t kMost = (int64_t{1} << 62) - 1;
  std::vector<int64_t> numbers = {0, 1, kMost, kMost / by * by, kMost / by * by - 1};
  for (int bit = 1; bit < 62; ++bit) {
    const int64_t some = static_cast<int64_t>(random() >> (64 - bit)), multiple = some / by * by;
    for (const int64_t near : {some, multiple, int64_t{1} << bit}) {
      for (const int64_t n : {near - 1, near, near + 1, near + by - 1}) {
        if (n >= 0 && n <= kMost) numbers.push_back(n);
      }
    }
  }
  return numbers;
}

TEST(Divisor, DividesExactly) {
  std::mt19937_64 random(5);
  std::vector<int64_t> divisors;
  for (int64_t by = 1; by < 3000; ++by) divisors.push_back(by);
  for (int bit = 2; bit <= 40; ++bit) {
    for (const int64_t off : {-3, -1, 0, 1, 3}) divisors.push_back((int64_t{1} << bit) + off);
    for (int k = 0; k < 20; ++k)
      divisors.push_back(static_cast<int64_t>(random() >> (64 - bit)) + 1);
  }
  for (const int64_t by : divisors) {
    const std::vector<Arg> divisor = DivisorWords(by);
    ASSERT_EQ(divisor.size(), 3u);
    EXPECT_EQ(divisor[0].value, by);
    for (const int64_t n : Dividends(by, random))
      ASSERT_EQ(Quotient(n, divisor), n / by) << n << " / " << by;
  }
}

TEST(Divisor, DividesAllSmallNumbers) {
  for (int64_t by = 1; by <= 300; ++by) {
    const std::vector<Arg> divisor = DivisorWords(by);
    for (int64_t n = 0; n < 20000; ++n) ASSERT_EQ(Quotient(n, divisor), n / by) << n << " / " << by;
  }
}

TEST(Divisor, HasWordsForAnEmptyExtent) { EXPECT_EQ(DivisorWords(0)[0].value, 0); }

}  // namespace
}  // namespace coconet
