#ifndef COCONET_JIT_COMPILE_CUBIN_H_
#define COCONET_JIT_COMPILE_CUBIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// What a kernel takes of a multiprocessor.
struct KernelResources {
  std::string kernel;
  uint32_t registers = 0;     // of a thread
  uint32_t stack_bytes = 0;   // of a thread: spills, and arrays that are not in registers
  uint32_t shared_bytes = 0;  // of a block, those that the source declares
  bool operator==(const KernelResources&) const = default;
};

/// Of the kernels in a cubin, by name: its ELF sections .text.*, .nv.shared.* and the attributes in
/// .nv.info. InvalidArgument for what is no whole cubin, or says nothing of a kernel's registers or
/// stack.
absl::StatusOr<std::vector<KernelResources>> ResourcesOf(absl::string_view cubin);

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_CUBIN_H_
