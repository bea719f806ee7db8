#include "tests/gpus/warp_group_kernels.h"

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr char kHead[] = R"(#include "coconet/kernel.h"
#include "wgmma.h"
#undef CC_MAX_THREADS
#define CC_MAX_THREADS 384
using namespace coconet;
struct Params { Control* control; unsigned* a; unsigned* flag; u64* words; Index n; };

struct alignas(1024) Pattern { uint4 pieces[64]; };
constexpr int kDepth = 64;
/// Brings an operand to shared memory by threads `first` and those behind, `count` in all.
template <bool kTransposed, int kLines>
CC_DEVICE void Bring(void* to, const uint4* from, int thread, int count, bool swizzled = true) {
  uint4* const pieces = static_cast<uint4*>(to);
  for (int i = thread; i < kLines * kDepth / 8; i += count) {
    constexpr int kRow = (kTransposed ? kLines : kDepth) / 8;
    const int row = i / kRow, piece = i % kRow;
    const int place =
        piece / 8 * kDepth * 8 + row * 8 + (swizzled ? piece % 8 ^ row % 8 : piece % 8);
    Store16(pieces + place, LoadWord(from + i));
  }
}
/// From one step along k to the next.
template <bool kTransposed>
CC_DEVICE SharedMatrix AtStep(SharedMatrix matrix, int step) {
  return Advanced(matrix, kTransposed ? 2048 * step : 32 * step);
}
template <int kSums>
CC_DEVICE void StoreSums(float* to, const float (&d)[kSums], int thread) {
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  CC_UNROLL for (int i = 0; i < kSums; ++i)
    to[(row + i / 2 % 2 * 8) * 2 * kSums + i / 4 * 8 + column + i % 2] = d[i];
}
)";

