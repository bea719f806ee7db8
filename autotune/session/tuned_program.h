#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/session/bound_program.h"
#include "autotune/store/record.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/graph.h"
#include "runtime/plan_memory.h"
#include "runtime/rank.h"

namespace coconet {

struct CompiledProgram;
struct SessionState;

/// Device memory of a Session that peers can reach: programs bound to it copy nothing. Movable;
/// destroyed collectively, which releases the memory. Elements beyond `elements` are padding.
class DeviceBuffer {
 public:
  DType dtype() const { return dtype_; }
  int64_t elements() const { return elements_; }
  /// The elements; empty where the host does not reach the memory. Read and Write always work.
  template <class T>
  absl::Span<T> span() const {
    return {static_cast<T*>(memory_->own()),
            memory_->space() == nullptr ? static_cast<size_t>(elements_) : 0};
  }
  /// Copies `elements` elements to, or from, the host's memory.
  absl::Status Read(void* to) const {
    return memory_->Read(0, elements_ * static_cast<int64_t>(SizeOf(dtype_)), to);
  }
  absl::Status Write(const void* from) {
    return memory_->Write(0, elements_ * static_cast<int64_t>(SizeOf(dtype_)), from);
  }
  void* data() const { return memory_->own(); }

 private:
  friend class Session;
  friend class TunedProgram;
  /// Collective. Memory of `bytes` bytes, of which `elements` elements count.
  static absl::StatusOr<DeviceBuffer> Make(SessionState& session, DType dtype, int64_t elements,
                                           int64_t bytes);
  DType dtype_{};
  int64_t elements_ = 0;
  int64_t serial_ = 0;  // allocation number in its Session, by which ranks compare their bindings
  std::shared_ptr<Memory> memory_;
};

/// Binds a tensor of the program to the caller's memory.
struct Binding {
  std::string name;
  const DeviceBuffer* buffer = nullptr;  // from Session::Allocate: used in place
  void* host = nullptr;  // or other memory: copied in and out at every Run, with one warning
  int64_t elements = 0;
  size_t element_bytes = 0;

  Binding(absl::string_view n, const DeviceBuffer& b)
      : name(n), buffer(&b), elements(b.elements()), element_bytes(SizeOf(b.dtype())) {}
  template <class T>
  Binding(absl::string_view n, absl::Span<T> memory)
      : name(n),
        host(memory.data()),
        elements(static_cast<int64_t>(memory.size())),
        element_bytes(sizeof(T)) {}
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

  /// Why it runs as it does, in lines for people: the schedule, its fusions and overlaps, its time,
  /// what that gained over the plain schedule, and why each other schedule lost or was refused.
  /// Where nothing was tuned: what the tuning cache missed. Not collective, and not for the path of
  /// a step: after a cache hit, rank 0 reads the file for the other schedules; other ranks have no
  /// cache, and say so.
  std::string Explain() const;

  /// Collective. Binds inputs, outputs and states with a declared layout to the caller's memory;
  /// the Session allocates and zero-fills all other tensors, and always states of layout Auto. All
  /// ranks bind the same tensors. Host memory of a Sliced tensor holds the rank's elements.
  /// InvalidArgument on all ranks, with the tensor and the elements wanted and found, when one
  /// rank's binding is wrong.
  absl::StatusOr<BoundProgram> Bind(absl::Span<const Binding> bindings) const;

  /// Collective. Allocates memory for one tensor of this program, with its padding.
  absl::StatusOr<DeviceBuffer> Allocate(absl::string_view tensor) const;

 private:
  friend class Session;
  std::shared_ptr<const TuningRecord> record_;
  bool from_cache_ = false;
  std::shared_ptr<const CompiledProgram> compiled_;
};

}  // namespace coconet
