#include "runtime/cuda/testing/host_green.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "runtime/cuda/testing/host_stream.h"
#include "runtime/cuda/testing/host_traps.h"

namespace coconet {
namespace {

struct Contexts {
  std::mutex mutex;
  const HostDevices* devices = nullptr;
  decltype(DriverApi::StreamDestroy) destroy_stream = nullptr;
  decltype(DriverApi::LaunchKernelEx) launch = nullptr;
  uintptr_t last = 0;                 // contexts are numbers
  std::map<CUgreenCtx, int> streams;  // number of, by context
  std::map<CUgreenCtx, CUdevice> gpus;
  std::map<CUstream, CUgreenCtx> owners;
  int left = 0, launches = 0;
};
Contexts& All() {
  static auto* all = new Contexts;
  return *all;
}

CUresult Resource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  COCONET_MAY_FAIL("cuDeviceGetDevResource");
  const HostDevices& devices = *All().devices;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  resource->type = type;
  resource->sm.smCount = static_cast<unsigned>(devices.multiprocessors);
  if (devices.tells_group)
    resource->sm.minSmPartitionSize = resource->sm.smCoscheduledAlignment =
        static_cast<unsigned>(devices.group);
  return CUDA_SUCCESS;
}

CUresult Split(CUdevResource* result, unsigned* parts, const CUdevResource* input, CUdevResource*,
               unsigned flags, unsigned least) {
  COCONET_MAY_FAIL("cuDevSmResourceSplitByCount");
  if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (flags != 0 || least > input->sm.smCount) return CUDA_ERROR_INVALID_VALUE;
  const auto group = static_cast<unsigned>(All().devices->group),
             each = std::max((least + group - 1) / group, 1u) * group;
  *parts = std::min(*parts, input->sm.smCount / each);
  for (unsigned i = 0; i < *parts; ++i) {
    result[i] = *input;
    result[i].sm.smCount = each;
  }
  return CUDA_SUCCESS;
}

CUresult Describe(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  COCONET_MAY_FAIL("cuDevResourceGenerateDesc");
  if (count != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM)
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *description = reinterpret_cast<CUdevResourceDesc>(static_cast<uintptr_t>(resources->sm.smCount));
  return CUDA_SUCCESS;
}

CUresult Create(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                unsigned flags) {
  COCONET_MAY_FAIL("cuGreenCtxCreate");
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM || description == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  Contexts& all = All();
  if (device < 0 || device >= all.devices->count) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> lock(all.mutex);
  *context = reinterpret_cast<CUgreenCtx>(++all.last);
  all.streams[*context] = 0;
  all.gpus[*context] = device;
  return CUDA_SUCCESS;
}

CUresult Destroy(CUgreenCtx context) {
  Contexts& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.streams.find(context);
  if (found == all.streams.end()) return CUDA_ERROR_INVALID_CONTEXT;
  all.left += found->second;
  all.streams.erase(found);
  return CUDA_SUCCESS;
}

CUresult MakeStream(CUstream* stream, CUgreenCtx context, unsigned flags, int) {
  COCONET_MAY_FAIL("cuGreenCtxStreamCreate");
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Contexts& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.streams.find(context);
  if (found == all.streams.end()) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = reinterpret_cast<CUstream>(new HostStream(ContextOf(all.gpus[context])));
  ++found->second;
  all.owners[*stream] = context;
  return CUDA_SUCCESS;
}

CUresult DestroyStream(CUstream stream) {
  Contexts& all = All();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (const auto owner = all.owners.find(stream); owner != all.owners.end()) {
      if (const auto context = all.streams.find(owner->second); context != all.streams.end())
        --context->second;
      all.owners.erase(owner);
    }
  }
  return all.destroy_stream(stream);
}

CUresult Launch(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  Contexts& all = All();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.launches += static_cast<int>(all.owners.count(config->hStream));
  }
  return all.launch(config, function, params, extra);
}

}  // namespace

HostGreen TakeHostGreen() {
  Contexts& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const HostGreen seen{static_cast<int>(all.streams.size()), static_cast<int>(all.owners.size()),
                       all.left, all.launches};
  all.launches = 0;
  return seen;
}

void FillGreenContexts(DriverApi& driver, const HostDevices& devices) {
  Contexts& all = All();
  all.devices = &devices;
  all.destroy_stream = driver.StreamDestroy;
  all.launch = driver.LaunchKernelEx;
  driver.DeviceGetDevResource = Resource;
  driver.DevSmResourceSplitByCount = Split;
  driver.DevResourceGenerateDesc = Describe;
  driver.GreenCtxCreate = Create;
  driver.GreenCtxDestroy = Destroy;
  driver.GreenCtxStreamCreate = MakeStream;
  driver.StreamDestroy = DestroyStream;
  driver.LaunchKernelEx = Launch;
}

}  // namespace coconet
