#ifndef COCONET_AUTOTUNE_SESSION_BOUND_REP_H_
#define COCONET_AUTOTUNE_SESSION_BOUND_REP_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/index_check.h"
#include "autotune/measure/tensors.h"
#include "autotune/session/session.h"
#include "autotune/session/session_state.h"
#include "runtime/rank.h"

namespace coconet {

/// The caller's memory that a tensor is copied from before a step, or to after it.
struct HostCopy {
  const PlacedTensor* tensor = nullptr;
  void* host = nullptr;
};

struct BoundRep {
  std::shared_ptr<const CompiledProgram> compiled;
  std::vector<std::shared_ptr<Memory>> memory;  // by buffer of the plan; null for sync buffers
  std::unique_ptr<BoundPlan> plan;              // destroyed before its memory
  std::vector<HostCopy> copies_in, copies_out;
  std::map<const PlacedTensor*, std::unique_ptr<int64_t>>
      scalars;                    // set by users, where the host does not reach the plan's memory
  bool compare_replicas = false;  // COCONET_DEBUG >= 2
  std::unique_ptr<const IndexCheck> index_check;  // likewise; else null
  bool plain = true;                              // neither copies nor comparisons

  SessionState& session() const { return *compiled->session; }
  Rank& rank() const { return compiled->session->rank; }
  Memory& Storage(const PlacedTensor& tensor) const { return *memory[tensor.buffer]; }
  Part PartHere(const PlacedTensor& tensor) const {
    return PartOf(tensor.type, rank().stage_size(), rank().stage_rank());
  }
  /// NotFound names the program's tensors.
  absl::StatusOr<const PlacedTensor*> Find(absl::string_view operation,
                                           absl::string_view name) const;
};

/// Returns the tensor of that name. NotFound names `operation` and the program's tensors.
absl::StatusOr<const PlacedTensor*> FindTensor(const CompiledProgram& program,
                                               absl::string_view operation, absl::string_view name);

/// Receives elements [begin, begin + count) of a global tensor.
using SliceSink = std::function<absl::Status(int64_t begin, int64_t count, const char* elements)>;

/// Collective. Passes all elements of a Sliced tensor to every rank's `sink`, piece by piece, so
/// that no rank needs memory for the whole tensor.
absl::Status GatherSlices(Rank& rank, const TensorType& type, const Memory& storage,
                          const SliceSink& sink);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SESSION_BOUND_REP_H_
