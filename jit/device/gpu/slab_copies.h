#pragma once

// How threads bring a product's operands to shared memory: slabs of some depth along k, in stored
// rows of pieces of 16 bytes. A slab S of an operand (kLines of its lines: rows of a, columns of b)
// says how it lies there:
//
//   kIsAlongK            a stored row is a part of one line, else some lines of one k
//   kDepth, kRow         elements of the slab along k, and of a stored row
//   Offset(row, piece)   the byte offset of a piece. Rows that as many rows lie between as all
//                        threads bring at once permute their pieces alike
//
// Slabs not along k, of more lines than a stored row has, consist of parts of kRow lines each, one
// behind the other.

namespace coconet {

/// Bytes of a piece: of a copy, and of a load of a matrix by one thread.
constexpr int kPieceBytes = 16;

CC_DEVICE int Least(Index x, int most) { return x < most ? int(x) : most; }

/// The part of an operand that one tile reads: lines from `first` on, below `lines`, and k below
/// `depth`. Stored rows of `ld` elements begin at `at`.
template <class T>
struct SlabOperand {
  const T* at;
  Index ld, first, lines, depth;

  /// Whether its rows begin and end at multiples of a piece.
  template <bool kAlongK>
  CC_MEMBER bool IsOfPieces() const {
    constexpr int kPiece = kPieceBytes / int(sizeof(T));
    return (reinterpret_cast<u64>(at) % kPieceBytes | u64(ld) % kPiece |
            u64(kAlongK ? depth : lines) % kPiece) == 0;
  }
};

/// What one of kThreads threads copies of an operand that is of pieces, slab after slab: one piece
/// of every kRowsAtOnce-th stored row.
template <class S, int kThreads, class T>
struct SlabCopies {
  static constexpr int kPiece = kPieceBytes / int(sizeof(T)), kPieces = S::kRow / kPiece,
                       kRowsAtOnce = kThreads / kPieces,
                       kRows = S::kIsAlongK ? S::kLines : S::kDepth,
                       kParts = S::kIsAlongK ? 1 : S::kLines / S::kRow;
  const T* from;  // this thread's first piece of the next slab
  Index step;     // elements from one of its rows to the next
  int row;        // its first one
  int column;     // the first element of its pieces
  int lines;      // from that piece on, up to what a slab has
  int offset;     // of its first piece in a slab, in bytes

  CC_MEMBER SlabCopies(const Grid& grid, const SlabOperand<T>& of) {
    const unsigned thread = unsigned(grid.ThreadId());
    row = int(thread / kPieces);
    column = int(thread % kPieces * kPiece);
    step = kRowsAtOnce * of.ld;
    lines = Least(of.lines - of.first - (S::kIsAlongK ? row : column), S::kLines);
    offset = S::Offset(row, column / kPiece);
    KeepComputed(row);
    KeepComputed(column);
    KeepComputed(lines);
    KeepComputed(offset);
    from = of.at + (S::kIsAlongK ? of.first + row : row) * of.ld +
           (S::kIsAlongK ? column : of.first + column);
  }
  /// Begins to copy the next slab, of `depth` k, with zeros beyond the operand's ends.
  CC_MEMBER void Bring(unsigned char* to, int depth) {
    to += offset;
    const T* row_from = from;
    CC_UNROLL for (int i = 0; i < kRows; i += kRowsAtOnce) {
      const int there = (S::kIsAlongK ? column : i + row) < depth ? lines : 0;
      CC_UNROLL for (int part = 0; part < kParts; ++part) CopyAsync16If(
          (S::kIsAlongK ? i : part * S::kRow) < there,
          to + (i + part * kRows) * S::kRow * int(sizeof(T)), row_from + part * S::kRow);
      row_from += step;
    }
    from += S::kIsAlongK ? Index(S::kDepth) : step * (S::kDepth / kRowsAtOnce);
  }
};

}  // namespace coconet
