#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/simt/memory/shadow.h"
#include "runtime/simt/threads/block.h"

namespace coconet {

/// A mistake of a kernel or of its launch.
enum class FindingKind : uint8_t {
  kRace,               // two accesses of the same bytes, one of them a write, that nothing orders
  kOutOfBounds,        // an access outside all allocations
  kMisaligned,         // an access of n bytes not at a multiple of n
  kNeverWritten,       // a read of uninitialised memory
  kDivergentBarrier,   // threads of a block at different barriers, or one that some do not reach
  kBadShuffle,         // masks of a warp that differ, or that name absent threads
  kUnwrittenOutput,    // a step left part of its output uninitialised
  kUnfinishedCopy,     // a thread ended before it awaited its copies
  kBadBarrier,         // an mbarrier that was not initialised, or counts that it cannot hold
  kDivergentGroup,     // threads of a warp or warp group at different instructions
  kBadProduct,         // a product without a fence, of wrong operands, or whose sums are used early
  kUnfinishedProduct,  // a thread ended before it awaited its products
  kBadRegisters,       // counts of registers that a warp group cannot have
  kBadMap,    // a load of a box by bytes that are no tensor map, or of one that it cannot load
  kDeadlock,  // all threads wait for flags that no thread will set
  kNoRoom,    // the host has no memory for more threads
};
absl::string_view Name(FindingKind kind);

struct Finding {
  FindingKind kind{};
  std::string text;  // kernel, line, rank, block, thread and buffer
};

/// "sync.h:33 < kernel.cc:12": the source line of an address in a module's code, and the lines that
/// inlined it. Runs addr2line (binutils); without it returns the address within the module.
std::string SourceLine(const void* at);

/// Keeps the first mistake, which ends the machine, and names threads and places in reports.
class Reporter {
 public:
  explicit Reporter(const SlotTable& slots) : slots_(slots) {}

  const std::optional<Finding>& finding() const { return finding_; }
  /// Does nothing if there is a finding already.
  void Report(FindingKind kind, std::string text);
  /// Reports a mistake of the running thread, and ends the thread.
  [[noreturn]] void ReportAndAbandon(SimtThread& thread, FindingKind kind, std::string text);

  /// Notes that the accesses at this place in the code are those of products.
  void NoteProduct(const void* at) { products_.insert(at); }
  /// The source line of an address in the code of a module.
  const std::string& LineOf(const void* at) const;
  /// Whether two addresses are of one source line: a compiler may duplicate code.
  bool IsSameLine(const void* a, const void* b) const { return a == b || LineOf(a) == LineOf(b); }
  /// "kernel (line) on rank 0 block 1 thread 2".
  std::string NameOf(const SimtThread& thread, const void* at) const;
  /// The agent of a past access at `at`; null: of the host.
  std::string NameOf(Epoch epoch, const void* at) const;

 private:
  const SlotTable& slots_;
  std::optional<Finding> finding_;
  std::set<const void*> products_;
  mutable std::map<const void*, std::string> lines_;  // by address
};

}  // namespace coconet
