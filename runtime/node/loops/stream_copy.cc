#include "runtime/node/loops/stream_copy.h"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace coconet {

#ifdef __SSE2__

void CopyBytes(void* to, const void* from, int64_t bytes, bool streams) {
  constexpr int64_t kLine = 64, kLeast = 8 * kLine;
  char* out = static_cast<char*>(to);
  const char* in = static_cast<const char*>(from);
  if (!streams || bytes < kLeast) {
    std::memcpy(out, in, bytes);
    return;
  }
  const int64_t head = -reinterpret_cast<intptr_t>(out) & (kLine - 1);
  std::memcpy(out, in, head);
  out += head, in += head, bytes -= head;
  for (; bytes >= kLine; out += kLine, in += kLine, bytes -= kLine) {
    __m128i line[4];
    for (int i = 0; i < 4; ++i) line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in) + i);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(out) + i, line[i]);
  }
  std::memcpy(out, in, bytes);
}

void StreamFence() { _mm_sfence(); }

#else

void CopyBytes(void* to, const void* from, int64_t bytes, bool /*streams*/) {
  std::memcpy(to, from, bytes);
}
void StreamFence() {}

#endif

}  // namespace coconet
