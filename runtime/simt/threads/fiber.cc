#include "runtime/simt/threads/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>

namespace coconet {
namespace {

namespace context = boost::context::detail;

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

StackPool::~StackPool() {
  for (void* mapping : mappings_) munmap(mapping, kAtOnce * (kBytes + PageBytes()));
}

char* StackPool::Take() {
  if (free_.empty()) {
    const size_t each = kBytes + PageBytes();
    void* mapping = mmap(nullptr, kAtOnce * each, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    mappings_.push_back(mapping);
    for (int i = 0; i < kAtOnce; ++i) {
      char* guard = static_cast<char*>(mapping) + i * each;
      if (mprotect(guard, PageBytes(), PROT_NONE) != 0) return nullptr;
      free_.push_back(guard + PageBytes());
    }
  }
  char* stack = free_.back();
  free_.pop_back();
  return stack;
}

struct Fiber::Entry {
  static void Run(context::transfer_t from) {
    auto* fiber = static_cast<Fiber*>(from.data);
    fiber->resumer_ = from.fctx;
    fiber->body_(fiber->argument_);
    fiber->ended_ = true;
    fiber->Stop();
  }
};

void Fiber::Start(char* stack, Body body, void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  context_ = context::make_fcontext(stack + StackPool::kBytes, StackPool::kBytes, Entry::Run);
}

void Fiber::Resume() { context_ = context::jump_fcontext(context_, this).fctx; }

void Fiber::Stop() { resumer_ = context::jump_fcontext(resumer_, nullptr).fctx; }

}  // namespace coconet
