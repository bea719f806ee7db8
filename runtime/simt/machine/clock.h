#ifndef COCONET_RUNTIME_SIMT_MACHINE_CLOCK_H_
#define COCONET_RUNTIME_SIMT_MACHINE_CLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace coconet {

/// When something happened, as the one who did it counts. Who that is: a slot, which a block has
/// while it runs, a stream, or a thread of the host; and of a block, which thread, or its copies
/// that go on, which nobody knows of before they have been awaited, and are then the thread's. They
/// count generations, a block's from barrier to barrier, and in one of these each thread ticks when
/// it releases; a copy's tick is its group. Source of the method: Flanagan and Freund, "FastTrack",
/// PLDI 2009; slots in place of threads keep clocks short, as barriers order all threads of a
/// block.
class Epoch {
 public:
  static constexpr int kSlots = 1 << 12, kThreads = 1 << 10, kTicks = 1 << 11;

  Epoch() = default;
  Epoch(int slot, int thread, uint32_t generation, uint32_t tick, bool atomic = false,
        bool goes_on = false)
      : bits_((uint64_t{atomic} << 63) | (uint64_t(slot) << 51) | (uint64_t{goes_on} << 50) |
              (uint64_t(thread) << 40) | (uint64_t{generation} << 11) | tick) {}

  bool exists() const { return bits_ != 0; }
  bool atomic() const { return bits_ >> 63 != 0; }
  int slot() const { return static_cast<int>(bits_ >> 51) & (kSlots - 1); }
  /// A copy that nobody has awaited.
  bool goes_on() const { return (bits_ >> 50 & 1) != 0; }
  int thread() const { return static_cast<int>(bits_ >> 40) & (kThreads - 1); }
  uint32_t generation() const { return static_cast<uint32_t>(bits_ >> 11) & ((1u << 29) - 1); }
  /// Slot and thread, as one number; and what they count.
  uint64_t who() const { return bits_ << 1 >> 41; }
  uint64_t when() const { return bits_ & ((uint64_t{1} << 40) - 1); }
  bool operator==(const Epoch&) const = default;

 private:
  uint64_t bits_ = 0;
};

/// What somebody knows to have happened: of each slot all generations before one, and of some
/// threads what they did until they released.
class Clock {
 public:
  bool Knows(Epoch e) const {
    if (e.goes_on()) return false;
    const auto slot = static_cast<size_t>(e.slot());
    return (slot < generations_.size() && generations_[slot] > e.generation()) ||
           (!released_.empty() && KnowsReleased(e));
  }
  void Join(const Clock& other);
  /// Everything of the slot before that generation.
  void JoinSlot(int slot, uint32_t generation);
  /// Everything that one thread did until then.
  void JoinReleased(Epoch e);

 private:
  bool KnowsReleased(Epoch e) const;

  std::vector<uint32_t> generations_;  // by slot
  std::vector<Epoch> released_;        // by who(); none that generations_ covers when it was put in
};

/// What a release hands on to who acquires.
struct Released {
  std::shared_ptr<const Clock> clock;  // null: nothing
  Epoch by;
  explicit operator bool() const { return clock != nullptr; }
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_CLOCK_H_
