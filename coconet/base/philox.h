#pragma once

#include <array>
#include <cstdint>

namespace coconet {

/// Philox4x32-10: four random words for a counter and a key (Salmon, Moraes, Dror, Shaw: Parallel
/// random numbers: as easy as 1, 2, 3, SC'11). The dialect's device function of the same name gives
/// the same words.
inline std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The word that Dropout and StochasticRound draw for element `index` of a tensor (op.h).
inline uint32_t RandomWord(int64_t index, int64_t stream, int64_t seed) {
  const uint64_t block = static_cast<uint64_t>(index) / 4, lane = static_cast<uint64_t>(index) % 4;
  const auto half = [](uint64_t word, int which) {
    return static_cast<uint32_t>(word >> (32 * which));
  };
  const uint64_t s = static_cast<uint64_t>(stream);
  return Philox({half(block, 0), half(block, 1), half(s, 0), half(s, 1)},
                static_cast<uint64_t>(seed))[lane];
}

/// `bits` of an f32 number rounded to bf16 by a word, as StochasticRound does it: the upper half is
/// the result.
inline uint32_t RoundedByWord(uint32_t bits, uint32_t word) {
  const bool is_finite = (bits & 0x7f800000) != 0x7f800000;
  return (is_finite                ? bits + (word >> 16)
          : (bits & 0x7fffff) != 0 ? bits | 0x400000
                                   : bits) &
         0xffff0000;
}

/// Words from this one on keep their element: rate * 2^32, rounded up. `rate` is in [0, 1).
inline uint32_t DropoutThreshold(double rate) {
  const double words = rate * 4294967296.0;
  const auto below = static_cast<uint32_t>(words);
  return below < words && below != 0xffffffff ? below + 1 : below;
}

}  // namespace coconet
