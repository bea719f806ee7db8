#ifndef COCONET_JIT_DEVICE_CUDA_MMA_H_
#define COCONET_JIT_DEVICE_CUDA_MMA_H_

// Instructions of matrix products, one a function, as the PTX ISA describes them; sm_80 on. Those
// of a warp are called by all of its threads.

namespace coconet {

CC_DEVICE unsigned SharedAddress(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// Copies `bytes`, at most 16, from global to shared memory, both aligned to 16, and fills up with
/// zeros to 16; when that is done, WaitCopies tells.
CC_DEVICE void CopyAsync16(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
/// The thread's copies since the last call are a group.
CC_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Returns when at most kPending of the thread's last groups are under way.
template <int kPending>
CC_DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Four matrices of 8 x 8 halves: thread t gives the address of row t % 8 of matrix t / 8, and gets
/// of row t / 4 of each the halves 2 * (t % 4) and the next.
CC_DEVICE void LoadMatrices(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}
/// The same of the matrices transposed.
CC_DEVICE void LoadMatricesTransposed(unsigned (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(row))
               : "memory");
}

/// d[16, 8] += a[16, 16] . b[16, 8]. With g = t / 4 and h = 2 * (t % 4), thread t has, each time
/// with the next column (of b, row), of a: (g, h), (g + 8, h), (g, h + 8), (g + 8, h + 8); of b:
/// (h, g), (h + 8, g); of d: (g, h), (g + 8, h).
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
