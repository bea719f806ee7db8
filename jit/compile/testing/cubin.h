#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// A kernel's use of a multiprocessor's resources.
struct KernelResources {
  std::string kernel;
  uint32_t registers = 0;     // per thread
  uint32_t stack_bytes = 0;   // per thread: spills, and arrays that are not in registers
  uint32_t shared_bytes = 0;  // per block: what the source declares
  bool operator==(const KernelResources&) const = default;
};

/// The resources of each kernel in a cubin, by name, from the ELF sections .text.*, .nv.shared.*
/// and .nv.info. InvalidArgument when the cubin is damaged or lacks a kernel's registers or stack.
absl::StatusOr<std::vector<KernelResources>> ResourcesOf(absl::string_view cubin);

}  // namespace coconet
