#include "runtime/node/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coconet/base/status.h"
#include "runtime/node/budget.h"
#include "runtime/node/forks.h"

namespace coconet {
namespace {

// Bytes populated between two checks of the available memory. Several ranks that populate at once
// overshoot by a few steps, which the reserve of AvailableBytes covers.
constexpr int64_t kPopulateStep = int64_t{64} << 20;

// MADV_COLLAPSE of Linux 6.1; glibc 2.36 lacks the name.
constexpr int kCollapse = 25;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

absl::Status Exhausted(absl::string_view call, int64_t bytes, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Allocate: ", call, " of ", SizeText(bytes), ": ", strerror(error)));
}

/// Maps `bytes` at a multiple of 2 MiB: reserves that much more address space, then
/// unmaps both ends.
void* MapAligned(int64_t bytes, int flags, int fd) {
  void* reserved = mmap(nullptr, bytes + kHugePage, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  char* begin = static_cast<char*>(reserved);
  char* aligned = reinterpret_cast<char*>(RoundUp(reinterpret_cast<intptr_t>(begin), kHugePage));
  if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, bytes + kHugePage);
    errno = error;
    return MAP_FAILED;
  }
  if (aligned > begin) munmap(begin, aligned - begin);
  if (const int64_t rest = begin + kHugePage - aligned; rest > 0) munmap(aligned + bytes, rest);
  return aligned;
}

/// Asks for huge pages whatever the system's defaults (for shared memory often "never"; Linux 6.1).
/// The kernel collapses the pages around one present page. Best effort.
void MakeHuge(char* begin, int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t i = 0; i + kHugePage <= bytes; i += kHugePage)
    madvise(begin + i, page, MADV_POPULATE_WRITE);
  madvise(begin, bytes, kCollapse);
}

/// For kernels before 5.14, which cannot populate on request: writes to each page.
void Touch(char* begin, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += sysconf(_SC_PAGESIZE))
    *static_cast<volatile char*>(begin + i) = 0;
}

}  // namespace

int64_t Region::Rounded(int64_t bytes) {
  return RoundUp(std::max<int64_t>(bytes, 1),
                 bytes >= kHugePage ? kHugePage : sysconf(_SC_PAGESIZE));
}

absl::StatusOr<std::shared_ptr<Region>> Region::Map(int64_t bytes, int fd) {
  const int64_t rounded = Rounded(bytes);
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* base = bytes >= kHugePage ? MapAligned(rounded, flags, fd)
                                  : mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (base == MAP_FAILED) return Exhausted("mmap", rounded, errno);
  if (bytes >= kHugePage) madvise(base, rounded, MADV_HUGEPAGE);
  if (fd >= 0) AddShared(base, rounded);
  return std::shared_ptr<Region>(new Region(base, rounded));
}

Region::~Region() {
  RemoveShared(base_);
  munmap(base_, bytes_);
}

absl::Status Region::Populate(int64_t begin, int64_t bytes) {
  char* part = static_cast<char*>(base_) + begin;
  for (int64_t done = 0; done < bytes; done += kPopulateStep) {
    const int64_t step = std::min(kPopulateStep, bytes - done);
    RETURN_IF_ERROR(CheckFits(1, step));
    if (bytes >= kHugePage) MakeHuge(part + done, step);
    if (madvise(part + done, step, MADV_POPULATE_WRITE) == 0) continue;
    if (errno != EINVAL) return Exhausted("populating", bytes, errno);
    Touch(part + done, step);
  }
  return absl::OkStatus();
}

void Region::Prefault(int64_t begin, int64_t bytes) {
  madvise(static_cast<char*>(base_) + begin, bytes, MADV_POPULATE_WRITE);
}

HostMemory::HostMemory(int rank, int64_t bytes, bool symmetric,
                       std::vector<std::shared_ptr<Region>> regions)
    : Memory(rank, bytes, symmetric, std::vector<void*>(regions.size())),
      regions_(std::move(regions)) {
  for (size_t i = 0; i < regions_.size(); ++i)
    peers_[i] = regions_[i] == nullptr ? nullptr : regions_[i]->base();
}

}  // namespace coconet
