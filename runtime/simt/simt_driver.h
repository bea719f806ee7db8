#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/simt/simulation.h"

namespace coconet {

/// The CUDA driver of simulated GPUs. Modules are shared objects of the simt dialect; a kernel's
/// threads are fibers. The calling thread's SimtGpus, and contexts that it retained from them, say
/// which simulation is meant. After a mistake of a kernel, calls that wait return
/// CUDA_ERROR_LAUNCH_FAILED, with the finding as GetErrorString.
const DriverApi& SimtDriver();

/// While it lives, the calling thread sees the GPUs of a simulation. Outlives their contexts.
class SimtGpus {
 public:
  explicit SimtGpus(std::shared_ptr<Simulation> simulation);
  ~SimtGpus();
  SimtGpus(const SimtGpus&) = delete;
  SimtGpus& operator=(const SimtGpus&) = delete;
};

/// The simulation of the calling thread's current context.
Simulation& SimulationHere();
/// The rank that owns the current context; -1 if there is none.
int SimtRankHere();
/// Appends work to the stream.
void GiveToSimtStream(CUstream stream, SimtWork work);
/// Names bytes of the current context's memory in reports. Kernels may then access only named bytes
/// of that allocation.
void NameSimtBuffer(const void* address, size_t bytes, absl::string_view name);

}  // namespace coconet