constexpr char kProducts[] = R"(
enum Mistakes {
  kNone, kNoProxyFence, kEarlyProxyFence, kNoBarrier, kNoFence, kEarlyFence, kNoCommit, kNoWait,
  kWaitsForOthers, kReadsEarly, kWritesEarly, kOverwrites, kOverwritesByCopy, kNoSwizzle,
  kBetweenPieces, kBetweenPatterns, kThreeWarps, kHalfWarp, kOtherLine, kOtherOperands, kOtherAdds,
  kUnfilled, kFarRows, kOddStride, kGlobalOperand, kTouches, kLooks, kAtABarrier, kInAShuffle,
  kWaitsTwice, kTwoShapes, kBeforeTheWait
};
template <class T, bool kTransposeA, bool kTransposeB, int kSums, int kMistake>
CC_DEVICE void Multiplies(const Params& p, const Grid& grid) {
  CC_SHARED(Pattern, a, 8 + (kMistake == kBetweenPatterns));
  CC_SHARED(Pattern, b, 2 * kSums / 8);
  const int thread = grid.ThreadId(), warp = thread / 32;
  const auto* const from = reinterpret_cast<const uint4*>(p.a);
  auto* const to = reinterpret_cast<float*>(p.a + 10240);
  if (kMistake == kEarlyProxyFence) FenceAsyncProxy();
  Bring<kTransposeA, 64>(a->pieces + (kMistake == kBetweenPatterns ? 8 : 0), from, thread, 128,
                         kMistake != kNoSwizzle);
  Bring<kTransposeB, kMistake == kUnfilled ? 2 * kSums - 8 : 2 * kSums>(b, from + 512, thread, 128);
  if (kMistake != kNoProxyFence && kMistake != kEarlyProxyFence) FenceAsyncProxy();
  if (kMistake != kNoBarrier) grid.Sync();
  if (kMistake == kThreeWarps && warp == 3) return;
  if (kMistake == kHalfWarp && thread % 32 >= 16) return;
  if (kMistake == kAtABarrier && warp == 1) grid.Sync();
  if (kMistake == kInAShuffle && thread == 5) ShuffleDown(~0u, 1, 1);

  float d[kSums];
  if (kMistake == kEarlyFence) WgmmaFence();
  CC_UNROLL for (int i = 0; i < kSums; ++i) d[i] = 1;
  PinSums(d);
  if (kMistake != kNoFence && kMistake != kEarlyFence) WgmmaFence();
  const char* const start = reinterpret_cast<const char*>(
      kMistake == kGlobalOperand ? reinterpret_cast<const Pattern*>(p.a) : a);
  const SharedMatrix of_a = MakeSharedMatrix(
      start + (kMistake == kBetweenPieces ? 8 : kMistake == kBetweenPatterns ? 128 : 0), 0,
      kMistake == kFarRows ? 2048 : kMistake == kOddStride ? 1020 : 1024);
  const SharedMatrix of_b = MakeSharedMatrix(b, kDepth * 128, 1024);
  for (int step = 0; step < kDepth / 16; ++step) {
    const SharedMatrix this_b = AtStep<kTransposeB>(of_b, step);
    const SharedMatrix this_a =
        AtStep<kTransposeA>(of_a, kMistake == kOtherOperands && warp == 2 ? 3 - step : step);
    if (kMistake == kOtherLine && warp == 2) {
      Wgmma<kTransposeA, kTransposeB>(d, this_a, this_b, true, T{}, T{});
    } else {
      const bool adds = kMistake == kOtherAdds ? warp != 2 : true;
      Wgmma<kTransposeA, kTransposeB>(d, this_a, this_b, adds, T{}, T{});
    }
  }
  if (kMistake == kTwoShapes) {
    float(&half)[32] = reinterpret_cast<float(&)[32]>(d[0]);
    Wgmma<kTransposeA, kTransposeB>(half, of_a, of_b, true, T{}, T{});
  }
  if (kMistake != kNoCommit) WgmmaCommit();
  if (kMistake == kReadsEarly && thread == 77) p.a[0] = static_cast<unsigned>(d[3]);
  if (kMistake == kWritesEarly && thread == 77) d[3] = 0;
  if (kMistake == kOverwrites && thread == 77) Store16(a[1].pieces, uint4{});
  if (kMistake == kOverwritesByCopy && thread == 77) {
    CopyAsync16If(true, b[1].pieces, p.a);
    CommitCopies();
    WaitCopies<0>();
  }
  if (kMistake == kWaitsForOthers) {
    WgmmaWait<1>();
  } else if (kMistake != kNoWait) {
    WgmmaWait<0>();
  }
  if (kMistake == kNoWait) return;
  PinSums(d);
  if (kMistake == kBeforeTheWait && warp == 0) Store16(b[0].pieces + thread, uint4{});
  if (kMistake == kTouches || kMistake == kLooks || kMistake == kWaitsTwice) {
    if (kMistake == kTouches) d[5] += 1;
    if (kMistake == kLooks && d[5] == 4711) p.a[0] = 0;
    PinSums(d);
    Wgmma<kTransposeA, kTransposeB>(d, of_a, of_b, false, T{}, T{});
    WgmmaCommit();
    WgmmaWait<0>();
  }
  StoreSums(to, d, thread);
}
#define ONE(T, kTransposeA, kTransposeB, kSums, name) \
  CC_KERNEL(product_##T##_##name##_##kSums) {         \
    Multiplies<T, kTransposeA, kTransposeB, kSums, kNone>(p, grid); \
  }
#define ALL(T, kSums)            \
  ONE(T, false, false, kSums, nn) \
  ONE(T, false, true, kSums, nt)  \
  ONE(T, true, false, kSums, tn)  \
  ONE(T, true, true, kSums, tt)
ALL(f16, 32)
ALL(f16, 64)
ALL(f16, 96)
ALL(f16, 128)
ALL(bf16, 32)
ALL(bf16, 128)
ONE(f8e4m3, false, false, 32, nn)
ONE(f8e4m3, false, false, 96, nn)
ONE(f8e5m2, false, false, 64, nn)
ONE(f8e5m2, false, false, 128, nn)
#define MISTAKE(name, kMistake) \
  CC_KERNEL(name) { Multiplies<bf16, false, true, 64, kMistake>(p, grid); }
