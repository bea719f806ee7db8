#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"

namespace coconet::bench {

/// A folder of binaries that are compiled on one machine and run on another. The binary of a
/// source for an architecture is the file "<16 digits of the source's fingerprint>.sm_90a.cubin":
/// what NVRTC made, and a last line, which loaders ignore, that says what it is.
///
/// Writes the binary; `compiled_by` is the compiler's identity.
absl::Status CarryCubin(const std::string& folder, absl::string_view arch,
                        const std::string& source, absl::string_view binary,
                        absl::string_view compiled_by);

/// Takes binaries from such a folder, and compiles nothing. Compile copies a binary to `cache`, as
/// other compilers put theirs there. NotFound, which names the file, the architectures that the
/// folder has this source for and what to do, where there is none; DataLoss for a file that is cut
/// off or changed; InvalidArgument for one that is of another architecture, of other kernels, or of
/// other device headers than this program's.
absl::StatusOr<std::unique_ptr<Compiler>> MakeCarriedCubins(std::string folder, std::string arch,
                                                            std::shared_ptr<BinaryCache> cache);

}  // namespace coconet::bench
