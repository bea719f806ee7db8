#include "runtime/cuda/testing/host_kernels.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_stream.h"
#include "runtime/cuda/testing/host_traps.h"
#include "runtime/kernel_abi.h"
#include "runtime/node/memory_object.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

struct Kernels {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, int> running;  // by device
};
Kernels& All() {
  static auto* all = new Kernels;
  return *all;
}

/// Exists while a kernel runs.
class Running {
 public:
  explicit Running(int device) : device_(device) {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().running[device_] += 1;
  }
  ~Running() {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().running[device_] -= 1;
    All().changed.notify_all();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  int device_;
};

CUresult Launch(const CUlaunchConfig* config, CUfunction function, void** params, void**) {
  const bool own = config->hStream == nullptr || config->hStream == CU_STREAM_PER_THREAD;
  if (!own)
    NeedContext("cuLaunchKernelEx", reinterpret_cast<HostStream*>(config->hStream)->context());
  COCONET_MAY_FAIL_IN("cuLaunchKernelEx");
  const auto kernel = reinterpret_cast<HostKernel>(function);
  GiveToHostStream(config->hStream,
                   [kernel, params = params[0], blocks = static_cast<int>(config->gridDimX),
                    device = CurrentHostDevice()] {
                     const Running running(device);
                     std::vector<std::thread> others;
                     for (int block = 1; block < blocks; ++block)
                       others.emplace_back(kernel, params, block, blocks);
                     kernel(params, 0, blocks);
                     for (std::thread& other : others) other.join();
                   });
  return CUDA_SUCCESS;
}

CUresult LoadLibrary(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                     CUlibraryOption*, void**, unsigned) {
  COCONET_MAY_FAIL("cuLibraryLoadData");
  const absl::StatusOr<MemoryObject> object = LoadFromMemory(ElfFile(code));
  *library = object.ok() ? reinterpret_cast<CUlibrary>(object->handle) : nullptr;
  return object.ok() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult GetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  COCONET_MAY_FAIL("cuLibraryGetKernel");
  *kernel = reinterpret_cast<CUkernel>(dlsym(library, name));
  return *kernel == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/// WaitFlag of the CUDA prelude.
bool WaitInHostKernel(Control* control, const unsigned* flag, unsigned expected, int peer, int step,
                      int slot) {
  const auto load = [](const unsigned* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); };
  const WaitEnd end = WaitUntil(
      {.timeout_ns = static_cast<int64_t>(control->timeout_ns)},
      [&] { return Reached(load(flag), expected); }, [&] { return load(control->stop) != 0; });
  if (end == WaitEnd::kReady) return true;
  if (__atomic_exchange_n(&control->claimed, 1u, __ATOMIC_ACQ_REL) == 0)
    control->failure = {peer, step, slot, expected, load(flag)};
  if (end == WaitEnd::kDeadline) __atomic_store_n(control->stop, control->self, __ATOMIC_RELEASE);
  return false;
}

}  // namespace

void AwaitHostKernels() {
  std::unique_lock<std::mutex> lock(All().mutex);
  All().changed.wait(lock, [device = CurrentHostDevice()] { return All().running[device] == 0; });
}

void FillKernels(DriverApi& driver) {
  driver.LibraryLoadData = LoadLibrary;
  driver.LibraryUnload = [](CUlibrary library) {
    AwaitHostKernels();
    dlclose(library);
    return CUDA_SUCCESS;
  };
  driver.LibraryGetKernel = GetKernel;
  driver.KernelGetFunction = [](CUfunction* function, CUkernel kernel) {
    COCONET_MAY_FAIL_IN("cuKernelGetFunction");
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  };
  driver.FuncLoad = [](CUfunction) {
    COCONET_MAY_FAIL_IN("cuFuncLoad");
    return CUDA_SUCCESS;
  };
  driver.FuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    COCONET_MAY_FAIL_IN("cuFuncGetAttribute");
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
    return CUDA_SUCCESS;
  };
  driver.OccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
    COCONET_MAY_FAIL_IN("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *blocks = 2;
    return CUDA_SUCCESS;
  };
  driver.LaunchKernelEx = Launch;
}

Control ControlOfHostKernels() {
  static constexpr int kMostRanks = 64;
  static const unsigned char none_is_near[kMostRanks + Beside::kCount] = {};
  Control control{};
  control.near = none_is_near;
  control.wait = WaitInHostKernel;
  return control;
}

}  // namespace coconet
