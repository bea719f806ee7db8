#pragma once

// The interface between kernels compiled for simulated threads and the machine that runs
// them (runtime/simt). Like kernel_abi.h: compiled on both sides, includes nothing, uses
// built-in types only.

namespace coconet {

/// A thread's index in its launch.
struct SimtPlace {
  int block, blocks;
  int thread, threads;
};

/// The elements of an operand.
enum class SimtElement : unsigned char { kF16, kBF16, kF8E4M3, kF8E5M2 };
/// A matrix in shared memory, an operand of a warp group's product: jit/device/simt/wgmma.h.
struct SimtOperand {
  const void* start;
  unsigned leading, stride;  // bytes
  bool transposed;           // lies along its lines
  SimtElement element;
};
/// d += a . b, or d = a . b unless `adds`: a has 64 rows, b 2 * sums columns, both 32 bytes of k.
struct SimtProduct {
  SimtOperand a, b;
  int sums;  // of each of the 128 threads
  bool adds;
};

/// A tensor map as the simulated driver encodes it, in the 128 bytes of CUDA's.
struct SimtTensorMap {
  const void* base;
  unsigned long long columns, rows, row_bytes;  // elements of a row, rows, bytes from row to row
  unsigned long long matrices, matrix_bytes;    // of maps of three dimensions; 0: of two
  unsigned box_columns, box_rows, element_bytes;
  unsigned known;  // kSimtTensorMap, so that other bytes are told from a map
};
constexpr unsigned kSimtTensorMap = 0x7e4507a9;

/// The functions that a module calls in the machine. `at`: the calling address in the module's
/// code. A call returns after other threads may have run. It never returns once the machine has
/// found a mistake: the machine stops.
struct SimtCalls {
  const SimtPlace* place;            // of the running thread
  unsigned long stack, stack_bytes;  // the running thread's stack, whose accesses are not checked
  unsigned long sums, sums_bytes;    // but here, where sums of its products are
  void* machine;

  /// Before a plain access. `aligned`: p is a multiple of `bytes`.
  void (*access)(void* machine, const void* p, unsigned long bytes, bool writes, bool aligned,
                 const void* at);
  /// Atomic accesses: `count` consecutive words of `bytes` (4 or 8) bytes, aligned to
  /// their total size.
  void (*load)(void* machine, const void* p, int bytes, int count, bool acquires,
               unsigned long long* values, const void* at);
  void (*store)(void* machine, void* p, int bytes, int count, bool releases,
                const unsigned long long* values, const void* at);
  unsigned (*exchange)(void* machine, unsigned* p, unsigned value, const void* at);
  void (*note_wait)(void* machine, const unsigned* flag, unsigned epoch);
  /// Block barrier. `votes`: the barrier also votes; returns whether all threads passed `ok`.
  bool (*barrier)(void* machine, bool votes, bool ok, const void* at);
  /// Barriers of so many threads of the block, by number, and of the warp.
  void (*sync_threads)(void* machine, int barrier, int threads, const void* at);
  void (*sync_warp)(void* machine, const void* at);
  unsigned long long (*shuffle_down)(void* machine, unsigned mask, unsigned long long value,
                                     int distance, const void* at);
  /// The block's shared array for this place in the source.
  void* (*shared)(void* machine, const void* place, unsigned long bytes, unsigned long alignment);
  unsigned long long (*now_ns)(void* machine);
  /// Asynchronous bulk copies from shared memory, in groups per thread. await_bulk returns when all
  /// groups but the last `open` have read their source, or, if `stores`, have also stored it.
  void (*copy_bulk)(void* machine, void* to, const void* from, int bytes, const void* at);
  void (*close_bulk_group)(void* machine);
  void (*await_bulk)(void* machine, int open, bool stores);
  /// Makes what the thread has done, and what it knows of, visible to the asynchronous proxy.
  void (*fence_async_proxy)(void* machine);
  /// An mbarrier of so many arrivals in each phase, and the fence behind such.
  void (*init_barrier)(void* machine, unsigned long long* barrier, int arrivals, const void* at);
  void (*fence_barriers)(void* machine);
  /// One arrival, which expects so many bytes.
  void (*arrive)(void* machine, unsigned long long* barrier, int bytes, const void* at);
  /// Whether the barrier's last phase of that parity is over. May return false when it is.
  bool (*try_wait)(void* machine, unsigned long long* barrier, unsigned parity, const void* at);
  /// An asynchronous bulk copy to shared memory, which completes as bytes of the barrier.
  void (*load_bulk)(void* machine, void* to, const void* from, int bytes,
                    unsigned long long* barrier, const void* at);
  /// The same for a box of a matrix, as `map` has it: a SimtTensorMap in 128 bytes. Its row r lies
  /// 128 * r bytes behind `to`, with swizzles of 128 bytes; elements outside the matrix are zeros.
  /// `matrix`: null for a load of two dimensions.
  void (*load_box)(void* machine, void* to, const void* map, int column, int row, const int* matrix,
                   unsigned long long* barrier, const void* at);
  /// Asynchronous copies of at most 16 bytes to shared memory, zero-filled to 16.
  void (*copy_async)(void* machine, void* to, const void* from, int bytes, const void* at);
  void (*close_async_group)(void* machine);
  void (*await_async)(void* machine, int open);
  /// Over a whole warp: concatenates every thread's `bytes` into `all`, for each thread.
  void (*gather)(void* machine, const void* mine, int bytes, void* all, const void* at);
  /// Products of a warp group (PTX ISA, wgmma): begins one whose sums are on the thread's stack,
  /// orders the thread's accesses of sums before products, makes the warp's products a group, waits
  /// for all of its groups but the last `open`.
  void (*multiply)(void* machine, const SimtProduct* product, float* sums, const void* at);
  void (*fence_sums)(void* machine, const void* at);
  void (*close_products)(void* machine, const void* at);
  void (*await_products)(void* machine, int open, const void* at);
  /// Sets the registers of the warp group's threads to fewer or, once there are enough, to more.
  void (*set_registers)(void* machine, int registers, bool raises, const void* at);
  /// Before an access of [sums, sums + sums_bytes).
  void (*access_sums)(void* machine, const void* p, unsigned long bytes, bool writes,
                      const void* at);
  /// The block's dynamic shared memory, aligned to 1024 bytes.
  void* (*dynamic_shared)(void* machine);
};

/// A module's variable of type SimtCalls*, set when it is loaded.
#define COCONET_SIMT_CALLS coconet_simt_calls
#define COCONET_SIMT_CALLS_NAME "coconet_simt_calls"

/// A kernel, `extern "C" void symbol(const void* params)`, called once per thread.
using SimtKernel = void (*)(const void* params);

}  // namespace coconet
