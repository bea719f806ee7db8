#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/simt/memory/clock.h"
#include "runtime/simt/memory/shadow.h"

namespace coconet {

struct SimtThread;

/// A word that threads store with release, or spin on.
struct SyncWord {
  struct Waiter {
    SimtThread* thread;
    uint64_t ticket;  // SimtThread::ticket during the wait, which is over when the two differ
  };
  Released released;  // by the store of the value that the word holds
  std::vector<Waiter> waiters;
};

/// One allocation: memory of a device, or shared memory of a block.
class SimtBuffer {
 public:
  SimtBuffer(char* base, size_t bytes, int rank)
      : base_(base), bytes_(bytes), rank_(rank), shadow_(bytes) {}

  char* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  int rank() const { return rank_; }
  /// Whether the bytes lie within the buffer, and within one named part if there are any.
  bool Holds(const void* p, size_t bytes) const {
    const auto offset = static_cast<size_t>(static_cast<const char*>(p) - base_);
    if (offset >= bytes_ || bytes > bytes_ - offset) return false;
    if (parts_.empty()) return true;
    const Part* part = PartAt(offset);
    return part != nullptr && offset + bytes <= part->end;
  }
  size_t OffsetOf(const void* p) const {
    return static_cast<size_t>(static_cast<const char*>(p) - base_);
  }
  Shadow& shadow() { return shadow_; }
  /// The word at a multiple of 4, made on first use.
  SyncWord& WordAt(size_t offset);
  /// The word at a multiple of 4; null if WordAt has not made it.
  SyncWord* KnownWordAt(size_t offset) {
    const uint32_t index = words_at_ == nullptr ? 0 : words_at_[offset / 4];
    return index == 0 ? nullptr : &words_[index - 1];
  }
  /// "bytes [128, 144) of g on rank 1": counted from the last part that begins at or before
  /// `offset`.
  std::string Name(size_t offset, size_t bytes) const;
  /// The offset of the same byte in that part.
  size_t InPart(size_t offset) const {
    return PartAt(offset) == nullptr ? offset : offset - PartAt(offset)->begin;
  }
  /// ", which has 128 bytes": the size of that part, or of the buffer.
  std::string SizeAt(size_t offset) const;
  /// Names a part, and allows accesses to named parts only. A part that begins at the same offset
  /// is renamed and keeps the larger size; one that contains the new part stays as it is; others
  /// that overlap it, as temporaries of one plan or of several do, become one part with it.
  void NamePart(size_t offset, size_t bytes, const std::string& name);

 private:
  struct Part {
    size_t begin, end;
    std::string name;
  };
  /// The last part that begins at or before `offset`; null if there is none.
  const Part* PartAt(size_t offset) const {
    if (last_part_ < parts_.size() && parts_[last_part_].begin <= offset &&
        offset < parts_[last_part_].end)
      return &parts_[last_part_];
    return FindPart(offset);
  }
  const Part* FindPart(size_t offset) const;

  char* base_;
  size_t bytes_;
  int rank_;
  std::vector<Part> parts_;       // in order, disjoint
  mutable size_t last_part_ = 0;  // the one found last
  Shadow shadow_;
  std::unique_ptr<uint32_t[]> words_at_;  // by word: 1 + its index in words_; 0: none
  std::deque<SyncWord> words_;
};

/// The memory of all devices of a machine. Each buffer has whole chunks of addresses, with an
/// unused one behind it: so one look at a table finds the buffer of an address. Not thread-safe.
class SimtMemory {
 public:
  static absl::StatusOr<std::unique_ptr<SimtMemory>> Make();
  ~SimtMemory();
  /// What drivers promise for memory of a device.
  static constexpr size_t kDriversAlignment = 256;

  SimtMemory(const SimtMemory&) = delete;
  SimtMemory& operator=(const SimtMemory&) = delete;

  /// Uninitialised memory, aligned to a power of two and not better; null if there is no room.
  SimtBuffer* Allocate(size_t bytes, int rank, size_t alignment = kDriversAlignment);
  /// False if no buffer begins there.
  bool Free(void* base);

  /// The buffer in whose chunks `p` lies; null if there is none.
  SimtBuffer* Find(const void* p) const {
    const auto offset = static_cast<size_t>(static_cast<const char*>(p) - arena_);
    return offset < kBytes ? chunks_[offset >> kChunkShift] : nullptr;
  }
  /// The last allocated buffer that begins at or before `p`; null if there is none.
  SimtBuffer* Before(const void* p) const;

  /// Host memory that kernels may access, too.
  void Register(void* base, size_t bytes) { registered_[static_cast<char*>(base)] = bytes; }
  void Unregister(void* base) { registered_.erase(static_cast<char*>(base)); }
  bool IsRegistered(const void* p, size_t bytes) const;

 private:
  static constexpr size_t kBytes = size_t{1} << 38;
  static constexpr int kChunkShift = 16;
  static constexpr size_t kChunk = size_t{1} << kChunkShift;

  SimtMemory(char* arena, SimtBuffer** chunks) : arena_(arena), chunks_(chunks) {
    free_[0] = kBytes >> kChunkShift;
  }

  char* const arena_;
  SimtBuffer** const chunks_;
  std::map<size_t, size_t> free_;  // runs of free chunks: the first, and how many
  std::map<const char*, std::unique_ptr<SimtBuffer>> buffers_;
  std::map<const char*, size_t> registered_;
};

}  // namespace coconet
