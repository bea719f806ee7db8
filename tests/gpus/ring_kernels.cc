#include "absl/strings/str_cat.h"
#include "tests/gpus/warp_group_kernels.h"

namespace coconet {
namespace {

constexpr char kRings[] = R"(#include "coconet/kernel.h"
#include "wgmma.h"
#undef CC_MAX_THREADS
#define CC_MAX_THREADS 384
using namespace coconet;
struct Params {
  Control* control; unsigned* a; unsigned* flag; u64* words; Index n;
  TensorMap map_a, map_b;
};

enum Mistakes {
  kNone, kWaitsForOne, kWrongParity, kNoWaitForFull, kNoWaitForEmpty, kNoArrive, kEarlyArrive,
  kOneWarpArrives, kTooFewBytes, kTooManyBytes, kOffPattern, kNoMap, kNoBarrierFence, kNoProxyFence,
  kProxyFence, kOneLoadLess, kSameStage, kOneLaneWaits
};
template <bool kAlongK, int kMistake>
CC_DEVICE void Multiplies(const Params& p, const Grid& grid) {
  constexpr int kStages = kAlongK ? 1 : 3, kDepth = kAlongK ? 64 : 16,
                kStageBytes = 192 * 2 * kDepth;
  struct alignas(1024) Stage { unsigned char bytes[kStageBytes]; };
  CC_SHARED(Stage, stages, kStages + (kMistake == kOffPattern));
  CC_SHARED(u64, full, kStages);
  CC_SHARED(u64, empty, kStages);
  const int thread = grid.ThreadId(), group = thread / 128,
            slabs = int((p.n + kDepth - 1) / kDepth);
  if (kMistake == kNoProxyFence || kMistake == kProxyFence) {
    Store16(stages[0].bytes + 16 * thread, uint4{});
    if (kMistake == kProxyFence) FenceAsyncProxy();
  }
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      InitBarrier(full + i, 1);
      InitBarrier(empty + i, kMistake == kOneWarpArrives ? 2 : 8);
    }
    if (kMistake != kNoBarrierFence) FenceBarriers();
  }
  grid.Sync();
  int stage = 0;
  unsigned phase = 0;
  const auto go_on = [&]() CC_INLINE {
    if (++stage == kStages) stage = 0, phase ^= 1;
  };
  if (group == 2) {
    LowerRegisters<40>();
    if (thread == 256) PrefetchMap(&p.map_a);
    if (thread == 256) for (int slab = 0; slab < slabs; ++slab) {
      while (kMistake != kNoWaitForEmpty && !IsOver(empty + stage, phase ^ 1)) {}
      ArriveAndExpect(full + stage, kMistake == kTooFewBytes ? kStageBytes - 128 :
                                    kMistake == kTooManyBytes ? kStageBytes + 128 : kStageBytes);
      unsigned char* const to = stages[stage].bytes + (kMistake == kOffPattern ? 128 : 0);
      const int k = slab * kDepth;
      const TensorMap* const map_b =
          kMistake == kNoMap ? reinterpret_cast<const TensorMap*>(p.a) : &p.map_b;
      if (kAlongK) {
        LoadBox(to, &p.map_a, k, 0, full + stage);
        if (kMistake != kOneLoadLess) LoadBox(to + 128 * 2 * kDepth, map_b, k, 0, full + stage);
      } else {
        for (int i = 0; i < 2; ++i)
          LoadBox(to + i * 128 * kDepth, &p.map_a, 64 * i, k, full + stage);
        if (kMistake != kOneLoadLess) LoadBox(to + 128 * 2 * kDepth, map_b, 0, k, full + stage);
      }
      go_on();
    }
    return;
  }
  RaiseRegisters<232>();
  float d[32];
  CC_UNROLL for (int i = 0; i < 32; ++i) d[i] = 0;
  for (int slab = 0; slab < slabs; ++slab) {
    const unsigned parity = kMistake == kWrongParity ? phase ^ 1 : phase;
    if (kMistake == kOneLaneWaits) {
      if (thread % 32 == 0) while (!IsOver(full + stage, parity)) {}
      SyncWarp();
    } else if (kMistake != kNoWaitForFull) {
      while (!IsOver(full + stage, parity)) {}
    }
    const unsigned char* const at = stages[stage].bytes;
    const SharedMatrix a = MakeSharedMatrix(at + group * 128 * kDepth, 128 * kDepth, 1024),
                       b = MakeSharedMatrix(at + 128 * 2 * kDepth, 128 * kDepth, 1024);
    PinSums(d);
    WgmmaFence();
    for (int step = 0; step < kDepth / 16; ++step)
      Wgmma<!kAlongK, !kAlongK>(d, Advanced(a, 32 * step), Advanced(b, 32 * step), true, bf16{},
                                bf16{});
    WgmmaCommit();
    PinSums(d);
    const bool arrives = kMistake == kOneWarpArrives ? thread % 128 == 0
                         : kMistake == kNoArrive     ? thread == 0
                                                     : thread % 32 == 0;
    if (kMistake == kEarlyArrive && arrives) Arrive(empty + stage);
    if (kMistake == kWaitsForOne || kMistake == kSameStage) {
      WgmmaWait<1>();
      // The slab before is read, and given back.
      const int last = kMistake == kSameStage ? stage : (stage + kStages - 1) % kStages;
      if (arrives && (slab > 0 || kMistake == kSameStage)) Arrive(empty + last);
    } else {
      WgmmaWait<0>();
      if (kMistake != kEarlyArrive && arrives) Arrive(empty + stage);
    }
    go_on();
  }
  WgmmaWait<0>();
  PinSums(d);
  auto* const to = reinterpret_cast<float*>(p.a + 24576) + group * 64 * 64;
  const int row = thread % 128 / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  CC_UNROLL for (int i = 0; i < 32; ++i)
    to[(row + i / 2 % 2 * 8) * 64 + i / 4 * 8 + column + i % 2] = d[i];
}
#define RING(name, kAlongK, kMistake) CC_KERNEL(name) { Multiplies<kAlongK, kMistake>(p, grid); }
RING(along_k, true, kNone)
RING(along_lines, false, kNone)
RING(waits_for_one, false, kWaitsForOne)
RING(fills_in_a_warp, false, kOneLaneWaits)
RING(stores_before, false, kProxyFence)
RING(wrong_parity, false, kWrongParity)
RING(no_wait_for_full, false, kNoWaitForFull)
RING(no_wait_for_empty, false, kNoWaitForEmpty)
RING(no_arrive, false, kNoArrive)
RING(early_arrive, false, kEarlyArrive)
RING(one_warp_arrives, false, kOneWarpArrives)
RING(too_few_bytes, false, kTooFewBytes)
RING(too_many_bytes, false, kTooManyBytes)
RING(off_pattern, false, kOffPattern)
RING(no_map, false, kNoMap)
RING(no_barrier_fence, false, kNoBarrierFence)
RING(stores_before_without_fence, false, kNoProxyFence)
RING(one_load_less, false, kOneLoadLess)
RING(same_stage, false, kSameStage)
)";

