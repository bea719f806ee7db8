#include "runtime/simt/simt_cublaslt.h"

#include <utility>
#include <vector>

#include "runtime/cuda/gemm/host_cublaslt.h"
#include "runtime/simt/simt_driver.h"

namespace coconet {
namespace {

void Give(CUstream stream, HostLtWork work) {
  std::vector<SimtAccess> accesses;
  for (const HostLtWork::Access& access : work.accesses)
    accesses.push_back({access.p, access.bytes, access.writes});
  GiveToSimtStream(stream, CallWork{std::move(work.compute), std::move(accesses)});
}

constexpr HostLtDevices kDevices{SimtRankHere, Give};

}  // namespace

absl::StatusOr<const CublasLtApi*> OpenSimtCublasLt() {
  static const auto* api = new CublasLtApi(MakeHostCublasLt(
      [](cublasLtHandle_t* handle) { return CreateHostCublasLt(handle, kDevices); }));
  return api;
}

}  // namespace coconet
