#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/simt/memory/shadow.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"

namespace coconet {

/// An access of a kernel. `aligned`: it must be at a multiple of its size, a power of two.
/// `atomic`: it is one of the memory model. `at`: where in the code.
struct KernelAccess {
  const void* p;
  size_t bytes;
  bool writes, aligned, atomic;
  const void* at;
};

/// Checks accesses of kernels and of the host: bounds, alignment, initialisation, data races.
class AccessChecker {
 public:
  AccessChecker(SimtMemory& memory, Reporter& reporter) : memory_(memory), reporter_(reporter) {}

  /// The buffer of a correct access; null for an atomic access to registered memory of the host,
  /// which is not checked further. Abandons the thread at a mistake. `agent`: the thread's own, or
  /// that of one of its copies in flight.
  SimtBuffer* Check(SimtThread& thread, KernelAccess access, const Agent& agent) {
    ++accesses_;
    SimtBuffer* buffer = memory_.Find(access.p);
    if (buffer == nullptr || !buffer->Holds(access.p, access.bytes))
      return CheckOutside(thread, access);
    if (access.aligned && (reinterpret_cast<uintptr_t>(access.p) & (access.bytes - 1)) != 0)
      FailMisaligned(thread, access, *buffer);
    const Shadow::Found found = buffer->shadow().Note(
        agent, buffer->OffsetOf(access.p), access.bytes, access.writes, access.atomic, access.at);
    if (found.verdict != Shadow::Verdict::kFine && !given_up_)
      FailShadow(thread, access, *buffer, found);
    return buffer;
  }
  SimtBuffer* Check(SimtThread& thread, KernelAccess access) {
    return Check(thread, access, thread.agent);
  }
  /// What accesses memory by the asynchronous proxy.
  enum class Proxied : uint8_t { kBulkCopy, kProduct };
  /// Checks that a proxy fence lies between earlier accesses by other proxies and this access of
  /// what the thread begins now. The earlier accesses are the last writes, and for a write the
  /// reads since then. Accesses before the launch need no fence.
  void CheckFences(SimtThread& thread, KernelAccess access, Proxied what);
  /// Whether a fence lets what the thread begins now see the access.
  static bool IsFenced(const SimtThread& thread, Epoch access);
  /// An access by the host or by a copy in a stream: it may race, and may read anything.
  void CheckHost(const Agent& agent, void* p, size_t bytes, bool writes);
  /// Reports the first uninitialised byte. Memory of the host counts as initialised.
  void CheckWritten(const void* p, size_t bytes);

  /// Notes that kernels begin of a plan that no rank has given up.
  void BeginPlan() { given_up_ = false; }
  /// Notes that a rank told the plan's kernels to stop, or gave up a collective. Races and
  /// uninitialised reads of that plan's kernels are then no mistakes: nothing uses their results.
  void GiveUpPlan() { given_up_ = true; }
  /// Accesses of kernels so far.
  uint64_t accesses() const { return accesses_; }

 private:
  /// Checks an access that is not within one buffer; null for registered memory of the host.
  SimtBuffer* CheckOutside(SimtThread& thread, KernelAccess access);
  [[noreturn]] void FailMisaligned(SimtThread& thread, KernelAccess access,
                                   const SimtBuffer& buffer);
  [[noreturn]] void FailShadow(SimtThread& thread, KernelAccess access, const SimtBuffer& buffer,
                               const Shadow::Found& found);
  void ReportShadow(const SimtBuffer& buffer, size_t offset, size_t bytes, bool writes,
                    const Shadow::Found& found, const std::string& who);

  SimtMemory& memory_;
  Reporter& reporter_;
  bool given_up_ = false;
  uint64_t accesses_ = 0;
};

}  // namespace coconet
