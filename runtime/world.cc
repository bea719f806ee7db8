#include "runtime/world.h"

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world.h"
#include "runtime/mesh.h"
#include "runtime/mpi/mpi_world.h"
#include "runtime/simt/simt_world.h"
#include "runtime/threads/thread_world.h"

namespace coconet {
namespace {

// More threads than any machine has cores for; fewer than systems allow.
constexpr int kMostThreadRanks = 1024;

/// The options that COCONET_SIMT_SEED asks for.
absl::StatusOr<SimtOptions> SimtOptionsOfEnv() {
  uint64_t seed = SimtOptions().seed;
  const std::string& text = GetEnv().simt_seed;
  if (text.empty() || absl::SimpleAtoi(text, &seed)) return SimtOptions::Of(seed);
  return absl::InvalidArgumentError(
      absl::StrCat("COCONET_SIMT_SEED: want a number from 0 on, have '", text, "'"));
}

}  // namespace

bool UnderMpi() {
  // Variables that the launchers of Open MPI, MPICH and SLURM set in each process.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

absl::Status RunWorld(const WorldOptions& options, const RankBody& body) {
  if (options.ranks < 0 || options.ranks > kMostThreadRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("RunWorld: want 1 to ", kMostThreadRanks, " ranks, have ", options.ranks));
  }
  const WorldRequest request{
      .ranks = std::max(options.ranks, 1),
      .shape = {.stages = options.stages, .nodes = options.nodes},
      .timeout_s = options.timeout_s > 0 ? options.timeout_s : GetEnv().timeout_s,
      .pin = options.pin};
  switch (options.backend) {
    case Backend::kHost:
      return UnderMpi() ? RunMpiWorld(request, body) : RunThreadWorld(request, body);
    case Backend::kCuda:
      return UnderMpi() ? RunOnMpi(request, LaunchedCudaRanks(), body)
                        : RunCudaWorld(request, body);
    case Backend::kSimt: {
      if (UnderMpi())
        return absl::UnimplementedError(
            "RunWorld: simulated GPUs are of one process; start it without mpirun");
      const absl::StatusOr<SimtOptions> simt =
          options.simt.has_value() ? *options.simt : SimtOptionsOfEnv();
      RETURN_IF_ERROR(simt.status());
      return RunSimtWorld(request, *simt, body);
    }
  }
  CC_CHECK(false);
}

}  // namespace coconet
