#include "runtime/nccl/nccl_libraries.h"

namespace coconet {

absl::StatusOr<StreamLibraries> OpenNcclLibraries(const StreamLibraryTerms& /*terms*/) {
  StreamLibraries staged;
  staged.note =
      "not by NCCL: this build has none; put nccl.h where the CUDA toolkit has its headers and "
      "build again";
  return staged;
}

}  // namespace coconet
