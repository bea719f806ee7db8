#ifndef COCONET_RUNTIME_SIMT_MACHINE_REPORTER_H_
#define COCONET_RUNTIME_SIMT_MACHINE_REPORTER_H_

#include <map>
#include <optional>
#include <string>

#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/finding.h"
#include "runtime/simt/memory/slots.h"

namespace coconet {

/// Keeps the first mistake, which ends the machine, and names threads and places in reports.
class Reporter {
 public:
  explicit Reporter(const SlotTable& slots) : slots_(slots) {}

  const std::optional<Finding>& finding() const { return finding_; }
  /// Does nothing where there is a finding already.
  void Report(FindingKind kind, std::string text);
  /// Reports a mistake of the running thread, which does not go on.
  [[noreturn]] void ReportAndAbandon(SimtThread& thread, FindingKind kind, std::string text);

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
  mutable std::map<const void*, std::string> lines_;  // by address
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_REPORTER_H_