MISTAKE(no_proxy_fence, kNoProxyFence)
MISTAKE(early_proxy_fence, kEarlyProxyFence)
MISTAKE(no_barrier, kNoBarrier)
MISTAKE(no_fence, kNoFence)
MISTAKE(early_fence, kEarlyFence)
MISTAKE(no_commit, kNoCommit)
MISTAKE(no_wait, kNoWait)
MISTAKE(waits_for_others, kWaitsForOthers)
MISTAKE(reads_early, kReadsEarly)
MISTAKE(writes_early, kWritesEarly)
MISTAKE(overwrites, kOverwrites)
MISTAKE(overwrites_by_copy, kOverwritesByCopy)
MISTAKE(no_swizzle, kNoSwizzle)
MISTAKE(between_pieces, kBetweenPieces)
MISTAKE(between_patterns, kBetweenPatterns)
MISTAKE(three_warps, kThreeWarps)
MISTAKE(half_warp, kHalfWarp)
MISTAKE(other_line, kOtherLine)
MISTAKE(other_operands, kOtherOperands)
MISTAKE(other_adds, kOtherAdds)
MISTAKE(unfilled, kUnfilled)
MISTAKE(far_rows, kFarRows)
MISTAKE(odd_stride, kOddStride)
MISTAKE(global_operand, kGlobalOperand)
MISTAKE(touches, kTouches)
MISTAKE(looks, kLooks)
MISTAKE(at_a_barrier, kAtABarrier)
MISTAKE(in_a_shuffle, kInAShuffle)
MISTAKE(waits_twice, kWaitsTwice)
MISTAKE(two_shapes, kTwoShapes)
MISTAKE(before_the_wait, kBeforeTheWait)

/// The second warp group stores operands and arrives, the first multiplies them.
enum Fences { kByWriters, kByReaders, kByNobody, kBeforeStores, kBehindArrival };
template <int kFences>
CC_DEVICE void Feeds(const Params& p, const Grid& grid) {
  CC_SHARED(Pattern, a, 8);
  CC_SHARED(Pattern, b, 16);
  CC_SHARED(u64, full, 1);
  const int thread = grid.ThreadId();
  const auto* const from = reinterpret_cast<const uint4*>(p.a);
  if (thread == 0) InitBarrier(full, 128);
  grid.Sync();
  if (thread >= 128) {
    if (kFences == kBeforeStores) FenceAsyncProxy();
    Bring<false, 64>(a, from, thread - 128, 128);
    Bring<true, 128>(b, from + 512, thread - 128, 128);
    if (kFences == kByWriters) FenceAsyncProxy();
    Arrive(full);
    if (kFences == kBehindArrival) FenceAsyncProxy();
    return;
  }
  while (!IsOver(full, 0)) {}
  if (kFences == kByReaders) FenceAsyncProxy();
  float d[64];
  CC_UNROLL for (int i = 0; i < 64; ++i) d[i] = 1;
  PinSums(d);
  WgmmaFence();
  for (int step = 0; step < kDepth / 16; ++step)
    Wgmma<false, true>(d, AtStep<false>(MakeSharedMatrix(a, 0, 1024), step),
                       AtStep<true>(MakeSharedMatrix(b, kDepth * 128, 1024), step), true, bf16{},
                       bf16{});
  WgmmaCommit();
  WgmmaWait<0>();
  PinSums(d);
  StoreSums(reinterpret_cast<float*>(p.a + 10240), d, thread);
}
CC_KERNEL(writers_fence) { Feeds<kByWriters>(p, grid); }
CC_KERNEL(readers_fence) { Feeds<kByReaders>(p, grid); }
CC_KERNEL(nobody_fences) { Feeds<kByNobody>(p, grid); }
CC_KERNEL(fences_before_stores) { Feeds<kBeforeStores>(p, grid); }
CC_KERNEL(fences_behind_arrivals) { Feeds<kBehindArrival>(p, grid); }
)";

}  // namespace

std::string ProductKernels() { return absl::StrCat(kHead, kProducts); }

}  // namespace coconet
