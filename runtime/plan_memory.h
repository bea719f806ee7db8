#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace coconet {

/// The alignment of temporaries within their area.
inline constexpr int64_t kTemporaryAlignment = 256;

/// The places of a plan's temporaries on one rank. Temporaries that peers reach have an area of
/// their own. Two temporaries of an area overlap only if all steps that use one are done before any
/// step that uses the other begins, on whichever lanes these are. Temporaries of a step that
/// outlasts its run overlap none.
struct TemporaryPlaces {
  std::vector<int64_t> offsets;  // by buffer: bytes from the begin of its area; -1: no temporary
  // By Buffer::symmetric.
  std::array<int64_t, 2> bytes = {};  // of the area
  std::array<int64_t, 2> live = {};   // most at one time: no placement has a smaller area
  /// The first step during which most bytes of both areas are live; -1: there are no temporaries.
  int peak_step = -1;
  std::vector<int> at_peak = {};  // the buffers that live then
};

/// Places the largest first, each at the lowest place that is free while it lives. Near linear in
/// practice.
TemporaryPlaces PlaceTemporaries(const Plan& plan, int stage_rank);

/// Whether some of the plan's temporaries lie in the same memory, on rank 0 of a stage.
bool TemporariesOverlap(const Plan& plan);

/// The memory of a bound plan on a rank, in bytes.
struct PlanMemory {
  int64_t states = 0, inputs = 0, outputs = 0;
  int64_t temporaries = 0;  // areas
  int64_t live = 0;         // what these must have at least
  int64_t sync = 0;         // flags, counters and staged data
  int64_t Total() const { return states + inputs + outputs + temporaries + sync; }
  bool operator==(const PlanMemory&) const = default;
};

/// The memory of the rank of a stage that needs most.
PlanMemory MemoryOf(const Plan& plan);

/// "states 12 MiB, inputs 3.1 MiB, outputs 4 B, temporaries 1.2 MiB (lower bound 1.1 MiB)"
std::string Text(const PlanMemory& memory);
/// "512 B", "1.5 KiB", "12 MiB": three digits.
std::string BytesText(int64_t bytes);

}  // namespace coconet
