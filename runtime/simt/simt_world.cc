#include "runtime/simt/simt_world.h"

#include <memory>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/simt/simt_cublaslt.h"
#include "runtime/simt/simt_driver.h"
#include "runtime/simt/simt_library.h"
#include "runtime/simt/simulation.h"

namespace coconet {

absl::Status RunSimtWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                          const SimtOptions& options,
                          const std::function<absl::Status(Rank&)>& body, double patience_s) {
  ASSIGN_OR_RETURN(std::shared_ptr<Simulation> simulation,
                   Simulation::Make(options, ranks, patience_s));
  const SimtGpus gpus(std::move(simulation));
  const CudaLibraries libraries{.driver = SimtDriver(),
                                .open_cublaslt = OpenSimtCublasLt,
                                .open_libraries = OpenSimtLibraries,
                                .name_buffer = NameSimtBuffer,
                                .green_contexts = false,
                                .multicast = false};
  return RunCudaWorldOver(libraries, {}, ranks, shape, timeout_s, pin, body);
}

void ForgetSimtMemory(const void* address, int64_t bytes) {
  if (SimtRankHere() >= 0) SimulationHere().MarkUninitialized(address, static_cast<size_t>(bytes));
}

absl::Status CheckSimtWritten(const void* address, int64_t bytes) {
  if (SimtRankHere() < 0) return absl::OkStatus();
  SimulationHere().CheckWritten(address, static_cast<size_t>(bytes));
  const std::string mistake = SimulationHere().mistake();
  return mistake.empty() ? absl::OkStatus() : absl::DataLossError(mistake);
}

int64_t SimtTimeNs() {
  return SimtRankHere() < 0 ? 0 : static_cast<int64_t>(SimulationHere().now_ns());
}

}  // namespace coconet
