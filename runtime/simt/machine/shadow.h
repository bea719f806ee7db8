#ifndef COCONET_RUNTIME_SIMT_MACHINE_SHADOW_H_
#define COCONET_RUNTIME_SIMT_MACHINE_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/simt/machine/clock.h"

namespace coconet {

/// Who accesses memory, and what it knows.
struct Agent {
  int slot = 0, thread = 0;
  uint32_t first = 0;       // generation in which it took the slot
  uint32_t generation = 0;  // that it is in: it knows the block's earlier ones
  uint32_t tick = 0;
  const Clock* clock = nullptr;
  bool goes_on = false;  // it is a copy of that thread's, of group `tick`

  Epoch Now(bool atomic = false) const {
    return Epoch(slot, thread, generation, tick, atomic, goes_on);
  }
  bool Knows(Epoch e) const {
    if (e.slot() == kBirth) return true;
    if (e.goes_on()) return false;
    if (e.slot() == slot && e.generation() >= first &&
        (e.generation() < generation || e.thread() == thread))
      return true;
    return clock->Knows(e);
  }
  /// The slot of nobody: of zeros that memory is born with, which everybody knows.
  static constexpr int kBirth = 0;
};

/// The last accesses of each part of some memory: the write, and reads since then, where in the
/// code they were.
class Shadow {
 public:
  struct Access {
    Epoch epoch;
    const void* at = nullptr;
  };
  enum class Verdict : uint8_t { kFine, kNeverWritten, kRace };
  struct Found {
    Verdict verdict = Verdict::kFine;
    Access earlier = {};  // kRace: what it is not ordered with
    bool earlier_writes = false;
    size_t offset = 0;
  };

  explicit Shadow(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Notes an access of [offset, offset + bytes), or says what is wrong with it.
  Found Note(const Agent& agent, size_t offset, size_t bytes, bool writes, bool atomic,
             const void* at);
  /// What a copy that has been awaited read, or wrote, there was done `now`.
  void Land(Epoch copy, Epoch now, size_t offset, size_t bytes);
  /// The last writes of [offset, offset + bytes): the first of which is_looked_for(epoch), or none.
  template <class F>
  Access FindWrite(size_t offset, size_t bytes, F&& is_looked_for) const {
    for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i) {
      if (cells_[i].writer.exists() && is_looked_for(cells_[i].writer))
        return {cells_[i].writer, cells_[i].at[0]};
    }
    return {};
  }
  /// All of it was written before anybody came.
  void Bear();
  /// Nothing was written.
  void Forget();
  /// Nothing of that was; but who writes it comes behind those who have read or written it, as if
  /// somebody had written it now.
  void Forget(size_t offset, size_t bytes);
  /// The first byte of those that nobody has written; nullopt: somebody has all.
  std::optional<size_t> FirstUnwritten(size_t offset, size_t bytes);
  /// The last write of the byte; none where it is forgotten.
  Access WriteOf(size_t offset) const {
    const Cell& cell = cells_[offset >> shift_];
    return IsWritten(cell) ? Access{cell.writer, cell.at[0]} : Access{};
  }

 private:
  static constexpr int kReaders = 3;
  /// One cache line.
  struct Cell {
    Epoch writer, readers[kReaders];
    const void* at[1 + kReaders];
  };
  static bool IsWritten(const Cell& cell) {
    return cell.writer.exists() && cell.at[0] != &kForgotten;
  }
  static constexpr char kForgotten = 0;  // where the write of a cell was, which is forgotten
  Found NoteRead(Cell& cell, const Agent& agent, bool atomic, const void* at);
  Found NoteWrite(Cell& cell, const Agent& agent, bool atomic, const void* at);
  /// Cells that are as small as that range asks for.
  void RefineFor(size_t offset, size_t bytes);
  /// Cells of so many bytes from now on: what was known of a cell is known of all its parts.
  void Refine(int shift);
  static Cell* Map(size_t cells);

  size_t bytes_;
  int shift_ = 4;  // log2 of the bytes of a cell, as large as accesses allow
  Cell* cells_;
  unsigned evicted_ = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_SHADOW_H_
