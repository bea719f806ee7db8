#ifndef COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_
#define COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// A mistake of a kernel or of its launch.
enum class FindingKind : uint8_t {
  kRace,              // two accesses of the same bytes, one of them a write, that nothing orders
  kOutOfBounds,       // an access outside all allocations
  kMisaligned,        // an access of n bytes not at a multiple of n
  kNeverWritten,      // a read of uninitialised memory
  kDivergentBarrier,  // threads of a block at different barriers, or one that some do not reach
  kBadShuffle,        // masks of a warp that differ, or that name absent threads
  kUnwrittenOutput,   // a step left part of its output uninitialised
  kUnfinishedCopy,    // a thread ended before it awaited its copies
  kDeadlock,          // all threads wait for flags that no thread will set
  kNoRoom,            // the host has no memory for more threads
};
absl::string_view Name(FindingKind kind);

struct Finding {
  FindingKind kind{};
  std::string text;  // kernel, line, rank, block, thread and buffer
};

/// "sync.h:33 < kernel.cc:12": the source line of an address in a module's code, and the lines that
/// inlined it. Runs addr2line (binutils); without it returns the address within the module.
std::string SourceLine(const void* at);

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_
