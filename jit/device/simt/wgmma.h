#pragma once

// Matrix products by warp groups of 128 threads, whose operands lie in shared memory, as the PTX
// ISA describes them. The simulated machine reads operands at any time before the products are
// awaited. Products are exact; sums are in f32.

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
struct SharedMatrix {
  const char* start;
  unsigned leading, stride;
};
/// All numbers are bytes; `start` is aligned to 1,024.
CC_DEVICE SharedMatrix MakeSharedMatrix(const void* start, unsigned leading, unsigned stride) {
  return {static_cast<const char*>(start), leading, stride};
}
/// The matrix that begins so many bytes further, a multiple of 16.
CC_DEVICE SharedMatrix Advanced(SharedMatrix matrix, int bytes) {
  return {matrix.start + bytes, matrix.leading, matrix.stride};
}

/// The number of the calling thread's warp group in its block.
CC_DEVICE int WarpGroup() { return ThreadIndex() / 128; }

/// Orders what this thread has written to shared memory, by stores and by copies that it has waited
/// for, before the reads of products and bulk copies that it begins later, or others do after the
/// next barrier.
CC_DEVICE void FenceSharedForAsyncProxy() { FenceAsyncProxy(); }

/// Orders what this thread's registers hold before the products that it begins next. Comes before
/// the first product, and before each that follows another access of its sums.
static CC_ASKS void WgmmaFence() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->fence_sums(calls->machine, __builtin_return_address(0));
}
/// Makes the products since the last call a group.
static CC_ASKS void WgmmaCommit() {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->close_products(calls->machine, __builtin_return_address(0));
}
static CC_ASKS void AwaitProducts(int pending) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->await_products(calls->machine, pending, __builtin_return_address(0));
}
/// Waits until at most kPending of the last groups are incomplete. Until then sums are undefined,
/// and operands are read at any time.
template <int kPending>
CC_DEVICE void WgmmaWait() {
  AwaitProducts(kPending);
}
/// Keeps the compiler from moving accesses of the sums across it.
template <int kSums>
CC_DEVICE void PinSums(float (&d)[kSums]) {
  asm volatile("" ::"r"(&d) : "memory");
}

static CC_ASKS void BeginProduct(const SimtProduct& product, float* sums) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->multiply(calls->machine, &product, sums, __builtin_return_address(0));
}
template <class T>
constexpr SimtElement kSimtElement = kSame<T, bf16>     ? SimtElement::kBF16
                                     : kSame<T, f8e4m3> ? SimtElement::kF8E4M3
                                     : kSame<T, f8e5m2> ? SimtElement::kF8E5M2
                                                        : SimtElement::kF16;
CC_DEVICE SimtOperand OperandOf(SharedMatrix matrix, bool transposed, SimtElement element) {
  return {matrix.start, matrix.leading, matrix.stride, transposed, element};
}
/// Begins d += a . b, or d = a . b unless `adds`, by the four warps of a warp group: a has 64 rows,
/// b twice as many columns as d has sums, both 32 bytes of k: 16 halves, or 32 8-bit floats, whose
/// types may differ. a lies along k, or along its rows if kTransposeA; b along k, or along its
/// columns if kTransposeB; 8-bit floats lie along k. Warp w, lane t of it, has of rows
/// 16 * w + t / 4 and 8 more, for each j < columns / 8, columns 8 * j + 2 * (t % 4) and the next:
/// d[4 * j], d[4 * j + 1] of the first row, d[4 * j + 2], d[4 * j + 3] of the second.
template <bool kTransposeA, bool kTransposeB, int kSums, class A, class B>
CC_DEVICE void Wgmma(float (&d)[kSums], SharedMatrix a, SharedMatrix b, bool adds, A, B) {
  static_assert(kSums == 32 || kSums == 64 || kSums == 96 || kSums == 128);
  static_assert(kHalf<A> ? kSame<A, B> : kFloat8<A> && kFloat8<B> && !kTransposeA && !kTransposeB);
  const SimtProduct product = {OperandOf(a, kTransposeA, kSimtElement<A>),
                               OperandOf(b, kTransposeB, kSimtElement<B>), kSums, adds};
  BeginProduct(product, d);
}

static CC_ASKS void SetRegisters(int registers, bool raises) {
  SimtCalls* const calls = COCONET_SIMT_CALLS;
  calls->set_registers(calls->machine, registers, raises, __builtin_return_address(0));
}
/// Sets the registers of each thread of a warp group, a multiple of 8 from 24 to 256: fewer than it
/// had, or more, for which it waits until others have given them up. All its threads call it.
template <int kRegisters>
CC_DEVICE void LowerRegisters() {
  SetRegisters(kRegisters, false);
}
template <int kRegisters>
CC_DEVICE void RaiseRegisters() {
  SetRegisters(kRegisters, true);
}

}  // namespace coconet
