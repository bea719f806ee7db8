// Not `#pragma once`: a test defines the guard and gives these instructions meanings of its own.
#ifndef COCONET_JIT_DEVICE_CUDA_MMA_H_
#define COCONET_JIT_DEVICE_CUDA_MMA_H_

// Instructions of matrix products, one per function, as the PTX ISA describes them; from sm_80 on.
// All threads of a warp call those that are collective over it.

namespace coconet {

/// Copies 16 bytes from global to shared memory, both 16-byte aligned; or fills them with zeros,
/// and reads nothing, unless `there`. Asynchronous; see WaitCopies.
CC_DEVICE void CopyAsync16If(bool there, void* to, const void* from) {
  asm volatile(
      "{ .reg .pred p; setp.eq.b32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }" ::"r"(
          SharedAddress(to)),
      "l"(from), "r"(int(there))
      : "memory");
}
/// Makes the thread's copies since the last call a group.
CC_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most kPending of the thread's last groups are incomplete.
template <int kPending>
CC_DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Loads four matrices of 8 x 8 halves. Thread t passes the address of row t % 8 of matrix t / 8
/// and receives, of row t / 4 of each matrix, halves 2 * (t % 4) and 2 * (t % 4) + 1.
CC_DEVICE void LoadMatrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}
/// The same for the transposed matrices.
CC_DEVICE void LoadMatricesTransposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}

/// Stores four matrices of 8 x 8 halves, from sm_90 on. Thread t passes the address of row t % 8 of
/// matrix t / 8 and, of row t / 4 of each matrix, halves 2 * (t % 4) and 2 * (t % 4) + 1.
CC_DEVICE void StoreMatrices(void* row, const unsigned (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(SharedAddress(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

/// d[16, 8] += a[16, 16] . b[16, 8]. With g = t / 4 and h = 2 * (t % 4), thread t holds these
/// elements, each with the next one along the row (b: along the column). a: (g, h), (g + 8, h),
/// (g, h + 8), (g + 8, h + 8). b: (h, g), (h + 8, g). d: (g, h), (g + 8, h).
#define CC_MMA(Type, name)                                                                  \
  CC_DEVICE void MmaM16N8K16(float(&d)[4], const unsigned(&a)[4], unsigned b0, unsigned b1, \
                             Type) {                                                        \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name                     \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"     \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                           \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));           \
  }
CC_MMA(f16, "f16")
CC_MMA(bf16, "bf16")
#undef CC_MMA

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_CUDA_MMA_H_
