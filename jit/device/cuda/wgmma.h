#pragma once

// Matrix products by warp groups of 128 threads, whose operands lie in shared memory; kernels for
// sm_90a alone call them. One function per instruction of the PTX ISA's section "Asynchronous
// warpgroup level matrix instructions".

namespace coconet {

/// A matrix in shared memory with swizzles of 128 bytes: the descriptor of a warp group's operand.
/// Pieces of 16 bytes lie in rows of 8, a row 128 bytes long and aligned to them; piece p of row r
/// is stored as piece p ^ r % 8. Eight rows are a block of 1,024 bytes.
///
///   along k          a row has 64 halves, or 128 bytes of 8 bits, of one line (a row of the first
///                    operand, a column of the second); `stride` is from eight lines to the next
///                    eight, `leading` is not used
///   along the lines  a row has 64 halves of as many lines, for one k; `stride` is from eight k to
///                    the next eight, `leading` from 64 lines to the next 64
using SharedMatrix = unsigned long long;
/// All numbers are bytes; `start` is aligned to 1,024.
CC_DEVICE SharedMatrix MakeSharedMatrix(const void* start, unsigned leading, unsigned stride) {
  return static_cast<SharedMatrix>((SharedAddress(start) & 0x3ffff) >> 4) |
         static_cast<SharedMatrix>(leading >> 4) << 16 |
         static_cast<SharedMatrix>(stride >> 4) << 32 | 1ull << 62;
}
/// The matrix that begins so many bytes further, a multiple of 16.
CC_DEVICE SharedMatrix Advanced(SharedMatrix matrix, int bytes) {
  return matrix + static_cast<SharedMatrix>(bytes >> 4);
}

/// The number of the calling thread's warp group in its block, the same in all threads of a warp as
/// the compiler knows.
CC_DEVICE int WarpGroup() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0); }

/// Orders what this thread has written to shared memory, by stores and by copies that it has waited
/// for, before the reads of products and bulk copies that it begins later, or others do after the
/// next barrier.
CC_DEVICE void FenceSharedForAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Orders what this thread's registers hold before the products that it begins next. Comes before
/// the first product, and before each that follows another access of its sums.
CC_DEVICE void WgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Makes the products since the last call a group.
CC_DEVICE void WgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most kPending of the last groups are incomplete. Until then sums are undefined,
/// and operands are read at any time.
template <int kPending>
CC_DEVICE void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving accesses of the sums across it.
template <int kSums>
CC_DEVICE void PinSums(float (&d)[kSums]) {
  CC_UNROLL for (int i = 0; i < kSums; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

#define CC_SUMS8(i)                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define CC_SUMS32(i) CC_SUMS8(i), CC_SUMS8(i + 8), CC_SUMS8(i + 16), CC_SUMS8(i + 24)
#define CC_NAMES32                                                       \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CC_NAMES64                                                                   \
  CC_NAMES32                                                                         \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CC_NAMES96                                                                   \
  CC_NAMES64                                                                         \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define CC_NAMES128                                                                              \
  CC_NAMES96                                                                                     \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
/// Begins d += a . b, or d = a . b unless `adds`, by the four warps of a warp group: a has 64 rows,
/// b twice as many columns as d has sums, both 32 bytes of k: 16 halves, or 32 8-bit floats, whose
/// types may differ. a lies along k, or along its rows if kTransposeA; b along k, or along its
/// columns if kTransposeB; 8-bit floats lie along k. Warp w, lane t of it, has of rows
/// 16 * w + t / 4 and 8 more, for each j < columns / 8, columns 8 * j + 2 * (t % 4) and the next:
/// d[4 * j], d[4 * j + 1] of the first row, d[4 * j + 2], d[4 * j + 3] of the second.
#define CC_WGMMA(kSums, columns, a_, b_, adds_, majors_, A, B, kind, ...)                         \
  template <bool kTransposeA, bool kTransposeB>                                                   \
  CC_DEVICE void Wgmma(float(&d)[kSums], SharedMatrix a, SharedMatrix b, bool adds, A, B) {       \
    static_assert(kHalf<A> || (!kTransposeA && !kTransposeB));                                    \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " adds_                                          \
                 ", 0; wgmma.mma_async.sync.aligned.m64n" columns kind " {" CC_NAMES##kSums       \
                 "}, " a_ ", " b_ ", p, 1, 1" majors_ "; }"                                       \
                 : __VA_ARGS__                                                                    \
                 : "l"(a), "l"(b), "r"(int(adds)), "n"(int(kTransposeA)), "n"(int(kTransposeB))); \
  }
#define CC_WGMMAS(A, B, kind, majors)                                                            \
  CC_WGMMA(32, "64", "%32", "%33", "%34", majors(", %35, %36"), A, B, kind, CC_SUMS32(0))        \
  CC_WGMMA(64, "128", "%64", "%65", "%66", majors(", %67, %68"), A, B, kind, CC_SUMS32(0),       \
           CC_SUMS32(32))                                                                        \
  CC_WGMMA(96, "192", "%96", "%97", "%98", majors(", %99, %100"), A, B, kind, CC_SUMS32(0),      \
           CC_SUMS32(32), CC_SUMS32(64))                                                         \
  CC_WGMMA(128, "256", "%128", "%129", "%130", majors(", %131, %132"), A, B, kind, CC_SUMS32(0), \
           CC_SUMS32(32), CC_SUMS32(64), CC_SUMS32(96))
#define CC_MAJORS(of) of
#define CC_NO_MAJORS(of) ""
CC_WGMMAS(f16, f16, "k16.f32.f16.f16", CC_MAJORS)
CC_WGMMAS(bf16, bf16, "k16.f32.bf16.bf16", CC_MAJORS)
CC_WGMMAS(f8e4m3, f8e4m3, "k32.f32.e4m3.e4m3", CC_NO_MAJORS)
CC_WGMMAS(f8e4m3, f8e5m2, "k32.f32.e4m3.e5m2", CC_NO_MAJORS)
CC_WGMMAS(f8e5m2, f8e4m3, "k32.f32.e5m2.e4m3", CC_NO_MAJORS)
CC_WGMMAS(f8e5m2, f8e5m2, "k32.f32.e5m2.e5m2", CC_NO_MAJORS)
#undef CC_NO_MAJORS
#undef CC_MAJORS
#undef CC_WGMMAS
#undef CC_WGMMA
#undef CC_NAMES128
#undef CC_NAMES96
#undef CC_NAMES64
#undef CC_NAMES32
#undef CC_SUMS32
#undef CC_SUMS8

/// Sets the registers of each thread of a warp group, a multiple of 8 from 24 to 256: fewer than it
/// had, or more, for which it waits until others have given them up. All its threads call it.
template <int kRegisters>
CC_DEVICE void LowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
CC_DEVICE void RaiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace coconet
