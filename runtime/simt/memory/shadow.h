#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/simt/memory/clock.h"

namespace coconet {

/// A thread of a block, a stream or a host thread that accesses memory: its place in its slot, and
/// its vector clock.
struct Agent {
  int slot = 0, thread = 0;
  uint32_t first = 0;       // the generation in which its block, stream or host took the slot
  uint32_t generation = 0;  // the current one: the block's earlier ones happened before it
  uint32_t tick = 0;
  const Clock* clock = nullptr;
  bool in_flight = false;    // the agent is a copy of the thread's, in group `tick`
  bool async_proxy = false;  // it accesses memory by the asynchronous proxy

  Epoch Now(bool atomic = false) const {
    return Epoch(slot, thread, generation, tick, atomic, in_flight, async_proxy);
  }
  /// Whether `e` happened before what the agent does now.
  bool Knows(Epoch e) const {
    if (e.slot() == kInitialSlot) return true;
    if (e.in_flight()) return false;
    if (e.slot() == slot && e.generation() >= first &&
        (e.generation() < generation || e.thread() == thread))
      return true;
    return clock->Knows(e);
  }
  /// The slot without an owner. Its epochs are those of initial zeros, which happened before all
  /// accesses.
  static constexpr int kInitialSlot = 0;
};

/// Shadow cells of one buffer: for each cell the epochs of the last write and of reads since then,
/// and where in the code they were. Cells have the size of the smallest access so far.
class Shadow {
 public:
  struct Access {
    Epoch epoch;
    const void* at = nullptr;
  };
  enum class Verdict : uint8_t { kFine, kNeverWritten, kRace };
  struct Found {
    Verdict verdict = Verdict::kFine;
    Access earlier = {};  // kRace: the access that it is not ordered with
    bool earlier_writes = false;
    size_t offset = 0;  // of the first bad cell
  };

  explicit Shadow(size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Checks an access of [offset, offset + bytes) and notes it up to the first bad cell.
  Found Note(const Agent& agent, size_t offset, size_t bytes, bool writes, bool atomic,
             const void* at);
  /// Replaces the epoch of a copy that its thread has awaited by the thread's, `now`.
  void EndCopy(Epoch copy, Epoch now, size_t offset, size_t bytes);
  /// The first of the last writes of [offset, offset + bytes), and if `reads` of the reads since
  /// then, for which matches(epoch); none if there is no such access.
  template <class F>
  Access FindAccess(size_t offset, size_t bytes, bool reads, F&& matches) const {
    for (size_t i = offset >> shift_; i << shift_ < offset + bytes; ++i) {
      const Cell& cell = cells_[i];
      if (cell.writer.exists() && matches(cell.writer)) return {cell.writer, cell.at[0]};
      for (int k = 0; reads && k < kReaders; ++k) {
        if (cell.readers[k].exists() && matches(cell.readers[k]))
          return {cell.readers[k], cell.at[1 + k]};
      }
    }
    return {};
  }
  /// Marks all bytes as written before everything else.
  void Initialize();
  /// Drops all that was noted: no byte is initialised.
  void Reset();
  /// Marks the bytes as uninitialised. Their next write must still be ordered behind the accesses
  /// so far.
  void MarkUninitialized(size_t offset, size_t bytes);
  /// The offset of the first uninitialised byte; nullopt if all are initialised.
  std::optional<size_t> FirstUnwritten(size_t offset, size_t bytes);
  /// The last write of the byte; none if it is uninitialised.
  Access WriteOf(size_t offset) const {
    const Cell& cell = cells_[offset >> shift_];
    return IsWritten(cell) ? Access{cell.writer, cell.at[0]} : Access{};
  }

 private:
  static constexpr int kReaders = 3;
  /// One cache line.
  struct Cell {
    Epoch writer, readers[kReaders];
    const void* at[1 + kReaders];  // in the code: of the write, and of each read
  };
  static bool IsWritten(const Cell& cell) {
    return cell.writer.exists() && cell.at[0] != &kUninitialized;
  }
  static constexpr char kUninitialized = 0;  // Cell::at[0] after MarkUninitialized
  Found NoteRead(Cell& cell, const Agent& agent, bool atomic, const void* at);
  Found NoteWrite(Cell& cell, const Agent& agent, bool atomic, const void* at);
  /// Makes cells so small that the range consists of whole ones.
  void RefineFor(size_t offset, size_t bytes);
  /// Splits each cell into cells of 2^shift bytes with the same contents.
  void Refine(int shift);
  static Cell* Map(size_t cells);

  size_t bytes_;
  int shift_ = 4;  // log2 of a cell's bytes; 16 is the largest access of a thread
  Cell* cells_;
  unsigned evicted_ = 0;  // reads that found no place in their cell
};

/// Assigns the slots of epochs to resident blocks, streams and host threads, and remembers the
/// names of the last owners of each. Slot 0 has no owner (Agent::kInitialSlot).
class SlotTable {
 public:
  bool has_free() const { return !free_.empty() || slots_.size() < Epoch::kSlots; }
  /// Requires has_free(). The agent is that of thread 0 and has no clock yet.
  Agent Take(const std::string& owner);
  /// Frees the slot. Its next owner begins in the generation behind the agent's.
  void Give(const Agent& agent);
  /// The name of the slot's owner in that epoch, or words that say that it is no longer kept.
  std::string OwnerOf(Epoch epoch) const;

 private:
  struct Owner {
    uint32_t first;  // generation
    std::string name;
  };
  struct Slot {
    uint32_t generation = 1;
    std::deque<Owner> owners;  // the last ones, oldest first
  };

  std::vector<Slot> slots_ = std::vector<Slot>(1);
  std::vector<int> free_;
};

}  // namespace coconet
