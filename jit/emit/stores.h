#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "jit/emit/rings.h"
#include "jit/emit/rounds.h"
#include "jit/expressions/expressions.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// Writes what a kernel stores, with the values that it needs: in this rank's memory, in that of
/// its peers, and in that of other pipeline stages.
class Stores {
 public:
  Stores(KernelContext& k, Loads& loads, Expressions& expressions, Rings& rings)
      : k_(k), loads_(loads), expressions_(expressions), rings_(rings) {}

  /// Stores an update, an output or a value that another launch takes, in a phase.
  absl::Status AddStore(PhaseText& phase, NodeId id);
  /// Stores the operand of an AllGather to all ranks of the node.
  absl::Status AddPush(PhaseText& phase, NodeId gather);
  /// Stores the operand of an AllToAll to the rank that owns it next.
  absl::Status AddExchange(PhaseText& phase, NodeId exchange);
  /// Stores the operand of a Send to this rank's place in the next or the previous stage.
  absl::Status AddSend(PhaseText& phase, NodeId send);

  /// The text that stores the scalars that are needed in memory, by one thread each, after all
  /// phases.
  absl::StatusOr<std::string> ScalarsText(Rounds& rounds);

 private:
  /// The buffer that `id` stores to; -1: none, or what fills it is no store.
  int TargetOf(NodeId id) const;
  NodeId ValueOf(NodeId id) const;
  absl::Status AddScalar(NodeId id, std::string* stores);

  KernelContext& k_;
  Loads& loads_;
  Expressions& expressions_;
  Rings& rings_;
};

}  // namespace coconet
