#pragma once

// Warps hold the sums of tensor cores in pairs of columns. Through shared memory they turn them
// into packs of 8 neighbours of a row, 16 bytes of halves or 32 of f32, which an epilogue takes at
// once.

namespace coconet {

/// Neighbours of a row that an epilogue takes at once.
constexpr int kTurnedPack = 8;

/// Two sums, rounded, the first in the low half.
template <class T>
CC_DEVICE unsigned HalvesOf(float low, float high) {
  Pack<float, 2> pair;
  Put<float, 2>(pair, 0, low);
  Put<float, 2>(pair, 1, high);
  return __builtin_bit_cast(unsigned, ToRaw<T, 2>(pair));
}

/// What a warp turns at once: 16 rows of kColumns columns; 16, 32 or 64 of halves, 32 of f32.
template <class T, int kColumns>
struct TurnedSums {
  static constexpr int kPiece = 16 / int(sizeof(Raw<T>)), kPieces = kColumns / kPiece,
                       kBytes = 16 * kPieces * 16;
  unsigned char* turn;  // of this warp
  unsigned lane;

  CC_MEMBER TurnedSums(const Grid& grid, unsigned char* shared) {
    const unsigned thread = unsigned(grid.ThreadId());
    lane = thread % 32;
    turn = shared + thread / 32 * kBytes;
  }
  /// A piece of 16 bytes; permuted so that the same piece of eight rows of halves, or pack of four
  /// rows of f32, lies in different banks.
  CC_MEMBER unsigned char* PieceAt(unsigned row, unsigned piece) const {
    const unsigned by = kSame<T, f32> ? row % 4 * 2 : row / (8 / kPieces) % kPieces;
    return turn + (row * kPieces + (piece ^ by)) * 16;
  }
  CC_MEMBER const Raw<T>* At(int row, int column) const {
    return reinterpret_cast<const Raw<T>*>(PieceAt(unsigned(row), unsigned(column) / kPiece)) +
           column % kPiece;
  }
  /// Puts the thread's sums of matrix j, of 8 columns, in pairs: of row lane / 4 and of 8 rows
  /// more, columns 2 * (lane % 4) and the next.
  CC_MEMBER void Put(unsigned j, const float* d) const {
    CC_UNROLL for (unsigned h = 0; h < 2; ++h) {
      if constexpr (kSame<T, f32>)
        StoreLanes<2>(reinterpret_cast<float*>(PieceAt(lane / 4 + 8 * h, 2 * j) + lane % 4 * 8),
                      Pack<float, 2>{d[2 * h], d[2 * h + 1]});
      else
        *reinterpret_cast<unsigned*>(PieceAt(lane / 4 + 8 * h, j) + lane % 4 * 4) =
            HalvesOf<T>(d[2 * h], d[2 * h + 1]);
    }
  }
  /// Where the thread's row of matrices 0 and 1 lies, for StoreMatrices, where rows have 128 bytes;
  /// that of matrices 2 * j and 2 * j + 1 lies at the exclusive or with 32 * j.
  CC_MEMBER unsigned char* RowOfMatrices() const {
    static_assert(kPieces == 8);
    return PieceAt(lane % 16, lane / 16);
  }
};

/// Brings what an epilogue loads for a tile from memory to the GPU's L2, while the tile is
/// computed.
template <int kRows, int kColumns, class E>
CC_DEVICE void BringAhead(const Grid& grid, const E& epilogue, Index row, Index column, int rows,
                          int columns, int threads) {
  constexpr int kAcross = kColumns / kBroughtAhead;
  CC_ROLLED for (int n = grid.ThreadId(); n < kRows * kAcross; n += threads) {
    const int r = n / kAcross, c = n % kAcross * kBroughtAhead;
    if (r < rows && c < columns)
      epilogue.ahead(row + r, column + c, Least(columns - c, kBroughtAhead));
  }
}

/// Gives an epilogue what a warp turns: 16 rows from `row` on, of which `rows` are there, and
/// kColumns columns, of which `columns` are there. All sums have been put.
template <class T, int kColumns, class E>
CC_DEVICE void TakeTurned(const TurnedSums<T, kColumns>& turned, const E& epilogue, Index row,
                          Index column, int rows, int columns) {
  constexpr int kPacks = kColumns / kTurnedPack, kEach = 16 * kPacks / 32,
                kInFlight = E::kInFlight < kEach ? E::kInFlight : kEach;
  constexpr Index kRowsAtOnce = 32 / kPacks;
  const int own = int(turned.lane) % kPacks * kTurnedPack;
  const auto begin = [&](auto lanes, Index r) CC_INLINE {
    const auto finish = epilogue.begin(lanes, row + r, column + own);
    return [&, finish, r]() CC_INLINE {
      finish(*reinterpret_cast<const Pack<Raw<T>, kTurnedPack>*>(turned.At(int(r), own)));
    };
  };
  SyncWarp();
  if (epilogue.packs && rows >= 16 && columns >= kColumns) {
    CC_ROLLED for (Index r = turned.lane / kPacks; r < 16; r += kInFlight * kRowsAtOnce)
        InFlight<kTurnedPack, kInFlight>(begin, r, kRowsAtOnce, [] {});
  } else {
    CC_ROLLED for (int n = int(turned.lane); n < 16 * kColumns; n += 32) {
      const int r = n / kColumns, c = n % kColumns;
      if (r < rows && c < columns)
        epilogue.begin(Lanes<1>{}, row + r, column + c)(Splat<1>(*turned.At(r, c)));
    }
  }
  SyncWarp();
}

}  // namespace coconet
