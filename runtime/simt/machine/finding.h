#ifndef COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_
#define COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// A mistake of a kernel, or of who launched it.
enum class FindingKind : uint8_t {
  kRace,              // two accesses of the same bytes, one of them a write, that nothing orders
  kOutOfBounds,       // of every allocation
  kMisaligned,        // an access of several bytes not at a multiple of these
  kNeverWritten,      // a read of memory that nothing has written
  kDivergentBarrier,  // threads of a block at different barriers, or at one that others will not
                      // come to
  kBadShuffle,  // a warp whose threads name different masks, or masks with threads that are not
                // there
  kUnwrittenOutput,  // of a step
  kUnfinishedCopy,   // a thread that ended before its bulk copies
  kDeadlock,         // all threads wait for flags that nobody will set
  kNoRoom,           // the host has no memory for more threads
};
absl::string_view Name(FindingKind kind);

struct Finding {
  FindingKind kind{};
  std::string text;  // which kernel, line, rank, block, thread and buffer
};

/// "sync.h:33 < kernel.cc:12" of an address in a module's code: the line, and those that inlined
/// it. Asks addr2line, of the compiler's binutils; the address within the module where there is
/// none.
std::string SourceLine(const void* at);

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_FINDING_H_
