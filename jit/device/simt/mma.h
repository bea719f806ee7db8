#ifndef COCONET_JIT_DEVICE_SIMT_MMA_H_
#define COCONET_JIT_DEVICE_SIMT_MMA_H_

// Instructions of matrix products, as the PTX ISA describes them, by what simulated threads of a warp tell each other. Copies are done at once, which is the soonest that
// they may be; that they are waited for is not seen here.

namespace coconet {

constexpr unsigned kAllLanes = 0xffffffffu;
CC_DEVICE int LaneIndex() { return ThreadIndex() % 32; }
/// What lane `lane` of the warp has.
template <class T>
CC_DEVICE T FromLane(T value, int lane) { return ShuffleDown(kAllLanes, value, lane - LaneIndex()); }

/// Copies `bytes`, at most 16, from global to shared memory, both aligned to 16, and fills up with zeros to 16; when that is done, WaitCopies tells.
CC_DEVICE void CopyAsync16(void* to, const void* from, int bytes) {
  if (bytes == 16) return Store16(to, Load16(from));
  for (int i = 0; i < 16; ++i) static_cast<unsigned char*>(to)[i] = i < bytes ? static_cast<const unsigned char*>(from)[i] : 0;
}
CC_DEVICE void CommitCopies() {}
template <int kPending>
CC_DEVICE void WaitCopies() {}

/// Four matrices of 8 x 8 halves: thread t gives the address of row t % 8 of matrix t / 8, and gets of row t / 4 of each the halves 2 * (t % 4) and the next.
CC_DEVICE void LoadMatrices(unsigned (&r)[4], const void* row) {
  const int lane = LaneIndex();
  for (int matrix = 0; matrix < 4; ++matrix) r[matrix] = static_cast<const unsigned*>(FromLane(row, 8 * matrix + lane / 4))[lane % 4];
}
/// The same of the matrices transposed.
CC_DEVICE void LoadMatricesTransposed(unsigned (&r)[4], const void* row) {
  const int lane = LaneIndex();
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto half = [&](int k) { return unsigned(static_cast<const unsigned short*>(FromLane(row, 8 * matrix + 2 * (lane % 4) + k))[lane / 4]); };
    const unsigned low = half(0), high = half(1);
    r[matrix] = low | high << 16;
  }
}

template <class T>
CC_DEVICE float FloatOfBits(unsigned short bits) {
  if constexpr (kSame<T, f16>) return FloatOfHalf(bits);
  else return __builtin_bit_cast(float, unsigned(bits) << 16);
}

/// d[16, 8] += a[16, 16] . b[16, 8]. With g = t / 4 and h = 2 * (t % 4), thread t has, each time with the next column (of b, row), of a: (g, h), (g + 8, h),
/// (g, h + 8), (g + 8, h + 8); of b: (h, g), (h + 8, g); of d: (g, h), (g + 8, h).
template <class T>
CC_DEVICE void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, T) {
  const int lane = LaneIndex();
  for (int k = 0; k < 16; k += 2) {  // two of k are in one register of a lane
    const int holder = k % 8 / 2;
    unsigned of_a[2], of_b[2];  // of rows g and g + 8, of columns h and h + 1
    for (int i = 0; i < 2; ++i) of_a[i] = FromLane(a[k / 8 * 2 + i], lane / 4 * 4 + holder);
    for (int j = 0; j < 2; ++j) of_b[j] = FromLane(k < 8 ? b0 : b1, 4 * (2 * (lane % 4) + j) + holder);
    for (int half = 0; half < 2; ++half) {
      const auto value = [&](unsigned pair) { return FloatOfBits<T>(static_cast<unsigned short>(pair >> (16 * half))); };
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) d[2 * i + j] += value(of_a[i]) * value(of_b[j]);
    }
  }
}

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_SIMT_MMA_H_
