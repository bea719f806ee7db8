#include "runtime/cuda/cuda_world.h"

namespace coconet {
namespace {

absl::Status NotInThisBuild() {
  return absl::UnavailableError(
      "this build has no GPU backend: install the CUDA toolkit's headers (setup.sh), and build "
      "again");
}

}  // namespace

absl::Status RunCudaWorld(int /*ranks*/, const WorldShape& /*shape*/, double /*timeout_s*/,
                          bool /*pin*/, const std::function<absl::Status(Rank&)>& /*body*/) {
  return NotInThisBuild();
}

absl::Status RunCudaMpiWorld(const WorldShape& /*shape*/, double /*timeout_s*/, bool /*pin*/,
                             const std::function<absl::Status(Rank&)>& /*body*/) {
  return NotInThisBuild();
}

}  // namespace coconet
