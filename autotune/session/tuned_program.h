#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/session/binding.h"
#include "autotune/session/bound_program.h"
#include "autotune/session/device_buffer.h"
#include "autotune/store/phases.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"
#include "runtime/plan_memory.h"

namespace coconet {

struct CompiledProgram;

/// An input, state or output of a program, as this rank sees it.
struct TensorInfo {
  std::string name;
  BufferRole role{};
  TensorType type;  // as declared; an output's, inferred
  /// The elements that this rank keeps under the schedule, in canonical order: the first, -1 if
  /// they are several runs, and how many. All, unless the schedule slices the tensor.
  int64_t first = 0, count = 0;
};

/// A program with its best variant, from Session::Compile. Cheap to copy; immutable.
class TunedProgram {
 public:
  const TuningRecord& record() const { return *record_; }
  bool from_cache() const { return from_cache_; }
  const Graph& program() const;  // bound
  /// Bytes that it has on the rank of a stage that needs most, tensors that the caller binds
  /// included.
  PlanMemory memory() const;
  /// All variants, each with its times or the reason why it was rejected; empty on a cache hit.
  const std::vector<VariantResult>& variants() const;
  /// What this rank spent the time of looking the program up or tuning it on.
  const PhaseSeconds& seconds() const;
  /// The tensors in the order of the program; those of a list one by one.
  std::vector<TensorInfo> tensors() const;

  /// Explains in lines, for people, why the program runs as it does: the schedule, its fusions and
  /// overlaps, its time, its gain over the plain schedule, and why each other schedule lost or was
  /// refused. If nothing was tuned for it: why it runs this. Not collective, and not for the
  /// path of a step: after a cache hit, rank 0 reads the file for the other schedules; other ranks
  /// have no cache, and say so.
  std::string Explain() const;

  /// Collective. Binds tensors to the caller's memory, states of layout auto only with
  /// Binding::AcceptSlice; the Session allocates and zero-fills all others. All ranks bind the same
  /// tensors. Memory of a Sliced tensor holds the rank's elements, or is a DeviceBuffer of as many
  /// elements as the tensor. InvalidArgument on all ranks, with the tensor and what was wanted and
  /// found, when one rank's binding is wrong: its name, dtype, shape, strides or place.
  absl::StatusOr<BoundProgram> Bind(absl::Span<const Binding> bindings) const;

  /// Collective. Allocates memory for the elements of one tensor that this rank keeps, with the
  /// padding that its slicing needs.
  absl::StatusOr<DeviceBuffer> Allocate(absl::string_view tensor) const;

 private:
  friend class Session;
  friend class TunedSizes;
  std::shared_ptr<const TuningRecord> record_;
  bool from_cache_ = false;
  std::shared_ptr<const CompiledProgram> compiled_;
};

}  // namespace coconet
