#include "bench/baselines/array.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace coconet::bench {
namespace {

constexpr int64_t kPage = 4096, kHugePage = int64_t{2} << 20;

int64_t RoundUp(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

absl::StatusOr<Array> Array::Allocate(int64_t bytes) {
  const int64_t align = bytes >= kHugePage ? kHugePage : kPage;
  const int64_t mapped = RoundUp(bytes, align) + align;
  void* const memory =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("allocate ", bytes, " bytes: ", std::strerror(errno)));
  }
  // Unmaps what lies before and after the aligned part.
  char* const begin = static_cast<char*>(memory);
  Array array;
  array.bytes_ = mapped - align;
  array.base_ = reinterpret_cast<void*>(RoundUp(reinterpret_cast<intptr_t>(begin), align));
  char* const base = array.as<char>();
  if (base > begin) munmap(begin, base - begin);
  if (begin + mapped > base + array.bytes_)
    munmap(base + array.bytes_, begin + mapped - (base + array.bytes_));
  if (align == kHugePage) madvise(base, array.bytes_, MADV_HUGEPAGE);
  std::memset(base, 0, array.bytes_);
  return array;
}

Array::~Array() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace coconet::bench
