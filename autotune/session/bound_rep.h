#ifndef COCONET_AUTOTUNE_SESSION_BOUND_REP_H_
#define COCONET_AUTOTUNE_SESSION_BOUND_REP_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/tensors.h"
#include "autotune/session/session.h"
#include "autotune/session/session_state.h"
#include "runtime/rank.h"

namespace coconet {

/// Memory of the caller's that a tensor is copied from before, or to after, a step.
struct HostCopy {
  const PlacedTensor* tensor = nullptr;
  void* host = nullptr;
};

struct BoundRep {
  std::shared_ptr<const CompiledProgram> compiled;
  std::vector<std::shared_ptr<Memory>> memory;  // by buffer of the plan; null for sync buffers
  std::unique_ptr<BoundPlan> plan;              // goes before its memory
  std::vector<HostCopy> copies_in, copies_out;
  std::map<const PlacedTensor*, std::unique_ptr<int64_t>>
      scalars;                    // what users set, where they do not reach the plan's memory
  bool compare_replicas = false;  // COCONET_DEBUG >= 2
  bool plain = true;              // neither copies nor comparisons

  SessionState& session() const { return *compiled->session; }
  Rank& rank() const { return compiled->session->rank; }
  Memory& Storage(const PlacedTensor& tensor) const { return *memory[tensor.buffer]; }
  Part PartHere(const PlacedTensor& tensor) const {
    return PartOf(tensor.type, rank().stage_size(), rank().stage_rank());
  }
  /// NotFound names the tensors that there are.
  absl::StatusOr<const PlacedTensor*> Find(absl::string_view operation,
                                           absl::string_view name) const;
};

/// A tensor of a program, or NotFound.
absl::StatusOr<const PlacedTensor*> FindTensor(const CompiledProgram& program,
                                               absl::string_view operation, absl::string_view name);

/// Elements [begin, begin + count) of a global tensor, on their way from the rank that holds them.
using SliceSink = std::function<absl::Status(int64_t begin, int64_t count, const char* elements)>;

/// Collective. Shows all elements of a Sliced tensor to every rank, piece by piece, so that nobody
/// needs room for all of it.
absl::Status GatherSlices(Rank& rank, const TensorType& type, const Memory& storage,
                          const SliceSink& sink);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_BOUND_REP_H_
