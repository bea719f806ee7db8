#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include <atomic>
#include <memory>

#include "bench/harness/tuned_contender.h"
#include "bench/optimizers/compare.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "runtime/plan.h"

namespace coconet::bench {
namespace {

// Calls of all threads of this process so far, which the definitions below count: of malloc and its
// kin, operator new included; of pthread_mutex_lock, std::mutex included (SQLite takes one per
// call).
std::atomic<int64_t> allocations = 0, locks = 0;

void Count(std::atomic<int64_t>& calls) { calls.fetch_add(1, std::memory_order_relaxed); }

void Nothing(const void* /*params*/, int /*block*/, int /*blocks*/) {}

class NothingModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view /*name*/) const override {
    return reinterpret_cast<void*>(&Nothing);
  }
};

/// x <- x + 1, one element.
absl::StatusOr<Graph> SmallestProgram() {
  Program program("count");
  const Tensor x = program.State("x", DType::kF32, {1}, Layout::Replicated());
  Update(x, x + 1);
  return program.graph();
}

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureDispatch(Rank& rank, const SessionOptions& options,
                                                     const RoundTerms& terms) {
  const Plan empty = {.ranks = 1,
                      .buffers = {},
                      .steps = {KernelStep{.symbol = "nothing", .args = {}, .label = "nothing"}}};
  const NothingModule module;
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(empty, module, {}, GetEnv().timeout_s));

  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram smallest, session.Compile(SmallestProgram()));
  ASSIGN_OR_RETURN(BoundProgram program, smallest.Bind({}));

  Contenders contenders(rank, options.budget_s);
  contenders.AddStep("ours", [&] { return plan->Run(); }, "BoundPlan::Run");
  contenders.AddStep("ours", [&] { return program.Run(); }, "BoundProgram::Run");
  for (const Contender& contender : contenders.timed()) {
    RETURN_IF_ERROR(contender.run(1));
    const int64_t allocations_before = allocations, locks_before = locks;
    RETURN_IF_ERROR(contender.run(1000));
    const int64_t allocated = allocations - allocations_before, locked = locks - locks_before;
    contenders.AddFact("allocations", allocated, contender.form);
    contenders.AddFact("locks", locked, contender.form);
  }
  return contenders.Measure(terms);
}

}  // namespace coconet::bench

// Definitions in the executable take precedence over those of the shared C library. In a build with
// sanitizers those of the sanitizers must.
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
