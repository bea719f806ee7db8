#ifndef COCONET_RUNTIME_SIMT_ABI_H_
#define COCONET_RUNTIME_SIMT_ABI_H_

// What kernels compiled for simulated threads, and the machine that runs these (runtime/simt),
// agree on. Like kernel_abi.h: compiled on both sides, includes nothing, uses built-in types.

namespace coconet {

/// Where a thread is in its launch.
struct SimtPlace {
  int block, blocks;
  int thread, threads;
};

/// What a module asks of the machine. `at`: where in the module's code. A call returns when other
/// threads have had their turn, or never: then the machine has found a mistake, and ends.
struct SimtCalls {
  const SimtPlace* place;            // of the thread that runs
  unsigned long stack, stack_bytes;  // where its stack lies, whose accesses nobody asks for
  void* machine;

  /// Before a plain access. `aligned`: to its size.
  void (*access)(void* machine, const void* p, unsigned long bytes, bool writes, bool aligned,
                 const void* at);
  /// Accesses of the memory model: 4 or 8 bytes, `count` of them one after the other, aligned to
  /// all.
  void (*load)(void* machine, const void* p, int bytes, int count, bool acquires,
               unsigned long long* values, const void* at);
  void (*store)(void* machine, void* p, int bytes, int count, bool releases,
                const unsigned long long* values, const void* at);
  unsigned (*exchange)(void* machine, unsigned* p, unsigned value, const void* at);
  void (*note_wait)(void* machine, const unsigned* flag, unsigned epoch);
  /// Of the block. `votes`: a barrier of that kind; whether all were `ok`.
  bool (*barrier)(void* machine, bool votes, bool ok, const void* at);
  unsigned long long (*shuffle_down)(void* machine, unsigned mask, unsigned long long value,
                                     int distance, const void* at);
  /// The block's array for this place in the source.
  void* (*shared)(void* machine, const void* place, unsigned long bytes);
  unsigned long long (*now_ns)(void* machine);
  /// Copies from shared memory that go on by themselves, in groups of the thread's; returns when
  /// all groups but the last `open` have read what they copy, or, if `stores`, have stored it.
  void (*copy_bulk)(void* machine, void* to, const void* from, int bytes, const void* at);
  void (*close_bulk_group)(void* machine);
  void (*await_bulk)(void* machine, int open, bool stores);
  /// What the thread has written is there for bulk copies.
  void (*fence_bulk)(void* machine);
  /// Copies of at most 16 bytes to shared memory, filled up with zeros to 16, that go on by
  /// themselves, too.
  void (*copy_async)(void* machine, void* to, const void* from, int bytes, const void* at);
  void (*close_async_group)(void* machine);
  void (*await_async)(void* machine, int open);
  /// Of a whole warp: what each of its threads gives, one after the other, to each.
  void (*gather)(void* machine, const void* mine, int bytes, void* all, const void* at);
};

/// A module's variable of type SimtCalls*, set when it is loaded.
#define COCONET_SIMT_CALLS coconet_simt_calls
#define COCONET_SIMT_CALLS_NAME "coconet_simt_calls"

/// A kernel, as `extern "C" void symbol(const void* params)`: called for each thread.
using SimtKernel = void (*)(const void* params);

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_ABI_H_
