#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/machine_code/listing.h"
#include "bench/machine_code/loops.h"

namespace coconet::bench {

/// What a loop goes over, by the lines of source of its accesses to global memory.
enum class LoopKind {
  kPacks,   // packs of several elements: through a line that calls a body with Lanes<V>
  kSingle,  // elements one by one: through Lanes<1>{} only
  kOther,   // flags, rows, indices: through neither
};
absl::string_view Name(LoopKind kind);

/// Accesses by their opcode and the place in the source that they come from, "LoadLanesAnywhere <
/// Load < LoadBroadcast: const auto v1 = ...".
using PlacedAccesses = std::map<std::pair<std::string, std::string>, int>;

/// What runs in a turn of a loop, without loops inside it.
struct LoopFacts {
  LoopKind kind = LoopKind::kOther;
  uint32_t address = 0;  // of its first instruction
  std::string source;    // the kernel's line that its accesses come from, of packs the loop itself
  bool has_inner = false;
  int elements = 0;                          // that a turn handles, of loops over packs
  int instructions = 0;                      // in its text, rare parts included
  int main = 0;                              // on the main path (loops.h)
  int calls = 0, branches = 0, special = 0;  // in its text; special: MUFU, and FCHK of divisions
  std::map<std::string, int> accesses;       // to global memory, by opcode
  int local = 0;                             // accesses to local memory: spills
  int drains = 0, publishes = 0;             // IsDrain, IsPublish
  bool copies_in_bulk = false;               // in the loop, or in loops inside it
  bool loads_in_bulk = false;                // the same, from global to shared memory
  InFlight in_flight;
  PlacedAccesses narrow;  // accesses to global memory under kNarrowBytes
};

/// The loops that access global memory, spill or drain, in the order of their addresses.
/// `texts` has the device's headers and, as kernel.cc, what was compiled; `kernel` is the kernel's
/// own text.
std::vector<LoopFacts> FactsOf(const MachineFunction& function, const SourceTexts& texts,
                               absl::string_view kernel);

}  // namespace coconet::bench
