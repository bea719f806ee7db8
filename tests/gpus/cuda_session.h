#pragma once

#include <functional>

#include "absl/status/status.h"
#include "autotune/testing/session_fixture.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {

inline constexpr double kCudaSessionTimeout = 60;  // s

/// Sessions on GPUs, on a driver that runs kernels of the host dialect.
class CudaSession : public SessionTest {
 protected:
  void SetUp() override {
    own_cache_ = true;
    SetHostDevices({.count = 1, .multiprocessors = 4});
  }
  struct Terms {
    bool multicast = true;
    Admits admits = {};
  };
  absl::Status OnGpu(int ranks, const std::function<absl::Status(Session&)>& body,
                     const Terms& terms) {
    const CudaLibraries libraries{.driver = HostDriver(),
                                  .open_cublaslt = OpenHostCublasLt,
                                  .multicast = terms.multicast,
                                  .control = ControlOfHostKernels()};
    return RunCudaWorldOver(libraries, {ranks, {}, kCudaSessionTimeout}, [&](Rank& rank) {
      SessionOptions options = Options();
      options.admits = terms.admits;
      options.search = SearchKind::kRacing;  // which leaves nothing out
      Session session(rank, options);
      return body(session);
    });
  }
  absl::Status OnGpu(int ranks, const std::function<absl::Status(Session&)>& body) {
    return OnGpu(ranks, body, Terms());
  }
};

}  // namespace coconet
