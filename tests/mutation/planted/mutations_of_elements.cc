#include "tests/mutation/planted/mutations.h"

namespace coconet {
namespace {

using enum FindingKind;

}  // namespace

std::vector<Mutation> ElementMutations() {
  return {
      {"one-element-too-many",
       "The elements behind a chunk's last pack go one beyond its end.",
       "two-shot",
       {kRace},
       {{"loops.h", "singles = heads + (end - tail);", "singles = heads + (end - tail) + 1;"}}},
      {"tail-in-packs",
       "The end of a tensor that is no whole pack is handled as one.",
       "pull",
       {kOutOfBounds},
       {{"loops.h", "tail = head + (end - head) / V * V;",
         "tail = head + (end - head + V - 1) / V * V;"}}},
      {"chunk-without-end",
       "A chunk at the end of a slice is as long as others.",
       "slices",
       {kOutOfBounds},
       {{kKernelText, "const Cut cut{p.outer, p.row_elements, p.per};",
         "const Cut cut{p.outer, p.row_elements + 64, p.per + 64};"}}},
      {"chunks-overlap",
       "Chunks end an element behind the begin of the next.",
       "slices",
       {kRace},
       {{"loops.h",
         "const Index begin = low + (id - o * in_row) * chunk; const Index end = begin + chunk < "
         "high ? begin + chunk : high; if (begin >= end) continue; const Index base = o * cut.row; "
         "if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return false;",
         "const Index begin = low + (id - o * in_row) * chunk; const Index end = begin + chunk + 1 "
         "< high ? begin + chunk + 1 : high; if (begin >= end) continue; const Index base = o * "
         "cut.row; if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return "
         "false;"}}},
      {"last-chunk-left-out",
       "The last chunk of a slice, which is short, is not counted.",
       "slices",
       {WrongAnswer()},
       {{"loops.h",
         "const Index in_row = (cut.per + chunk - 1) / chunk; for (Index id = grid.BlockId(); id < "
         "cut.outer",
         "const Index in_row = cut.per / chunk; for (Index id = grid.BlockId(); id < cut.outer"}}},
      {"every-block-does-all",
       "Each block does every chunk from its own first on.",
       "slices",
       {kRace},
       {{"loops.h",
         "id < cut.outer * in_row; id += grid.GridSize()) { const Index o = cut.outer == 1 ? 0 : "
         "id / in_row; const Index begin = low + (id - o * in_row) * chunk; const Index end = "
         "begin + chunk < high ? begin + chunk : high; if (begin >= end) continue; const Index "
         "base = o * cut.row; if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, "
         "id})) return false;",
         "id < cut.outer * in_row; id += 1) { const Index o = cut.outer == 1 ? 0 : id / in_row; "
         "const Index begin = low + (id - o * in_row) * chunk; const Index end = begin + chunk < "
         "high ? begin + chunk : high; if (begin >= end) continue; const Index base = o * cut.row; "
         "if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return false;"}}},
      {"first-slice-on-all-ranks",
       "All ranks compute the slice of the first.",
       "slices",
       {kRace},
       {{kKernelText, "ForChunks(grid, cut, rank, p.chunk", "ForChunks(grid, cut, 0, p.chunk"}}},
      {"slice-not-shifted",
       "A rank's slice of a state is looked for where it is in the whole tensor.",
       "slices",
       {kOutOfBounds},
       {{kKernelText, "Store<kCached>(own2 + (i - c.shift)", "Store<kCached>(own2 + i"}}},
      {"slice-shifted-back",
       "A slice is shifted by the next rank's begin.",
       "slices",
       {kOutOfBounds},
       {{kKernelText, "Store<kCached>(own0 + (i - c.shift)",
         "Store<kCached>(own0 + (i - c.shift - p.per)"}}},
      {"slice-of-another-length",
       "Slices of ranks above 0 begin an element early.",
       "slices",
       {WrongAnswer()},
       {{kKernelText, "const Cut cut{p.outer, p.row_elements, p.per};",
         "const Cut cut{p.outer, p.row_elements, p.per - 1};"}}},
      {"gathered-everywhere-but-last",
       "A gathered value is stored on all ranks but the last.",
       "slices",
       {WrongAnswer()},
       {{"sync.h", "CC_UNROLL for (int r = 0; r < kRanks; ++r) Store<kStream>(peers[r] + i, x);",
         "CC_UNROLL for (int r = 0; r < kRanks - 1; ++r) Store<kStream>(peers[r] + i, x);"}}},
      {"packs-of-odd-slices",
       "Packs are loaded from slices that begin between them.",
       "bulk-odd",
       {kMisaligned},
       {{"loops.h", "return kPacksAnywhere || shift % V == 0;", "return true;"}}},
      {"turns-of-a-list",
       "Blocks begin each tensor of a list with the same turn, and number chunks as if it were the "
       "only one.",
       "list",
       {kRace},
       {{"loops.h",
         "const Index begin_id = grid.BlockId() >= turn ? grid.BlockId() - turn : grid.BlockId() - "
         "turn + grid.GridSize();",
         "const Index begin_id = turn - turn;"}}},
      {"node-for-slice",
       "The parts of a place are all taken to be of the first node.",
       "nodes",
       {kRace},
       {{"loops.h", "c.shift - node * cut.outer * cut.per", "c.shift"}}},
      {"rows-by-all-blocks",
       "Every block moves all rows of an all-to-all.",
       "all-to-all",
       {kRace},
       {{"blocks.h", "row < ranks * rows; row += grid.GridSize()",
         "row < ranks * rows; row += 1"}}},
      {"padding-moved",
       "What slices lack at the end is moved in an all-to-all as if they had it.",
       "all-to-all",
       {kOutOfBounds, kNeverWritten},
       {{"blocks.h",
         "const Index run =\n        OwnPart(g.high.extent, g.high.per, g.high.shift, g.keeps_low "
         "? k : "
         "rank) * g.inner;",
         "const Index run = g.high.per * g.inner;"}}},
      {"blocks-of-one-rank",
       "What goes to each rank in an all-to-all is packed in one place.",
       "all-to-all",
       {WrongAnswer()},
       {{"blocks.h", "T* const other = blocks + k * block + row % rows",
         "T* const other = blocks + 0 * k * block + row % rows"}}},
  };
}

}  // namespace coconet
