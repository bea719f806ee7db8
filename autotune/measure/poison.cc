#include "autotune/measure/poison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kWord = 8;

/// Elements in the first bytes of a word, and again behind them.
template <class T>
uint64_t Repeated(T bits) {
  std::array<T, kWord / sizeof(T)> all;
  all.fill(bits);
  return std::bit_cast<uint64_t>(all);
}

/// Eight bytes of elements; the upper bit of the fraction is 0 in a NaN that signals.
uint64_t WordOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Repeated<uint32_t>(0xFFA5A5A5);
    case DType::kF16:
      return Repeated<uint16_t>(0xFDA5);
    case DType::kBF16:
      return Repeated<uint16_t>(0xFFA5);
    case DType::kF8E4M3:
      return Repeated<uint8_t>(0xFF);
    case DType::kF8E5M2:
      return Repeated<uint8_t>(0xFD);
    case DType::kF64:
      return Repeated<uint64_t>(0xFFF5A5A5A5A5A5A5);
    case DType::kI32:
    case DType::kU32:
      return Repeated<uint32_t>(1);
    case DType::kI64:
    case DType::kU64:
      return Repeated<uint64_t>(1);
    case DType::kI16:
    case DType::kU16:
      return Repeated<uint16_t>(1);
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return Repeated<uint8_t>(1);
  }
  CC_CHECK(false);
}

/// A block of such words, of which as many bytes as asked for are there from `at` on.
constexpr int64_t kBlock = 512;
struct Block {
  Block(DType dtype, int64_t at) {
    const int64_t turn = at % kWord * 8;
    const uint64_t word = WordOf(dtype);
    words.fill(std::endian::native == std::endian::little
                   ? std::rotr(word, static_cast<int>(turn))
                   : std::rotl(word, static_cast<int>(turn)));
  }
  const char* bytes() const { return reinterpret_cast<const char*>(words.data()); }
  std::array<uint64_t, kBlock / kWord> words;
};

}  // namespace

void Poison(DType dtype, int64_t at, absl::Span<char> memory) {
  const Block block(dtype, at);
  for (size_t i = 0; i < memory.size(); i += kBlock)
    std::memcpy(memory.data() + i, block.bytes(), std::min<size_t>(kBlock, memory.size() - i));
}

int64_t FirstUnpoisoned(DType dtype, int64_t at, absl::Span<const char> memory) {
  const Block block(dtype, at);
  for (size_t i = 0; i < memory.size(); i += kBlock) {
    const size_t bytes = std::min<size_t>(kBlock, memory.size() - i);
    if (std::memcmp(memory.data() + i, block.bytes(), bytes) == 0) continue;
    const char* const from = memory.data() + i;
    return static_cast<int64_t>(i) +
           (std::mismatch(from, from + bytes, block.bytes()).first - from);
  }
  return static_cast<int64_t>(memory.size());
}

}  // namespace coconet
