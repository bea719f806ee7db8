#include "runtime/node/forks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "coconet/base/descriptor.h"
#include "runtime/node/budget.h"

namespace coconet {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // bytes that are compared at once

struct SharedMapping {
  int64_t bytes = 0;
  bool is_copied = false;
  Descriptor copy;  // of the last fork
};

struct Forks {
  std::mutex mutex;  // held from before a fork until after it
  std::map<char*, SharedMapping> mappings;
};

/// Lives as long as the process: children may be forked while it ends.
Forks& TheForks() {
  static auto* forks = new Forks;
  return *forks;
}

bool IsCopyOf(const Descriptor& file, const char* begin, int64_t bytes) {
  std::vector<char> piece(std::min(kPiece, bytes));
  for (int64_t done = 0; done < bytes;) {
    const int64_t step = std::min(kPiece, bytes - done);
    if (pread(file.get(), piece.data(), step, done) != step) return false;
    if (std::memcmp(piece.data(), begin + done, step) != 0) return false;
    done += step;
  }
  return true;
}

/// A file of memory with these bytes; not open if there is none for it.
Descriptor CopyOf(const char* begin, int64_t bytes) {
  if (!CheckFits(1, bytes).ok()) return Descriptor();
  Descriptor file(memfd_create("coconet fork", MFD_CLOEXEC));
  const bool copied = file && WriteAll(file, {begin, static_cast<size_t>(bytes)});
  return copied ? std::move(file) : Descriptor();
}

void Prepare() {
  Forks& forks = TheForks();
  forks.mutex.lock();
  for (auto& [begin, mapping] : forks.mappings) {
    if (!mapping.is_copied) continue;
    if (mapping.copy && IsCopyOf(mapping.copy, begin, mapping.bytes)) continue;
    mapping.copy = CopyOf(begin, mapping.bytes);
    if (mapping.copy) {
      forks_internal::has_copies.store(true, std::memory_order_relaxed);
    } else {
      std::fprintf(stderr,
                   "coconet: fork: no memory for a copy of %lld bytes of weights or gradients, "
                   "which the child cannot use\n",
                   static_cast<long long>(mapping.bytes));
    }
  }
}

void InParent() { TheForks().mutex.unlock(); }

/// What is mapped now is the child's own, so its own children get it from the system.
void InChild() {
  Forks& forks = TheForks();
  for (auto& [begin, mapping] : forks.mappings) {
    if (!mapping.is_copied) continue;
    const bool is_mapped =
        mapping.copy && mmap(begin, mapping.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                             mapping.copy.get(), 0) != MAP_FAILED;
    if (!is_mapped) mprotect(begin, mapping.bytes, PROT_NONE);
  }
  forks.mappings.clear();
  forks_internal::has_copies.store(false, std::memory_order_relaxed);
  forks.mutex.unlock();
}

}  // namespace

std::atomic<bool> forks_internal::has_copies = false;

void forks_internal::DropCopies() {
  const std::lock_guard<std::mutex> lock(TheForks().mutex);
  for (auto& [begin, mapping] : TheForks().mappings) mapping.copy = Descriptor();
  has_copies.store(false, std::memory_order_relaxed);
}

void AddShared(void* begin, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(TheForks().mutex);
  TheForks().mappings[static_cast<char*>(begin)].bytes = bytes;
}

void RemoveShared(void* begin) {
  const std::lock_guard<std::mutex> lock(TheForks().mutex);
  TheForks().mappings.erase(static_cast<char*>(begin));
}

void CopyInChildren(const void* address) {
  static const int registered = pthread_atfork(Prepare, InParent, InChild);
  static_cast<void>(registered);
  const std::lock_guard<std::mutex> lock(TheForks().mutex);
  auto& mappings = TheForks().mappings;
  const char* const at = static_cast<const char*>(address);
  const auto found = std::find_if(mappings.begin(), mappings.end(), [&](const auto& place) {
    return place.first <= at && at < place.first + place.second.bytes;
  });
  if (found != mappings.end()) found->second.is_copied = true;
}

}  // namespace coconet
