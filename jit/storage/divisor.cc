#include "jit/storage/divisor.h"

#include <algorithm>

namespace coconet {

std::vector<Arg> DivisorWords(int64_t by) {
  // multiplier = ceil(2^(63 + shift) / by), a bit of the quotient at a time.
  const uint64_t divisor = static_cast<uint64_t>(std::max<int64_t>(by, 1));
  uint64_t multiplier = (uint64_t{1} << 63) / divisor, rest = (uint64_t{1} << 63) % divisor;
  int64_t shift = 0;
  for (; divisor >> (shift + 1) != 0; ++shift) {
    multiplier *= 2;
    rest *= 2;
    if (rest < divisor) continue;
    rest -= divisor;
    ++multiplier;
  }
  if (rest != 0) ++multiplier;
  const auto word = [](int64_t value) { return Arg{Arg::Kind::kInt, -1, value}; };
  return {word(by), word(static_cast<int64_t>(multiplier)), word(shift)};
}

}  // namespace coconet
