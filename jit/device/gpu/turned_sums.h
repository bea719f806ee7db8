#pragma once

// Warps hold the sums of tensor cores in pairs of columns. Through shared memory they turn them
// into packs of 8 neighbours of a row, which are stored at once.

namespace coconet {

struct alignas(8) TwoFloats {
  float x, y;
};
struct alignas(16) FourFloats {
  float d[4];
};

/// What a warp turns at once: 16 rows of kColumns columns, 16 or 32.
template <int kColumns>
struct TurnedSums {
  static constexpr int kBytes = 16 * kColumns * int(sizeof(float)), kPieces = kColumns / 4;
  float* turn;               // of this warp
  float* own[kColumns / 8];  // this thread's pairs of columns in the first of its rows
  unsigned lane;

  CC_MEMBER TurnedSums(const Grid& grid, unsigned char* shared) {
    const unsigned thread = unsigned(grid.ThreadId());
    lane = thread % 32;
    turn = reinterpret_cast<float*>(shared) + thread / 32 * (kBytes / int(sizeof(float)));
    CC_UNROLL for (int j = 0; j < kColumns / 8; ++j) own[j] =
        PieceAt(lane / 4, 2 * j + lane % 4 / 2) + lane % 2 * 2;
  }
  /// A piece of four columns; permuted so that eight rows lie in different banks.
  CC_MEMBER float* PieceAt(unsigned row, unsigned piece) const {
    return turn + row * kColumns + (piece ^ row % kPieces) * 4;
  }
  /// Puts the thread's sums of matrix j, of 8 columns, in pairs: of row lane / 4 and of 8 rows
  /// more, columns 2 * (lane % 4) and the next.
  CC_MEMBER void Put(int j, const float* d) const {
    CC_UNROLL for (int h = 0; h < 2; ++h) *
        reinterpret_cast<TwoFloats*>(own[j] + h * 8 * kColumns) = {d[2 * h], d[2 * h + 1]};
  }
  /// Calls f(row, column, values) for the packs of this thread, when all have been put.
  template <class F>
  CC_MEMBER void ForPacks(F&& f) const {
    constexpr unsigned kPacks = kColumns / 8, kRowsAtOnce = 32 / kPacks;
    SyncWarp();
    CC_ROLLED for (unsigned row = lane / kPacks; row < 16; row += kRowsAtOnce) {
      const unsigned pack = lane % kPacks;
      Pack<float, 8> values;
      CC_UNROLL for (int half = 0; half < 2; ++half) {
        const auto four = *reinterpret_cast<const FourFloats*>(PieceAt(row, 2 * pack + half));
        CC_UNROLL for (int x = 0; x < 4;
                       ++x)::coconet::Put<float, 8>(values, 4 * half + x, four.d[x]);
      }
      f(int(row), int(8 * pack), values);
    }
    SyncWarp();
  }
};

/// Stores the first `count` values of a pack, in whole if all of it is asked for and aligned.
template <class T>
CC_DEVICE void StorePackOrPart(T* to, int count, Pack<float, 8> values) {
  if (count >= 8 && unsigned(reinterpret_cast<u64>(to)) % 16 == 0)
    return Store<kCached>(to, values);
  CC_UNROLL for (int i = 0; i < 8; ++i) if (i < count)
      Store<kCached>(to + i, Splat<1>(Get(values, i)));
}

}  // namespace coconet
