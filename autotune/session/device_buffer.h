#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet {

struct SessionState;

/// Device memory of a Session that peers can reach: programs bound to it copy nothing. Copies share
/// the memory, which is released with the last of them and of the bindings that use it; on GPUs
/// that is collective. Elements beyond `elements` are padding.
class DeviceBuffer {
 public:
  DType dtype() const { return dtype_; }
  /// The elements that this rank keeps: all, unless TunedProgram::Allocate made the buffer and the
  /// schedule slices the tensor.
  int64_t elements() const { return part_.elements(); }
  /// The places of the elements: run i, of part().run elements, begins at element i *
  /// part().storage_stride.
  const Part& part() const { return part_; }
  /// The elements; empty if the host does not reach the memory, or if they lie in several runs.
  /// Read and Write always work.
  template <class T>
  absl::Span<T> span() const {
    const bool is_span = memory_->space() == nullptr && part_.runs <= 1;
    return {static_cast<T*>(memory_->own()), is_span ? static_cast<size_t>(elements()) : 0};
  }
  /// Copies all elements, without padding, to, or from, the host's memory. InvalidArgument unless
  /// `dtype` and `elements` are the buffer's.
  absl::Status Read(DType dtype, void* to, int64_t elements) const;
  absl::Status Write(DType dtype, const void* from, int64_t elements);
  void* data() const { return memory_->own(); }
  /// Gives up this object's share of the memory. Any thread may call it, also during a call of the
  /// session. Afterwards the buffer is empty.
  void Release();
  /// Whether the host addresses `data`.
  bool on_host() const { return memory_->space() == nullptr; }
  /// The CUDA device ordinal of its GPU; 0 for memory of the host.
  int gpu() const { return on_host() ? 0 : memory_->space()->gpu(); }

 private:
  friend struct SessionState;
  friend class BindingMatcher;
  absl::Status Check(absl::string_view operation, DType dtype, int64_t elements) const;

  DType dtype_{};
  Part part_;
  int64_t serial_ = 0;  // allocation number in its Session, by which ranks compare their bindings
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<SessionState> session_;
};

}  // namespace coconet
