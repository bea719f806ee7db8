#include "runtime/cuda/testing/host_driver.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/testing/host_graph.h"
#include "runtime/cuda/testing/host_green.h"
#include "runtime/cuda/testing/host_heap.h"
#include "runtime/cuda/testing/host_kernels.h"
#include "runtime/cuda/testing/host_stream.h"
#include "runtime/cuda/testing/host_traps.h"
#include "runtime/cuda/testing/host_virtual.h"

namespace coconet {
namespace {

// ---- Errors that tests inject (host_traps.h)

struct Trap {
  std::mutex mutex;
  int left = 0;
  CUresult result = CUDA_SUCCESS;
  std::string call, only;
};
Trap& TheTrap() {
  static auto* trap = new Trap;
  return *trap;
}

}  // namespace

CUresult Sprung(const char* call) {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  if (!trap.only.empty() && trap.only != call) return CUDA_SUCCESS;
  if (trap.left == 0 || --trap.left > 0) return CUDA_SUCCESS;
  trap.call = call;
  return trap.result;
}

namespace {

// ---- Devices and memory

HostDevices& Devices() {
  static auto* devices = new HostDevices;
  return *devices;
}
thread_local CUcontext current = nullptr;  // 1 + the device's number

CUresult Attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  COCONET_MAY_FAIL("cuDeviceGetAttribute");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = Devices().multiprocessors;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      *value = Devices().multicast;
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}

// ---- Streams and events (host_stream.h)

HostStream* Of(CUstream stream) { return reinterpret_cast<HostStream*>(stream); }

/// Does the work at once for the null stream and the calling thread's own.
void Give(CUstream stream, std::function<void()> work) {
  if (stream == nullptr || stream == CU_STREAM_PER_THREAD) return work();
  Of(stream)->Give(std::move(work));
}

HostEvent* Of(CUevent event) { return reinterpret_cast<HostEvent*>(event); }

CUresult Record(CUevent event, CUstream stream) {
  COCONET_MAY_FAIL("cuEventRecord");
  RecordIn(*Of(stream), *Of(event));
  return CUDA_SUCCESS;
}

CUresult WaitForEvent(CUstream stream, CUevent event, unsigned) {
  COCONET_MAY_FAIL("cuStreamWaitEvent");
  return WaitIn(*Of(stream), *Of(event)) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

void FillMemory(DriverApi& driver) {
  driver.MemAlloc = [](CUdeviceptr* address, size_t bytes) {
    COCONET_MAY_FAIL("cuMemAlloc");
    return HostHeap::Allocate(address, bytes, current, Devices().memory_bytes);
  };
  driver.MemFree = [](CUdeviceptr address) {
    AwaitHostKernels();
    return HostHeap::Free(address);
  };
  driver.IpcGetMemHandle = [](CUipcMemHandle* handle, CUdeviceptr address) {
    COCONET_MAY_FAIL("cuIpcGetMemHandle");
    return HostHeap::Export(handle, address);
  };
  driver.IpcOpenMemHandle = [](CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
    COCONET_MAY_FAIL("cuIpcOpenMemHandle");
    if (!Devices().opens_memory) return CUDA_ERROR_MAP_FAILED;
    return Devices().reach_each_other ? HostHeap::Import(address, handle)
                                      : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  };
  driver.IpcCloseMemHandle = driver.MemFree;
  driver.MemHostRegister = [](void*, size_t, unsigned) { return Sprung("cuMemHostRegister"); };
  driver.MemHostUnregister = [](void*) {
    AwaitHostKernels();
    return CUDA_SUCCESS;
  };
  driver.MemHostGetDevicePointer = [](CUdeviceptr* address, void* memory, unsigned) {
    COCONET_MAY_FAIL("cuMemHostGetDevicePointer");
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  driver.MemHostAlloc = [](void** address, size_t bytes, unsigned) {
    COCONET_MAY_FAIL("cuMemHostAlloc");
    *address = std::calloc(bytes, 1);
    return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  driver.MemFreeHost = [](void* address) {
    AwaitHostKernels();
    std::free(address);
    return CUDA_SUCCESS;
  };
  driver.MemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    COCONET_MAY_FAIL("cuMemcpyAsync");
    Give(stream, [=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
    return CUDA_SUCCESS;
  };
  driver.MemsetD2D8Async = [](CUdeviceptr at, size_t pitch, unsigned char byte, size_t width,
                              size_t height, CUstream stream) {
    COCONET_MAY_FAIL("cuMemsetD2D8Async");
    if (height > 1 && pitch < width) return CUDA_ERROR_INVALID_VALUE;
    Give(stream, [=] {
      for (size_t row = 0; row < height; ++row)
        std::memset(reinterpret_cast<void*>(at + row * pitch), byte, width);
    });
    return CUDA_SUCCESS;
  };
  driver.MemsetD8Async = [](CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream) {
    COCONET_MAY_FAIL("cuMemsetD8Async");
    Give(stream, [=] { std::memset(reinterpret_cast<void*>(at), byte, bytes); });
    return CUDA_SUCCESS;
  };
}

void FillDevices(DriverApi& driver) {
  driver.DriverGetVersion = [](int* version) {
    COCONET_MAY_FAIL("cuDriverGetVersion");
    *version = Devices().driver;
    return CUDA_SUCCESS;
  };
  driver.DeviceGetCount = [](int* count) {
    COCONET_MAY_FAIL("cuDeviceGetCount");
    *count = Devices().count;
    return CUDA_SUCCESS;
  };
  driver.DeviceGet = [](CUdevice* device, int ordinal) {
    COCONET_MAY_FAIL("cuDeviceGet");
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  driver.DeviceGetName = [](char* name, int size, CUdevice) {
    COCONET_MAY_FAIL("cuDeviceGetName");
    std::strncpy(name, "a GPU that is none", size);
    return CUDA_SUCCESS;
  };
  driver.DeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
    COCONET_MAY_FAIL("cuDeviceGetUuid");
    uuid->bytes[0] = static_cast<char>(1 + device);
    return CUDA_SUCCESS;
  };
  driver.DeviceTotalMem = [](size_t* bytes, CUdevice) {
    COCONET_MAY_FAIL("cuDeviceTotalMem");
    *bytes = static_cast<size_t>(Devices().memory_bytes);
    return CUDA_SUCCESS;
  };
  driver.DeviceGetAttribute = Attribute;
  driver.DeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) {
    COCONET_MAY_FAIL("cuDeviceCanAccessPeer");
    *can = Devices().reach_each_other;
    return CUDA_SUCCESS;
  };
  driver.CtxEnablePeerAccess = [](CUcontext, unsigned) { return Sprung("cuCtxEnablePeerAccess"); };
  driver.DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    COCONET_MAY_FAIL("cuDevicePrimaryCtxRetain");
    *context = reinterpret_cast<CUcontext>(static_cast<uintptr_t>(1 + device));
    return CUDA_SUCCESS;
  };
  driver.DevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  driver.CtxSetCurrent = [](CUcontext context) {
    current = context;
    return CUDA_SUCCESS;
  };
}

void FillStreams(DriverApi& driver) {
  driver.StreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    COCONET_MAY_FAIL("cuStreamCreateWithPriority");
    *stream = reinterpret_cast<CUstream>(new HostStream);
    return CUDA_SUCCESS;
  };
  driver.StreamDestroy = [](CUstream stream) {
    delete Of(stream);
    return CUDA_SUCCESS;
  };
  driver.StreamSynchronize = [](CUstream stream) {
    const bool threads = stream != nullptr && stream != CU_STREAM_PER_THREAD;
    if (threads && Of(stream)->capture() != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (threads) Of(stream)->Finish();
    return Sprung("cuStreamSynchronize");
  };
  driver.StreamQuery = [](CUstream stream) {
    return Of(stream)->Idle() ? Sprung("cuStreamQuery") : CUDA_ERROR_NOT_READY;
  };
  driver.StreamWaitEvent = WaitForEvent;
  driver.EventCreate = [](CUevent* event, unsigned) {
    COCONET_MAY_FAIL("cuEventCreate");
    *event = reinterpret_cast<CUevent>(new HostEvent);
    return CUDA_SUCCESS;
  };
  driver.EventDestroy = [](CUevent event) {
    delete Of(event);
    return CUDA_SUCCESS;
  };
  driver.EventRecord = Record;
  driver.EventElapsedTime = [](float* ms, CUevent from, CUevent to) {
    COCONET_MAY_FAIL("cuEventElapsedTime");
    *ms = std::chrono::duration<float, std::milli>(Of(to)->when() - Of(from)->when()).count();
    return CUDA_SUCCESS;
  };
  driver.EventQuery = [](CUevent event) {
    return Of(event)->Idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
}

}  // namespace

const DriverApi& HostDriver() {
  static const DriverApi* driver = [] {
    auto* made = new DriverApi;
    made->GetErrorName = [](CUresult, const char** name) {
      *name = "CUDA_ERROR_OF_A_TEST";
      return CUDA_SUCCESS;
    };
    made->GetErrorString = [](CUresult, const char** words) {
      *words = "what a driver says";
      return CUDA_SUCCESS;
    };
    FillDevices(*made);
    FillMemory(*made);
    FillStreams(*made);
    FillKernels(*made);
    FillVirtualMemory(*made, Devices());
    FillGraphs(*made);
    FillGreenContexts(*made, Devices());
    return made;
  }();
  return *driver;
}

void GiveToHostStream(CUstream stream, std::function<void()> work) {
  Give(stream, std::move(work));
}

int CurrentHostDevice() { return static_cast<int>(reinterpret_cast<uintptr_t>(current)) - 1; }

void SetHostDevices(const HostDevices& devices) { Devices() = devices; }

void FailCall(int call, CUresult result, const std::string& only) {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  trap.left = call;
  trap.result = result;
  trap.only = only;
  trap.call.clear();
}

std::string FailedCall() {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  return trap.call;
}

}  // namespace coconet
