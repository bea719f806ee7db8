#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/session/device_buffer.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// The dtype of the elements of a C++ type; nullopt if several have its size: u8, bool and 8-bit
/// floats, f16, bf16 and u16.
template <class T>
constexpr std::optional<DType> DTypeOf() {
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    constexpr DType kSigned[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64};
    return kSigned[sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3];
  }
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return DType::kU32;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return DType::kU64;
  return std::nullopt;
}

/// The caller's memory of a tensor, which must outlive the programs bound to it.
struct ForeignTensor {
  void* data = nullptr;
  std::optional<DType> dtype = std::nullopt;  // nullopt: any of `element_bytes` bytes
  size_t element_bytes = 0;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // in elements; empty: row-major
  bool on_gpu = false;                // `data` is an address of a GPU
  /// The reason why this is no memory; OK: it is. Calls that take it return the error, on all
  /// ranks.
  absl::Status error = {};

  /// Whether consecutive elements have no gaps between them; extents of 1 may have any stride.
  bool row_major() const;
  /// Whether its strides show that no two elements are at one address.
  bool distinct() const;
  /// Copies all elements, in row-major order, to `packed` or from it. Memory of the host.
  void Pack(char* packed) const;
  void Unpack(const char* packed) const;

  /// A vector of the host.
  static ForeignTensor Of(DType dtype, const void* data, int64_t elements) {
    return {.data = const_cast<void*>(data),
            .dtype = dtype,
            .element_bytes = SizeOf(dtype),
            .shape = {elements}};
  }
  template <class T>
  static ForeignTensor Of(T* data, int64_t elements) {
    using Element = std::remove_const_t<T>;
    return {.data = const_cast<Element*>(data),
            .dtype = DTypeOf<Element>(),
            .element_bytes = sizeof(T),
            .shape = {elements}};
  }
};

/// The number of elements; -1 if the shape has a negative extent, or more elements than memory has.
int64_t ElementsOf(absl::Span<const int64_t> shape);

/// The elements that `operation` wants for the tensor `name` of a program: `elements` of `dtype`,
/// as a vector or in that shape.
struct WantedTensor {
  absl::string_view operation, name;
  std::string type;  // in words
  DType dtype{};
  int64_t elements = 0;
  std::optional<std::vector<int64_t>> shape = std::nullopt;  // nullopt: any
  bool admits_gpu = false;                                   // memory of a GPU, too

  /// InvalidArgument with what is wanted and found.
  absl::Status Error(absl::string_view want, absl::string_view have) const;
  /// Checks everything except the strides.
  absl::Status Check(const ForeignTensor& tensor) const;
  /// Checks that the elements are row-major.
  absl::Status CheckRowMajor(const ForeignTensor& tensor) const;
  /// Checks that no two elements are at one address.
  absl::Status CheckDistinct(const ForeignTensor& tensor) const;
};

/// Binds a tensor of a program to the caller's memory.
struct Binding {
  std::string name;
  /// Memory of Session::Allocate or TunedProgram::Allocate, used in place. The binding shares it.
  std::optional<DeviceBuffer> buffer = std::nullopt;
  /// Or other memory. If it is all of a DeviceBuffer's, it is used as such. Otherwise it is used in
  /// place if no peer reaches the tensor, or if peers can map it (memory of cudaMalloc, on all
  /// ranks), and the memory is row-major and has its alignment (64 bytes) and its padding (none,
  /// unless ranks cut it unevenly). Else it is copied in and out at every Run, with one warning
  /// that says why. It must outlive the bindings of all ranks. Memory of a GPU is row-major and of
  /// the rank's GPU; a tensor that a step writes has no two elements at one address.
  ForeignTensor foreign = {};
  bool accepts_slice = false;

  Binding(absl::string_view n, const DeviceBuffer& b) : name(n), buffer(b) {}
  Binding(absl::string_view n, ForeignTensor tensor) : name(n), foreign(std::move(tensor)) {}
  template <class T>
  Binding(absl::string_view n, absl::Span<T> memory)
      : Binding(n, ForeignTensor::Of(memory.data(), static_cast<int64_t>(memory.size()))) {}

  /// For a state of layout auto, which the schedule slices or replicates: its memory has the
  /// elements that this rank keeps (TensorInfo).
  Binding AcceptSlice() && {
    accepts_slice = true;
    return std::move(*this);
  }
};

}  // namespace coconet
