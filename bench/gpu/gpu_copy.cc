#include "bench/gpu/gpu_copy.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

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

absl::StatusOr<std::shared_ptr<Device>> Gpu(int ordinal) {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return Device::Open(*driver, ordinal);
}

}  // namespace

absl::StatusOr<Copies> CopiesOnGpu(int ordinal) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Gpu(ordinal));
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

absl::StatusOr<std::unique_ptr<CopyContender>> CopyContender::Make(Rank& rank, int64_t bytes,
                                                                   Copies copy) {
  auto made = std::make_unique<CopyContender>();
  made->bytes_ = bytes / rank.size();
  made->copy_ = std::move(copy);
  ASSIGN_OR_RETURN(made->from_, rank.Allocate(made->bytes_, false));
  ASSIGN_OR_RETURN(made->to_, rank.Allocate(made->bytes_, false));
  return made;
}

absl::Status CopyContender::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(copy_(from_->own(), bytes_, to_->own()));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GpuStream>> GpuStream::Make() {
  ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, Gpu(0));
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
  const absl::StatusOr<std::shared_ptr<Device>> device = Gpu(0);
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
