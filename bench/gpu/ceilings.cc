#include "bench/gpu/ceilings.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/status.h"
#include "jit/compile/nvrtc_api.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet::bench {
namespace {

/// This rank's copy of `bytes` bytes.
absl::StatusOr<Contender> CopyHere(Rank& rank, int64_t bytes) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Memory> from, rank.Allocate(bytes, false));
  ASSIGN_OR_RETURN(const std::shared_ptr<Memory> to, rank.Allocate(bytes, false));
  return EachStep("copy", [from, to, bytes] { return to->Write(0, bytes, from->own()); });
}

}  // namespace

absl::StatusOr<Contender> MakeCopy(Rank& rank, int64_t bytes) {
  absl::StatusOr<Contender> copy = CopyHere(rank, bytes / rank.size());
  RETURN_IF_ERROR(rank.exchange().Agree(copy.status()));
  return copy;
}

absl::StatusOr<Contender> MakeProduct(Rank& rank, const GemmStep& step) {
  ASSIGN_OR_RETURN(BoundProduct bound, BindProduct(rank, step, {step}));
  const auto made = std::make_shared<BoundProduct>(std::move(bound));
  return Contender{"product", [made](int64_t steps) { return made->plan->RunSteps(steps); }};
}

void AddGpu(Row& row) {
  const absl::StatusOr<const DriverApi*> driver = OpenDriver();
  if (!driver.ok()) return;
  const absl::StatusOr<std::shared_ptr<Device>> device = Device::Open(**driver, 0);
  if (!device.ok()) return;
  int version = 0, major = 0, minor = 0;
  if ((*driver)->DriverGetVersion(&version) == CUDA_SUCCESS)
    row.Set("driver", absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10));
  const DeviceFacts& facts = (*device)->facts();
  row.Set("gpu", facts.name)
      .Set("arch", facts.arch())
      .Set("multiprocessors", facts.multiprocessors)
      .Set("memory_bytes", facts.memory_bytes)
      .Set("l2_bytes", facts.l2_bytes);
  const absl::StatusOr<const NvrtcApi*> nvrtc = OpenNvrtc();
  if (nvrtc.ok() && (*nvrtc)->Version(&major, &minor) == 0)
    row.Set("nvrtc", absl::StrCat(major, ".", minor));
}

}  // namespace coconet::bench
