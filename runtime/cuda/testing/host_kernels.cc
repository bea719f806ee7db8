#include "runtime/cuda/testing/host_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/cuda/driver/tensor_map.h"
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
  std::map<int, int> running;             // by device
  std::map<CUfunction, int> most_shared;  // of those that cuFuncSetAttribute was called for
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

const HostDevices* gpus = nullptr;

/// The most dynamic shared memory that a launch may give a block.
int MostShared(CUfunction function) {
  constexpr int kByDefault = 48 << 10;
  const std::lock_guard<std::mutex> lock(All().mutex);
  const auto set = All().most_shared.find(function);
  return set != All().most_shared.end() ? set->second
                                        : std::max(kByDefault - gpus->declared_shared_bytes, 0);
}

CUresult GetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  COCONET_MAY_FAIL_IN("cuFuncGetAttribute");
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = gpus->declared_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = MostShared(function);
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}

CUresult SetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  COCONET_MAY_FAIL_IN("cuFuncSetAttribute");
  const int most = gpus->shared_bytes_per_block - gpus->declared_shared_bytes;
  const bool is_known = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  if (!is_known || value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().most_shared[function] = value;
  return CUDA_SUCCESS;
}

/// Two, as far as their shared memory fits; the driver keeps 1 KiB of each.
CUresult BlocksOfMultiprocessor(int* blocks, CUfunction function, int, size_t shared) {
  COCONET_MAY_FAIL_IN("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  constexpr size_t kKept = 1 << 10;
  const size_t all = gpus->shared_bytes_per_block + kKept,
               block = shared + gpus->declared_shared_bytes + kKept;
  const bool may = shared <= static_cast<size_t>(MostShared(function));
  *blocks = may ? static_cast<int>(std::min<size_t>(all / block, 2)) : 0;
  return CUDA_SUCCESS;
}

CUresult EncodeTensorMap(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                         const cuuint64_t* extents, const cuuint64_t* strides,
                         const cuuint32_t* box, const cuuint32_t* steps,
                         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  COCONET_MAY_FAIL_IN("cuTensorMapEncodeTiled");
  const TiledTensor tensor{type,  rank,       address, extents,   strides, box,
                           steps, interleave, swizzle, promotion, fill};
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || !MistakeOfTensorMap(tensor).empty())
    return CUDA_ERROR_INVALID_VALUE;
  HostTensorMap made;
  made.address = address, made.type = type, made.rank = rank;
  const cuuint32_t dims = std::min(rank, 3u);
  std::copy_n(extents, dims, made.extents);
  std::copy_n(strides, dims - 1, made.strides);
  std::copy_n(box, dims, made.box);
  static_assert(sizeof made == sizeof *map);
  std::memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

CUresult Launch(const CUlaunchConfig* config, CUfunction function, void** params, void**) {
  const bool own = config->hStream == nullptr || config->hStream == CU_STREAM_PER_THREAD;
  if (!own)
    NeedContext("cuLaunchKernelEx", reinterpret_cast<HostStream*>(config->hStream)->context());
  COCONET_MAY_FAIL_IN("cuLaunchKernelEx");
  if (config->sharedMemBytes > static_cast<unsigned>(MostShared(function)))
    return CUDA_ERROR_INVALID_VALUE;
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

void ForgetSharedMemory() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().most_shared.clear();
}

void FillKernels(DriverApi& driver, const HostDevices& devices) {
  gpus = &devices;
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
  driver.FuncGetAttribute = GetAttribute;
  driver.FuncSetAttribute = SetAttribute;
  driver.OccupancyMaxActiveBlocksPerMultiprocessor = BlocksOfMultiprocessor;
  driver.LaunchKernelEx = Launch;
  driver.TensorMapEncodeTiled = EncodeTensorMap;
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
