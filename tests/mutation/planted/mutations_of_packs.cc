#include "tests/mutation/planted/mutations.h"

namespace coconet {
namespace {

using enum FindingKind;

/// Which packs a thread begins, and which it finishes.
std::vector<Mutation> InFlightMutations() {
  return {
      {"packs-side-by-side",
       "The packs that a thread has in flight are neighbours, as are those of other threads.",
       "in-flight",
       {kRace},
       {{"loops.h", "InFlight<V, U - 1>(begin, i + step, step,",
         "InFlight<V, U - 1>(begin, i + V, step,"}}},
      {"packs-in-flight-behind-the-end",
       "The last packs in flight are behind a chunk's last pack.",
       "in-flight",
       {kOutOfBounds, kRace},
       {{"loops.h", "i + (U - 1) * step < tail; i += U * step", "i < tail; i += U * step"}}},
      {"packs-begun-twice",
       "A thread goes on one pack further instead of all that it had in flight.",
       "in-flight",
       {WrongAnswer()},
       {{"loops.h", "i += U * step) InFlight", "i += step) InFlight"}}},
      {"earlier-packs-not-finished",
       "Of the packs in flight only the last one is finished.",
       "in-flight",
       {WrongAnswer()},
       {{"loops.h", "[&]() CC_INLINE { before(); finish(); }", "[&]() CC_INLINE { finish(); }"}}},
      {"packs-left-over",
       "Packs that are too few to fill the flight are left out.",
       "in-flight",
       {WrongAnswer()},
       {{"loops.h", "for (; i < tail; i += step) body(Lanes<V>{}, i)();", ""}}},
      {"heads-behind-the-packs",
       "The elements before the first pack are looked for behind the last one.",
       "rows",
       {WrongAnswer(), kOutOfBounds, kRace},
       {{"loops.h", "k < heads ? begin + k : tail + (k - heads)", "tail + k"}}},
      {"fetched-before-its-flag",
       "A peer's operand is fetched before the peer has said that it is there.",
       "in-flight",
       TooEarly(),
       {{kKernelText, "if (!Enter(sync, grid)) return;",
         "const auto early = FetchAll<1>(p.b1, grid.ThreadId()); if (!Enter(sync, grid)) "
         "return;"}}},
      {"all-fetched-from-one",
       "The operand of rank 0 is fetched for each rank.",
       "in-flight",
       {WrongAnswer()},
       {{"operands.h", "x.of[r] = Fetch<V>(peers[r] + i);", "x.of[r] = Fetch<V>(peers[0] + i);"}}},
      {"last-rank-not-added",
       "The sum leaves out what was fetched from the last rank.",
       "in-flight",
       {WrongAnswer()},
       {{"operands.h", "CC_UNROLL for (int k = 1; k < kRanks; ++k) r = combine",
         "CC_UNROLL for (int k = 1; k < kRanks - 1; ++k) r = combine"}}},
      {"copied-to-one",
       "A pack that is gathered is stored on the first rank only.",
       "bulk-odd",
       {WrongAnswer(), kRace, kNeverWritten},
       {{"sync.h", "StoreRaw<kStream>(reinterpret_cast<Bits*>(ranks[r]) + i, Arrived(x));",
         "StoreRaw<kStream>(reinterpret_cast<Bits*>(ranks[0]) + i, Arrived(x));"}}},
  };
}

/// What becomes of the lanes of a pack.
std::vector<Mutation> LaneMutations() {
  return {
      {"pair-in-the-wrong-order",
       "Of two floats that become bf16 the second comes first.",
       "in-flight",
       {WrongAnswer()},
       {{"prelude.h", "BF16sOfFloats(x.d[i], x.d[i + 1])", "BF16sOfFloats(x.d[i + 1], x.d[i])"}}},
      {"pair-of-halves-in-the-wrong-order",
       "Of two floats that become f16 the second comes first.",
       "in-flight-f16",
       {WrongAnswer()},
       {{"prelude.h", "HalvesOfFloats(x.d[i], x.d[i + 1])", "HalvesOfFloats(x.d[i + 1], x.d[i])"}}},
      {"pair-of-bytes-in-the-wrong-order",
       "Of two floats that become f8e4m3 the second comes first.",
       "bytes",
       {WrongAnswer()},
       {{"floats8.h", "E4M3sOfFloats(WithinE4M3(x.d[i]), WithinE4M3(x.d[i + 1]))",
         "E4M3sOfFloats(WithinE4M3(x.d[i + 1]), WithinE4M3(x.d[i]))"}}},
      {"infinite-bytes-clamped",
       "An infinity becomes the greatest f8e5m2.",
       "bytes",
       {WrongAnswer()},
       {{"floats8.h", "static_cast<unsigned short>(pair + of_low + (of_high << 8))", "pair"}}},
      {"pair-taken-apart-in-the-wrong-order",
       "Of a word of two bf16 the upper one is taken to be the first.",
       "in-flight",
       {WrongAnswer()},
       {{"prelude.h", "i % 2 == 0 ? pairs.d[i / 2] << 16", "i % 2 != 0 ? pairs.d[i / 2] << 16"}}},
      {"first-word-for-all",
       "Each word of a pack is stored as the first.",
       "wide-packs",
       {WrongAnswer()},
       {{"prelude.h", "StoreWord(reinterpret_cast<typename W::Word*>(p) + i, words.word[i]);",
         "StoreWord(reinterpret_cast<typename W::Word*>(p) + i, words.word[0]);"}}},
      {"words-in-one-place",
       "All words of a pack are fetched from the place of the first.",
       "wide-packs",
       {WrongAnswer()},
       {{"prelude.h", "FetchWord(reinterpret_cast<const typename W::Word*>(p) + i, r.word[i]);",
         "FetchWord(reinterpret_cast<const typename W::Word*>(p), r.word[i]);"}}},
      {"pack-at-any-address",
       "A pack that begins within a row is loaded as if it were aligned.",
       "bias",
       {kMisaligned},
       {{"prelude.h", "if (reinterpret_cast<u64>(p) % alignof(Pack<T, V>) == 0) return",
         "return"}}},
      {"root-of-zero",
       "The root of 0 is taken from an approximate reciprocal, which is infinite.",
       "quotients",
       {WrongAnswer()},
       {{"functions.h", "moderate = moderate & IsModerate<100>(x);", ""}}},
      {"quotient-by-zero",
       "A quotient by 0 is corrected by a remainder, which is no number.",
       "quotients",
       {WrongAnswer()},
       {{"prelude.h",
         "moderate = moderate & IsModerate<50>(CC_LIBRARY(fabsf)(b.d[i])) & "
         "IsModerate<50>(CC_LIBRARY(fabsf)(q.d[i]));",
         ""}}},
      {"quotient-not-corrected",
       "A quotient is the dividend times an approximate reciprocal.",
       "quotients",
       {WrongAnswer()},
       {{"prelude.h", "q.d[i] = FusedMultiplyAdd(r, FusedMultiplyAdd(-b.d[i], x, a.d[i]), x);",
         "q.d[i] = a.d[i] * ApproximateReciprocal(b.d[i]);"}}},
  };
}

}  // namespace

std::vector<Mutation> PackMutations() {
  std::vector<Mutation> all = InFlightMutations();
  for (const Mutation& mutation : LaneMutations()) all.push_back(mutation);
  return all;
}

}  // namespace coconet
