#pragma once

// Instructions of matrix products as the PTX ISA describes them; the threads of a warp exchange
// their operands. Products are exact; sums are in f32.

namespace coconet {

/// Copies 16 bytes from global to shared memory, both 16-byte aligned; or fills them with zeros,
/// and reads nothing, unless `there`. Asynchronous; see WaitCopies.
static CC_ASKS void CopyAsync16If(bool there, void* to, const void* from) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->copy_async(calls->machine, to, from, there ? 16 : 0, __builtin_return_address(0));
}
/// Makes the thread's copies since the last call a group.
static CC_ASKS void CommitCopies() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->close_async_group(calls->machine);
}
static CC_ASKS void AwaitCopies(int pending) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->await_async(calls->machine, pending);
}
/// Waits until at most kPending of the thread's last groups are incomplete.
template <int kPending>
CC_DEVICE void WaitCopies() {
  AwaitCopies(kPending);
}

/// Concatenates the bytes that each thread of the warp passes, for each thread.
static CC_ASKS void GatherWarp(const void* mine, int bytes, void* all) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->gather(calls->machine, mine, bytes, all, __builtin_return_address(0));
}

struct alignas(16) MatrixRow {
  unsigned short half[8];
};
template <bool kTransposed>
CC_DEVICE void LoadMatricesOfWarp(unsigned (&r)[4], const void* row) {
  const auto mine = __builtin_bit_cast(MatrixRow, LoadWord(static_cast<const uint4*>(row)));
  MatrixRow rows[32];
  GatherWarp(&mine, sizeof mine, rows);
  const int lane = ThreadIndex() % 32, near = lane / 4, far = 2 * (lane % 4);
  for (int matrix = 0; matrix < 4; ++matrix) {
    const MatrixRow* const of = rows + 8 * matrix;
    r[matrix] = kTransposed ? of[far].half[near] | unsigned(of[far + 1].half[near]) << 16
                            : of[near].half[far] | unsigned(of[near].half[far + 1]) << 16;
  }
}
/// Loads four matrices of 8 x 8 halves. Thread t passes the address of row t % 8 of matrix t / 8
/// and receives, of row t / 4 of each matrix, halves 2 * (t % 4) and 2 * (t % 4) + 1.
CC_DEVICE void LoadMatrices(unsigned (&r)[4], const void* row) {
  LoadMatricesOfWarp<false>(r, row);
}
/// The same for the transposed matrices.
CC_DEVICE void LoadMatricesTransposed(unsigned (&r)[4], const void* row) {
  LoadMatricesOfWarp<true>(r, row);
}

/// Stores four matrices of 8 x 8 halves. Thread t passes the address of row t % 8 of matrix t / 8
/// and, of row t / 4 of each matrix, halves 2 * (t % 4) and 2 * (t % 4) + 1.
CC_DEVICE void StoreMatrices(void* row, const unsigned (&r)[4]) {
  struct Words {
    unsigned of[4];
  };
  const Words mine = {{r[0], r[1], r[2], r[3]}};
  Words words[32];
  GatherWarp(&mine, sizeof mine, words);
  const int lane = ThreadIndex() % 32, first = lane % 8 * 4, matrix = lane / 8;
  StoreWord(static_cast<uint4*>(row),
            uint4{words[first].of[matrix], words[first + 1].of[matrix], words[first + 2].of[matrix],
                  words[first + 3].of[matrix]});
}

/// d[16, 8] += a[16, 16] . b[16, 8]. With g = t / 4 and h = 2 * (t % 4), thread t holds these
/// elements, each with the next one along the row (b: along the column). a: (g, h), (g + 8, h),
/// (g, h + 8), (g + 8, h + 8). b: (h, g), (h + 8, g). d: (g, h), (g + 8, h).
template <class T>
CC_DEVICE void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, T) {
  struct Words {
    unsigned a[4], b[2];
  };
  const Words mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  Words words[32];
  GatherWarp(&mine, sizeof mine, words);
  const auto half = [](unsigned word, int k) {
    return Get(FromRaw<T, 1>(Splat<1>(static_cast<unsigned short>(k % 2 == 0 ? word : word >> 16))),
               0);
  };
  const int lane = ThreadIndex() % 32;
  for (int x = 0; x < 4; ++x) {
    const int i = lane / 4 + x / 2 * 8, j = lane % 4 * 2 + x % 2;
    for (int k = 0; k < 16; ++k) {
      const float of_a = half(words[i % 8 * 4 + k % 8 / 2].a[i / 8 + k / 8 * 2], k),
                  of_b = half(words[j * 4 + k % 8 / 2].b[k / 8], k);
      d[x] += of_a * of_b;
    }
  }
}

}  // namespace coconet
