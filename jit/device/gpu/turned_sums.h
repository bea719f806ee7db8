#pragma once

// Warps hold the sums of tensor cores in pairs of columns. Through shared memory they turn them
// into packs of 8 neighbours of a row, 16 bytes of halves, which are stored at once.

namespace coconet {

/// Two sums, rounded, the first in the low half.
template <class T>
CC_DEVICE unsigned HalvesOf(float low, float high) {
  Pack<float, 2> pair;
  Put<float, 2>(pair, 0, low);
  Put<float, 2>(pair, 1, high);
  return __builtin_bit_cast(unsigned, ToRaw<T, 2>(pair));
}

/// What a warp turns at once: 16 rows of kColumns columns, 16, 32 or 64.
template <class T, int kColumns>
struct TurnedSums {
  static constexpr int kPieces = kColumns / 8, kBytes = 16 * kPieces * 16;
  using Halves = Pack<Raw<T>, 8>;
  unsigned char* turn;  // of this warp
  unsigned lane;

  CC_MEMBER TurnedSums(const Grid& grid, unsigned char* shared) {
    const unsigned thread = unsigned(grid.ThreadId());
    lane = thread % 32;
    turn = shared + thread / 32 * kBytes;
  }
  /// A piece of eight columns; permuted so that the same piece of eight rows lies in different
  /// banks.
  CC_MEMBER unsigned char* PieceAt(unsigned row, unsigned piece) const {
    return turn + (row * kPieces + (piece ^ row / (8 / kPieces) % kPieces)) * 16;
  }
  /// Puts the thread's sums of matrix j, of 8 columns, in pairs: of row lane / 4 and of 8 rows
  /// more, columns 2 * (lane % 4) and the next.
  CC_MEMBER void Put(unsigned j, const float* d) const {
    CC_UNROLL for (unsigned h = 0; h < 2; ++h) *
        reinterpret_cast<unsigned*>(PieceAt(lane / 4 + 8 * h, j) + lane % 4 * 4) =
        HalvesOf<T>(d[2 * h], d[2 * h + 1]);
  }
  /// Where the thread's row of matrices j and the next lies, for StoreMatrices.
  CC_MEMBER unsigned char* RowOfMatrices(unsigned j) const {
    return PieceAt(lane % 16, j + lane / 16);
  }
  /// Calls f(row, column, values) for the packs of this thread, when all have been put.
  template <class F>
  CC_MEMBER void ForPacks(F&& f) const {
    SyncWarp();
    CC_ROLLED for (unsigned row = lane / kPieces; row < 16; row += 32 / kPieces) {
      const unsigned piece = lane % kPieces;
      f(int(row), int(8 * piece), *reinterpret_cast<const Halves*>(PieceAt(row, piece)));
    }
    SyncWarp();
  }
};

/// Stores the first `count` values of a pack, in whole if all of it is asked for and aligned.
template <class T>
CC_DEVICE void StorePackOrPart(T* to, int count, const Pack<Raw<T>, 8>& values) {
  auto* const raw = reinterpret_cast<Raw<T>*>(to);
  if (count >= 8 && unsigned(reinterpret_cast<u64>(to)) % 16 == 0)
    return StoreRaw<kCached>(raw, values);
  CC_UNROLL for (int i = 0; i < 8; ++i) if (i < count) raw[i] = Get(values, i);
}

}  // namespace coconet
