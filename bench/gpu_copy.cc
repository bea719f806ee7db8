#include "bench/gpu_copy.h"

#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "jit/compile/nvrtc_api.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/memory/allocation.h"

namespace coconet::bench {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<std::shared_ptr<Device>> FirstGpu() {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return Device::Open(*driver, 0);
}

}  // namespace

absl::StatusOr<Copies> CopiesOnGpu() {
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, FirstGpu());
  return Copies([device](const void* from, int64_t bytes, void* to) -> absl::Status {
    ASSIGN_OR_RETURN(const InContext in, device->Enter());
    return Copy(*device, /*stream=*/nullptr, from, bytes, to);
  });
}

absl::StatusOr<Copies> CopiesOnHost() {
  return Copies([](const void* from, int64_t bytes, void* to) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<GpuStream>> GpuStream::Make() {
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, FirstGpu());
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  CUstream stream = nullptr;
  RETURN_IF_CU(device->driver(), StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  return std::unique_ptr<GpuStream>(new GpuStream(stream));
}

GpuStream::~GpuStream() {
  if (const absl::StatusOr<const DriverApi*> driver = OpenDriver(); driver.ok())
    (*driver)->StreamDestroy(static_cast<CUstream>(stream_));
}

void AddGpu(Row& row) {
  const absl::StatusOr<std::shared_ptr<Device>> device = FirstGpu();
  if (!device.ok()) return;
  const DeviceFacts& facts = (*device)->facts();
  int version = 0;
  if ((*device)->driver().DriverGetVersion(&version) == CUDA_SUCCESS)
    row.Set("driver", absl::StrCat("CUDA ", VersionText(version)));
  row.Set("gpu", facts.name)
      .Set("arch", facts.arch())
      .Set("multiprocessors", int64_t{facts.multiprocessors});
  row.Set("memory_bytes", facts.memory_bytes).Set("l2_bytes", facts.l2_bytes);
  int major = 0, minor = 0;
  const absl::StatusOr<const NvrtcApi*> nvrtc = OpenNvrtc();
  if (nvrtc.ok() && (*nvrtc)->Version(&major, &minor) == 0)
    row.Set("nvrtc", absl::StrCat(major, ".", minor));
}

}  // namespace coconet::bench
