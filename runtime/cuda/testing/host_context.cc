#include "runtime/cuda/testing/host_context.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_traps.h"

namespace coconet {
namespace {

thread_local std::vector<CUcontext> pushed;  // the current one last

}  // namespace

CUcontext CurrentContext() { return pushed.empty() ? nullptr : pushed.back(); }

CUcontext ContextOf(CUdevice device) {
  return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(1 + device));
}

int CurrentHostDevice() {
  return static_cast<int>(reinterpret_cast<uintptr_t>(CurrentContext())) - 1;
}

void NeedContext(const char* call, CUcontext context) {
  if (CurrentContext() == context) return;
  std::fprintf(stderr, "%s: want the context of GPU %d, have %d current (-1: none)\n", call,
               static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1, CurrentHostDevice());
  std::abort();
}

void NeedContext(const char* call) {
  if (CurrentContext() != nullptr) return;
  std::fprintf(stderr, "%s: want a context, have none current\n", call);
  std::abort();
}

absl::Status OnThreadWith(CUcontext context, const std::function<absl::Status()>& body) {
  absl::Status status;
  std::thread thread([&] {
    if (context != nullptr) pushed.push_back(context);
    const std::vector<CUcontext> before = pushed;
    status = body();
    if (status.ok() && pushed != before)
      status = absl::InternalError("the calling thread's contexts were changed");
  });
  thread.join();
  return status;
}

void FillContexts(DriverApi& driver) {
  driver.DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    COCONET_MAY_FAIL("cuDevicePrimaryCtxRetain");
    *context = ContextOf(device);
    return CUDA_SUCCESS;
  };
  driver.DevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  driver.CtxGetCurrent = [](CUcontext* context) {
    CountCall("cuCtxGetCurrent");
    *context = CurrentContext();
    return CUDA_SUCCESS;
  };
  driver.CtxPushCurrent = [](CUcontext context) {
    COCONET_MAY_FAIL("cuCtxPushCurrent");
    pushed.push_back(context);
    return CUDA_SUCCESS;
  };
  driver.CtxPopCurrent = [](CUcontext* context) {
    CountCall("cuCtxPopCurrent");
    if (pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = pushed.back();
    pushed.pop_back();
    return CUDA_SUCCESS;
  };
}

}  // namespace coconet
