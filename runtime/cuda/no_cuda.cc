#include "runtime/cuda/cuda_world.h"

namespace coconet {
namespace {

absl::Status NotInThisBuild() {
  return absl::UnavailableError(
      "this build has no GPU backend: install the CUDA toolkit's headers (setup.sh), and build "
      "again");
}

}  // namespace

absl::Status RunCudaWorld(const WorldRequest&, const RankBody&) { return NotInThisBuild(); }
absl::Status RunCudaMpiWorld(const WorldRequest&, const RankBody&) { return NotInThisBuild(); }

}  // namespace coconet
