#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace coconet {

/// A point in what one agent does. An agent has a slot: a resident block, a stream or a host thread
/// has one each. Within a block the agent is a thread, or one of that thread's copies in flight. A
/// slot counts generations: a block begins one at each barrier. Within a generation, a thread's
/// tick advances with each release; the tick of a copy is its group. A copy in flight is ordered
/// with no other agent; when a thread awaits it, the thread's epoch replaces its own. The proxy
/// that an access was made by stays with it.
///
/// The method is FastTrack (Flanagan and Freund, PLDI 2009). Clocks count by slot and not by thread
/// because barriers order all threads of a block: this keeps clocks short.
class Epoch {
 public:
  static constexpr int kSlots = 1 << 12, kThreads = 1 << 10, kTicks = 1 << 10;

  Epoch() = default;
  Epoch(int slot, int thread, uint32_t generation, uint32_t tick, bool atomic = false,
        bool in_flight = false, bool async_proxy = false)
      : bits_((uint64_t{atomic} << 63) | (uint64_t(slot) << 51) | (uint64_t{in_flight} << 50) |
              (uint64_t(thread) << 40) | (uint64_t{async_proxy} << 39) |
              (uint64_t{generation} << 10) | tick) {}

  bool exists() const { return bits_ != 0; }
  bool atomic() const { return bits_ >> 63 != 0; }
  int slot() const { return static_cast<int>(bits_ >> 51) & (kSlots - 1); }
  /// The agent is a copy that its thread has not awaited.
  bool in_flight() const { return (bits_ >> 50 & 1) != 0; }
  /// The asynchronous proxy made the access.
  bool async_proxy() const { return (bits_ >> 39 & 1) != 0; }
  int thread() const { return static_cast<int>(bits_ >> 40) & (kThreads - 1); }
  uint32_t generation() const { return static_cast<uint32_t>(bits_ >> 10) & ((1u << 29) - 1); }
  /// The agent, as one number.
  uint64_t who() const { return bits_ << 1 >> 41; }
  /// Generation and tick, as one number.
  uint64_t when() const { return bits_ & ((uint64_t{1} << 39) - 1); }
  bool operator==(const Epoch&) const = default;

 private:
  uint64_t bits_ = 0;
};

/// A vector clock: for each slot the number of generations that happened before it, and for single
/// threads the last epoch that did.
class Clock {
 public:
  /// Whether `e` happened before this clock.
  bool Knows(Epoch e) const {
    if (e.in_flight()) return false;
    const auto slot = static_cast<size_t>(e.slot());
    return (slot < generations_.size() && generations_[slot] > e.generation()) ||
           (!released_.empty() && KnowsReleased(e));
  }
  void Join(const Clock& other);
  /// Adds the generations of the slot before `generation`.
  void JoinSlot(int slot, uint32_t generation);
  /// Adds what the thread of `e` did until then.
  void JoinReleased(Epoch e);

 private:
  bool KnowsReleased(Epoch e) const;

  std::vector<uint32_t> generations_;  // by slot
  std::vector<Epoch> released_;        // sorted by who(); none that generations_ covered then
};

/// What a release passes to the thread that acquires.
struct Released {
  std::shared_ptr<const Clock> clock;  // null: nothing was released
  Epoch by;
  explicit operator bool() const { return clock != nullptr; }
};

}  // namespace coconet
