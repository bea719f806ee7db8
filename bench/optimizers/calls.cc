#include "bench/optimizers/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include <atomic>

namespace coconet::bench {
namespace {

std::atomic<int64_t> allocations = 0, locks = 0;

void Count(std::atomic<int64_t>& calls) { calls.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

Calls CallsSoFar() { return {.allocations = allocations.load(), .locks = locks.load()}; }

}  // namespace coconet::bench

// Definitions in the executable take precedence over those of the shared C library. With sanitizers
// theirs must.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t align, size_t size);

void* malloc(size_t size) {
  coconet::bench::Count(coconet::bench::allocations);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  coconet::bench::Count(coconet::bench::allocations);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  coconet::bench::Count(coconet::bench::allocations);
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t align, size_t size) {
  coconet::bench::Count(coconet::bench::allocations);
  return __libc_memalign(align, size);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> next = nullptr;  // without an initialisation guard, which could lock
  Lock lock = next.load(std::memory_order_relaxed);
  if (lock == nullptr) {
    lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    next.store(lock, std::memory_order_relaxed);
  }
  coconet::bench::Count(coconet::bench::locks);
  return lock(mutex);
}

}  // extern "C"
#endif
