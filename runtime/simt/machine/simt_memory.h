#ifndef COCONET_RUNTIME_SIMT_MACHINE_SIMT_MEMORY_H_
#define COCONET_RUNTIME_SIMT_MACHINE_SIMT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/simt/machine/clock.h"
#include "runtime/simt/machine/shadow.h"

namespace coconet {

struct SimtThread;

/// A word by which threads tell each other something.
struct SyncWord {
  struct Waiter {
    SimtThread* thread;
    uint64_t ticket;  // of the wait; it is over when the thread has another
  };
  Released released;  // with the value that the word holds
  std::vector<Waiter> waiters;
};

/// Memory of one device, or shared memory of one block.
class SimtBuffer {
 public:
  SimtBuffer(char* base, size_t bytes, int rank)
      : base_(base), bytes_(bytes), rank_(rank), shadow_(bytes) {}

  char* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  int rank() const { return rank_; }
  /// Where parts of it have names: in one of them.
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
  /// Of the word at a multiple of 4.
  SyncWord& WordAt(size_t offset);
  /// Null where nobody asked for it.
  SyncWord* KnownWordAt(size_t offset) {
    const uint32_t index = words_at_ == nullptr ? 0 : words_at_[offset / 4];
    return index == 0 ? nullptr : &words_[index - 1];
  }
  /// "bytes [128, 144) of g on rank 1", of the part that begins there, or last before.
  std::string Name(size_t offset, size_t bytes) const;
  /// Of a byte of the buffer: which of that part.
  size_t InPart(size_t offset) const {
    return PartAt(offset) == nullptr ? offset : offset - PartAt(offset)->begin;
  }
  /// ", which has 128 bytes": that part, or all of it.
  std::string SizeAt(size_t offset) const;
  /// What of it is used, by name. Whoever names some of what has a name already names it anew:
  /// nothing is taken away from what begins there, or holds it.
  void NamePart(size_t offset, size_t bytes, const std::string& name);

 private:
  struct Part {
    size_t begin, end;
    std::string name;
  };
  /// The last that begins there or before; null: none does.
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
  std::vector<Part> parts_;  // in order, apart from each other
  mutable size_t last_part_ = 0;
  Shadow shadow_;
  std::unique_ptr<uint32_t[]> words_at_;  // by word; 0: none
  std::deque<SyncWord> words_;
};

/// The memory of all devices of a machine, each buffer in whole chunks of addresses, with such as
/// nobody has between them: so whose an address is takes one look at a table. Not thread-safe.
class SimtMemory {
 public:
  static absl::StatusOr<std::unique_ptr<SimtMemory>> Make();
  ~SimtMemory();
  SimtMemory(const SimtMemory&) = delete;
  SimtMemory& operator=(const SimtMemory&) = delete;

  /// Null where there is no room.
  SimtBuffer* Allocate(size_t bytes, int rank);
  /// False where no buffer begins there.
  bool Free(void* base);

  /// The buffer in whose chunks `p` lies.
  SimtBuffer* Find(const void* p) const {
    const auto offset = static_cast<size_t>(static_cast<const char*>(p) - arena_);
    return offset < kBytes ? chunks_[offset >> kChunkShift] : nullptr;
  }
  /// The last buffer that begins before `p`, and is still there; null: none.
  SimtBuffer* Before(const void* p) const;

  /// Memory of the host's that kernels reach too.
  void Register(void* base, size_t bytes) { registered_[static_cast<char*>(base)] = bytes; }
  void Unregister(void* base) { registered_.erase(static_cast<char*>(base)); }
  bool IsRegistered(const void* p, size_t bytes) const;

 private:
  static constexpr size_t kBytes = size_t{1} << 38;
  static constexpr int kChunkShift = 16;
  static constexpr size_t kChunk = size_t{1} << kChunkShift;
  /// Where a buffer begins in its first chunk: as aligned as a driver promises, and not more.
  static constexpr size_t kLead = 256;

  SimtMemory(char* arena, SimtBuffer** chunks) : arena_(arena), chunks_(chunks) {
    free_[0] = kBytes >> kChunkShift;
  }

  char* const arena_;
  SimtBuffer** const chunks_;
  std::map<size_t, size_t> free_;  // chunks, by the first
  std::map<const char*, std::unique_ptr<SimtBuffer>> buffers_;
  std::map<const char*, size_t> registered_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_SIMT_MEMORY_H_