constexpr char kParts[] = R"(#include "coconet/kernel.h"
#include "wgmma.h"
#undef CC_MAX_THREADS
#define CC_MAX_THREADS 384
using namespace coconet;
struct Params { Control* control; unsigned* a; unsigned* flag; u64* words; Index n; };

enum Mistakes {
  kNone, kNoBarrier, kOtherCount, kOddCount, kLargeCount, kBlocksBarrier, kHalfWarp,
  kOneEnds, kOtherBarrier
};
/// The first two warps pass a number on by barrier 1, the second two by barrier 2, with turns.
template <int kMistake>
CC_DEVICE void Passes(const Params& p, const Grid& grid) {
  CC_SHARED(unsigned, passed, 128);
  const int thread = grid.ThreadId(), part = thread / 64, first = part * 64;
  for (unsigned turn = 0; turn < 3; ++turn) {
    passed[thread] = thread + turn;
    if (kMistake == kOneEnds && thread == 33 && turn == 1) return;
    if (kMistake == kHalfWarp && thread % 32 < 16 && part == 1) continue;
    const int barrier = kMistake == kBlocksBarrier  ? 0
                        : kMistake == kOtherBarrier ? thread / 32 + 1
                                                    : part + 1;
    const int count = kMistake == kOtherCount && thread / 32 == 1 ? 96
                      : kMistake == kOddCount                     ? 48
                      : kMistake == kLargeCount                   ? 256
                                                                  : 64;
    if (kMistake != kNoBarrier) SyncThreads(barrier, count);
    const unsigned next = passed[first + (thread + 33) % 64];
    if (kMistake != kNoBarrier) SyncThreads(barrier, count);
    p.a[thread] = next;
  }
}
#define PASSES(name, kMistake) CC_KERNEL(name) { Passes<kMistake>(p, grid); }
PASSES(passes, kNone)
PASSES(no_barrier, kNoBarrier)
PASSES(other_count, kOtherCount)
PASSES(odd_count, kOddCount)
PASSES(large_count, kLargeCount)
PASSES(blocks_barrier, kBlocksBarrier)
PASSES(half_warp, kHalfWarp)
PASSES(one_ends, kOneEnds)
PASSES(other_barrier, kOtherBarrier)

template <bool kSyncs>
CC_DEVICE void PassesInWarps(const Params& p, const Grid& grid) {
  CC_SHARED(unsigned, passed, 128);
  const int thread = grid.ThreadId();
  passed[thread] = thread;
  if (kSyncs) SyncWarp();
  p.a[thread] = passed[thread ^ 1];
}
CC_KERNEL(warps_pass) { PassesInWarps<true>(p, grid); }
CC_KERNEL(three_warps) { if (grid.ThreadId() < 96) SyncThreads(1, 64); }
CC_KERNEL(warps_do_not_sync) { PassesInWarps<false>(p, grid); }
)";
constexpr char kPossibleParts[] = R"(
CC_KERNEL(gives) { if (grid.ThreadId() < 128) LowerRegisters<40>(); else RaiseRegisters<232>(); }
CC_KERNEL(gives_too_little) {
  if (grid.ThreadId() < 128) LowerRegisters<40>(); else RaiseRegisters<240>();
}
CC_KERNEL(raises_to_less) {
  if (grid.ThreadId() < 128) LowerRegisters<40>(); else RaiseRegisters<160>();
}
CC_KERNEL(one_warp_keeps) {
  if (grid.ThreadId() >= 128) RaiseRegisters<232>();
  else if (grid.ThreadId() >= 32) LowerRegisters<40>();
}
)";
constexpr char kImpossibleParts[] = R"(
CC_KERNEL(lowers_to_more) { if (grid.ThreadId() < 128) LowerRegisters<176>(); }
CC_KERNEL(between_steps) { LowerRegisters<44>(); }
CC_KERNEL(too_few) { LowerRegisters<16>(); }
CC_KERNEL(too_many) { if (grid.ThreadId() < 256) LowerRegisters<24>(); else RaiseRegisters<264>(); }
)";

}  // namespace

std::string RingKernels() { return kRings; }
std::string PartKernels() { return absl::StrCat(kParts, kPossibleParts); }
std::string ImpossiblePartKernels() { return absl::StrCat(kParts, kImpossibleParts); }

}  // namespace coconet
