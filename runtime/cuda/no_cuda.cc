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
MakeRank LaunchedCudaRanks() {
  return [](const RankPlace& place) -> absl::StatusOr<std::unique_ptr<Rank>> {
    return place.exchange->Agree(NotInThisBuild());
  };
}

}  // namespace coconet
