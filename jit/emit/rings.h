#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/loads.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// Slices that go around the ring of a node's ranks: partial results of ReduceScatters, and what
/// AllGathers pass on.
class Rings {
 public:
  /// Adds the buffers of partial results, unless the kernel uses no rings: these need more than two
  /// ranks, and nothing beside them that is copied for peers (`copies`).
  Rings(KernelContext& k, Loads& loads, bool copies);

  bool AreUsed() const { return used_; }
  bool Reduce() const { return !partials_.empty(); }
  bool PassesOn() const { return !gathered_.empty(); }
  /// Sets of flags that rings need: one for each way that slices go around.
  int Ways() const { return Reduce() && PassesOn() ? 2 : 1; }

  /// Passes on around the ring what is stored to `buffer` from now on.
  void PassOn(int buffer) { gathered_.push_back(buffer); }

  std::string Declarations();
  /// The text that adds this rank's elements to the slices of others, hop by hop.
  std::string PartialsText();
  /// The text that passes on what other ranks gathered, hop by hop.
  std::string PassedOnText();
  /// The flag of chunk `c` of the slices of the rank at place `from`.
  std::string FlagOf(absl::string_view from, bool gathered) const;

 private:
  struct Partials {
    NodeId reduced;
    std::string name;  // of the Ring in the text
    int buffer;        // of partial results
  };
  std::string HopsText(bool gathered, const PhaseText& phase);

  KernelContext& k_;
  const bool used_;
  std::vector<Partials> partials_;
  std::vector<int> gathered_;  // buffers
};

}  // namespace coconet
