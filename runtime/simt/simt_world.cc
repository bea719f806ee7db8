#include "runtime/simt/simt_world.h"

#include <memory>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/simt/simt_driver.h"
#include "runtime/simt/simt_library.h"
#include "runtime/simt/simulation.h"

namespace coconet {

absl::Status RunSimtWorld(const WorldRequest& request, const SimtOptions& options,
                          const RankBody& body, double patience_s) {
  ASSIGN_OR_RETURN(std::shared_ptr<Simulation> simulation,
                   Simulation::Make(options, request.ranks, patience_s));
  const SimtGpus gpus(std::move(simulation));
  const CudaLibraries libraries{.driver = SimtDriver(),
                                .open_cublaslt = OpenSimtCublasLt,
                                .open_libraries = OpenSimtLibraries,
                                .name_buffer = NameSimtBuffer,
                                .green_contexts = false,
                                .multicast = false};
  return RunCudaWorldOver(libraries, request, body);
}

void ForgetSimtMemory(const void* address, int64_t bytes) {
  if (SimtRankHere() < 0) return;
  const Simulation::Locked gpus = SimulationHere().Use();
  if (SimtBuffer* buffer = gpus.machine.memory().Find(address); buffer != nullptr)
    buffer->shadow().MarkUninitialized(buffer->OffsetOf(address), static_cast<size_t>(bytes));
}

absl::Status CheckSimtWritten(const void* address, int64_t bytes) {
  if (SimtRankHere() < 0) return absl::OkStatus();
  SimulationHere().Use().machine.checker().CheckWritten(address, static_cast<size_t>(bytes));
  const std::string mistake = SimulationHere().mistake();
  return mistake.empty() ? absl::OkStatus() : absl::DataLossError(mistake);
}

int64_t SimtTimeNs() {
  return SimtRankHere() < 0 ? 0 : static_cast<int64_t>(SimulationHere().Use().machine.now_ns());
}

}  // namespace coconet
