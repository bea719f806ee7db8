#ifndef COCONET_RUNTIME_SIMT_MEMORY_SLOTS_H_
#define COCONET_RUNTIME_SIMT_MEMORY_SLOTS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/simt/memory/clock.h"
#include "runtime/simt/memory/shadow.h"

namespace coconet {

/// Assigns the slots of epochs to resident blocks, streams and host threads, and remembers the
/// names of the last owners of each. Slot 0 belongs to nobody (Agent::kInitialSlot).
class SlotTable {
 public:
  bool has_free() const { return !free_.empty() || slots_.size() < Epoch::kSlots; }
  /// Requires has_free(). The agent is that of thread 0 and has no clock yet.
  Agent Take(const std::string& owner);
  /// Frees the slot. Its next owner begins in the generation behind the agent's.
  void Give(const Agent& agent);
  /// Who owned the slot in that epoch; "somebody" where too many owners came since.
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

#endif  // COCONET_RUNTIME_SIMT_MEMORY_SLOTS_H_
