#ifndef COCONET_RUNTIME_SIMT_SIMT_DRIVER_H_
#define COCONET_RUNTIME_SIMT_SIMT_DRIVER_H_

#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/simt/simulation.h"

namespace coconet {

/// A driver whose GPUs are simulated: modules are shared objects of the simt dialect, a kernel's
/// threads are fibers. Whose GPUs they are is said by the calling thread's SimtGpus, and by
/// contexts that come of these. A kernel's mistake is CUDA_ERROR_LAUNCH_FAILED of every later call
/// that waits, with the finding as the driver's words.
const DriverApi& SimtDriver();

/// While it lives, the GPUs that the calling thread sees are those of a simulation. It outlives the
/// contexts.
class SimtGpus {
 public:
  explicit SimtGpus(std::shared_ptr<Simulation> simulation);
  ~SimtGpus();
  SimtGpus(const SimtGpus&) = delete;
  SimtGpus& operator=(const SimtGpus&) = delete;
};

/// Of the calling thread's current context.
Simulation& SimulationHere();
/// Whose rank's it is; -1: there is none.
int SimtRankHere();
/// Behind what the stream has.
void GiveToSimtStream(CUstream stream, SimtWork work);
/// Tells what those bytes of the current context are called in reports. Of an allocation of which
/// some are, kernels may use no others.
void NameSimtBuffer(const void* address, size_t bytes, absl::string_view name);

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMT_DRIVER_H_
