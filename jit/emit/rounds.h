#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "jit/expressions/expressions.h"
#include "jit/expressions/kernel_context.h"

namespace coconet {

/// The text of a phase's folds before its loop over tensors, at the end of each tensor, and after
/// the loop.
struct RoundText {
  std::string before{}, inside{}, after{};
};

/// The rounds in which blocks, or all ranks, meet for the results of the kernel's folds.
class Rounds {
 public:
  Rounds(KernelContext& k, Expressions& expressions);

  /// In all of the kernel.
  int count() const { return count_; }

  /// The text after which all blocks have computed their parts of the kernel's prologue.
  std::string AfterPrologueText();
  /// The text that combines the phase's folds, on this rank and over all.
  RoundText FoldsText(const KernelPhase& phase, const std::vector<std::string>& accumulators);
  /// If the kernel's elements are scalar states of each tensor: waits until all blocks have
  /// totalled the old states before a block stores a new one.
  std::string BeforeWorkText();
  /// Waits until all blocks have read the old scalar states of each tensor before new ones are
  /// stored.
  std::string BeforeScalarsText();

 private:
  /// AllReduces of the kernel that take a fold.
  const std::vector<NodeId>& SumsOf(NodeId fold) const;
  bool MeetsAllRanks(const KernelPhase& phase) const;
  bool Meets(const KernelPhase& phase) const;
  bool MeetsAfterPrologue() const;
  bool MeetsBeforeWork() const;
  bool MeetsBeforeScalars() const;
  std::string MeetText(bool all_ranks);
  void LeaveText(NodeId fold, const std::string& accumulator, RoundText* round);
  /// Names the result of a fold of each tensor, or of all.
  void GiveResults(NodeId fold, const std::string& accumulator);
  std::string GatheredText(NodeId fold, const std::string& accumulator, absl::string_view of) const;

  KernelContext& k_;
  Expressions& expressions_;
  std::map<NodeId, std::vector<NodeId>> sums_;  // by fold
  int count_ = 0;
  int written_ = 0;
};

}  // namespace coconet
