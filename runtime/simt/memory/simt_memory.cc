#include "runtime/simt/memory/simt_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {

SyncWord& SimtBuffer::WordAt(size_t offset) {
  if (words_at_ == nullptr) words_at_ = std::make_unique<uint32_t[]>(bytes_ / 4 + 1);
  uint32_t& index = words_at_[offset / 4];
  if (index == 0) {
    words_.emplace_back();
    index = static_cast<uint32_t>(words_.size());
  }
  return words_[index - 1];
}

std::string SimtBuffer::Name(size_t offset, size_t bytes) const {
  const Part* part = PartAt(offset);
  offset = InPart(offset);
  const std::string name =
      part != nullptr ? part->name : absl::StrCat("a buffer of ", bytes_, " bytes");
  return absl::StrCat("bytes [", offset, ", ", offset + bytes, ") of ", name, " on rank ", rank_);
}

std::string SimtBuffer::SizeAt(size_t offset) const {
  const Part* part = PartAt(offset);
  if (part == nullptr && !parts_.empty())
    return absl::StrCat(", which nobody uses before ", parts_[0].begin);
  return absl::StrCat(", which has ", part != nullptr ? part->end - part->begin : bytes_, " bytes");
}

const SimtBuffer::Part* SimtBuffer::FindPart(size_t offset) const {
  const auto is_before = [](size_t at, const Part& part) { return at < part.begin; };
  const auto behind = std::upper_bound(parts_.begin(), parts_.end(), offset, is_before);
  if (behind == parts_.begin()) return nullptr;
  last_part_ = static_cast<size_t>(behind - parts_.begin()) - 1;
  return &parts_[last_part_];
}

void SimtBuffer::NamePart(size_t offset, size_t bytes, const std::string& name) {
  Part named{offset, offset + bytes, name};
  for (const Part& part : parts_) {
    if (part.begin < offset && part.end >= named.end) return;
  }
  // Parts are disjoint and in order: one pass finds all that overlap the part as it grows.
  bool joins = false;
  for (const Part& part : parts_) {
    const bool overlaps = part.begin < named.end && named.begin < part.end;
    if (!overlaps && part.begin != offset) continue;
    joins = joins || part.begin != offset;
    named.begin = std::min(named.begin, part.begin);
    named.end = std::max(named.end, part.end);
  }
  if (joins) absl::StrAppend(&named.name, " and others");
  const auto gives_way = [&](const Part& part) {
    return part.begin >= named.begin && part.end <= named.end;
  };
  parts_.erase(std::remove_if(parts_.begin(), parts_.end(), gives_way), parts_.end());
  const auto is_behind = [&](const Part& part) { return part.begin > named.begin; };
  parts_.insert(std::find_if(parts_.begin(), parts_.end(), is_behind), named);
}

absl::StatusOr<std::unique_ptr<SimtMemory>> SimtMemory::Make() {
  constexpr int kLazily = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* arena = mmap(nullptr, kBytes, PROT_NONE, kLazily, -1, 0);
  void* chunks = mmap(nullptr, (kBytes >> kChunkShift) * sizeof(SimtBuffer*),
                      PROT_READ | PROT_WRITE, kLazily, -1, 0);
  if (arena == MAP_FAILED || chunks == MAP_FAILED) {
    if (arena != MAP_FAILED) munmap(arena, kBytes);
    return absl::ResourceExhaustedError(
        absl::StrCat("simulated GPUs: want ", kBytes >> 30,
                     " GiB of addresses; raise the limit of virtual memory (ulimit -v)"));
  }
  return std::unique_ptr<SimtMemory>(
      new SimtMemory(static_cast<char*>(arena), static_cast<SimtBuffer**>(chunks)));
}

SimtMemory::~SimtMemory() {
  munmap(arena_, kBytes);
  munmap(chunks_, (kBytes >> kChunkShift) * sizeof(SimtBuffer*));
}

SimtBuffer* SimtMemory::Allocate(size_t bytes, int rank, size_t alignment) {
  if (bytes > kBytes / 2 || alignment >= kChunk) return nullptr;
  const size_t lead = alignment;  // where the buffer begins in its first chunk
  const size_t used = (lead + bytes + kChunk - 1) >> kChunkShift,
               want = used + 1;  // the last one stays unused
  auto hole = free_.begin();
  while (hole != free_.end() && hole->second < want) ++hole;
  if (hole == free_.end()) return nullptr;
  const size_t first = hole->first, left = hole->second - want;
  char* const at = arena_ + (first << kChunkShift);
  if (mprotect(at, used << kChunkShift, PROT_READ | PROT_WRITE) != 0) return nullptr;
  free_.erase(hole);
  if (left > 0) free_[first + want] = left;
  auto buffer = std::make_unique<SimtBuffer>(at + lead, bytes, rank);
  for (size_t i = 0; i < used; ++i) chunks_[first + i] = buffer.get();
  return (buffers_[at + lead] = std::move(buffer)).get();
}

bool SimtMemory::Free(void* base) {
  const auto found = buffers_.find(static_cast<char*>(base));
  if (found == buffers_.end()) return false;
  const size_t lead = static_cast<size_t>(static_cast<char*>(base) - arena_) % kChunk;
  const size_t used = (lead + found->second->bytes() + kChunk - 1) >> kChunkShift;
  char* const at = static_cast<char*>(base) - lead;
  mmap(at, used << kChunkShift, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  const size_t first = static_cast<size_t>(at - arena_) >> kChunkShift;
  for (size_t i = 0; i < used; ++i) chunks_[first + i] = nullptr;
  buffers_.erase(found);
  auto hole = free_.emplace(first, used + 1).first;
  if (const auto next = std::next(hole);
      next != free_.end() && next->first == hole->first + hole->second) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole != free_.begin()) {
    if (const auto before = std::prev(hole); before->first + before->second == hole->first) {
      before->second += hole->second;
      free_.erase(hole);
    }
  }
  return true;
}

SimtBuffer* SimtMemory::Before(const void* p) const {
  const auto behind = buffers_.upper_bound(static_cast<const char*>(p));
  return behind == buffers_.begin() ? nullptr : std::prev(behind)->second.get();
}

bool SimtMemory::IsRegistered(const void* p, size_t bytes) const {
  const auto behind = registered_.upper_bound(static_cast<const char*>(p));
  if (behind == registered_.begin()) return false;
  const auto at = std::prev(behind);
  return static_cast<const char*>(p) + bytes <= at->first + at->second;
}

}  // namespace coconet
