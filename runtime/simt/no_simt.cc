// For builds without CUDA's headers, which the CUDA backend needs, also over simulated GPUs.

#include "runtime/simt/simt_world.h"

namespace coconet {

absl::Status RunSimtWorld(const WorldRequest&, const SimtOptions&, const RankBody&, double) {
  return absl::UnavailableError(
      "simulated GPUs: not in this build, which has no CUDA headers; run ./setup.sh --cuda=auto "
      "and build again");
}

void ForgetSimtMemory(const void*, int64_t) {}
absl::Status CheckSimtWritten(const void*, int64_t) { return absl::OkStatus(); }
int64_t SimtTimeNs() { return 0; }

}  // namespace coconet
