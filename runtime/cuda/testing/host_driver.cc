#include "runtime/cuda/testing/host_driver.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
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
  int device = -1;                // whose calls count and whose context ends; -1: of all, and none
  std::map<int, CUresult> ended;  // by device
  std::map<std::string, int> calls;
};
Trap& TheTrap() {
  static auto* trap = new Trap;
  return *trap;
}

}  // namespace

void CountCall(const char* call) {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  ++trap.calls[call];
}

CUresult EndOfContext() {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  const auto ended = trap.ended.find(CurrentHostDevice());
  return ended == trap.ended.end() ? CUDA_SUCCESS : ended->second;
}

CUresult Sprung(const char* call) {
  CountCall(call);
  if (const CUresult end = EndOfContext(); end != CUDA_SUCCESS) return end;
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  if (trap.device >= 0 && trap.device != CurrentHostDevice()) return CUDA_SUCCESS;
  if (!trap.only.empty() && trap.only != call) return CUDA_SUCCESS;
  if (trap.left == 0 || --trap.left > 0) return CUDA_SUCCESS;
  trap.call = call;
  if (trap.device >= 0) trap.ended[trap.device] = trap.result;
  return trap.result;
}

namespace {

// ---- Devices and memory

HostDevices& Devices() {
  static auto* devices = new HostDevices;
  return *devices;
}

CUresult Attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  COCONET_MAY_FAIL("cuDeviceGetAttribute");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = Devices().major;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = Devices().multiprocessors;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = Devices().shared_bytes_per_block;
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

CUresult PointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  COCONET_MAY_FAIL("cuPointerGetAttribute");
  HostBlock block;
  if (const CUresult found = HostHeap::Find(address, &block); found != CUDA_SUCCESS) return found;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = block.base;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(value) = block.bytes;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = static_cast<int>(reinterpret_cast<uintptr_t>(block.context)) - 1;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<bool*>(value) = false;
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<bool*>(value) = block.exportable;
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
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

/// That of a stream; the current one for the streams that each context has.
CUcontext ContextOf(CUstream stream) {
  const bool own = stream == nullptr || stream == CU_STREAM_PER_THREAD;
  if (own) NeedContext("a call on the default stream");
  return own ? CurrentContext() : Of(stream)->context();
}

CUresult Record(CUevent event, CUstream stream) {
  NeedContext("cuEventRecord", Of(event)->context());
  COCONET_MAY_FAIL_IN("cuEventRecord", ContextOf(stream));
  RecordIn(*Of(stream), *Of(event));
  return CUDA_SUCCESS;
}

CUresult WaitForEvent(CUstream stream, CUevent event, unsigned) {
  COCONET_MAY_FAIL_IN("cuStreamWaitEvent", ContextOf(stream));
  return WaitIn(*Of(stream), *Of(event)) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

void FillMemory(DriverApi& driver) {
  driver.MemAlloc = [](CUdeviceptr* address, size_t bytes) {
    COCONET_MAY_FAIL_IN("cuMemAlloc");
    return HostHeap::Allocate(address, bytes, CurrentContext(), Devices().memory_bytes);
  };
  driver.MemFree = [](CUdeviceptr address) {
    NeedContext("cuMemFree");
    AwaitHostKernels();
    return HostHeap::Free(address);
  };
  driver.PointerGetAttribute = PointerAttribute;
  driver.IpcGetMemHandle = [](CUipcMemHandle* handle, CUdeviceptr address) {
    COCONET_MAY_FAIL_IN("cuIpcGetMemHandle");
    return HostHeap::Export(handle, address);
  };
  driver.IpcOpenMemHandle = [](CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
    COCONET_MAY_FAIL_IN("cuIpcOpenMemHandle");
    if (!Devices().opens_memory) return CUDA_ERROR_MAP_FAILED;
    return Devices().reach_each_other ? HostHeap::Import(address, handle)
                                      : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  };
  driver.IpcCloseMemHandle = driver.MemFree;
  driver.MemHostRegister = [](void*, size_t, unsigned) {
    COCONET_MAY_FAIL_IN("cuMemHostRegister");
    return CUDA_SUCCESS;
  };
  driver.MemHostUnregister = [](void*) {
    NeedContext("cuMemHostUnregister");
    AwaitHostKernels();
    return CUDA_SUCCESS;
  };
  driver.MemHostGetDevicePointer = [](CUdeviceptr* address, void* memory, unsigned) {
    COCONET_MAY_FAIL_IN("cuMemHostGetDevicePointer");
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  driver.MemHostAlloc = [](void** address, size_t bytes, unsigned) {
    COCONET_MAY_FAIL_IN("cuMemHostAlloc");
    *address = std::calloc(bytes, 1);
    return *address == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  driver.MemFreeHost = [](void* address) {
    NeedContext("cuMemFreeHost");
    AwaitHostKernels();
    std::free(address);
    return CUDA_SUCCESS;
  };
  driver.MemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    COCONET_MAY_FAIL_IN("cuMemcpyAsync", ContextOf(stream));
    Give(stream, [=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
    return CUDA_SUCCESS;
  };
  driver.MemsetD2D8Async = [](CUdeviceptr at, size_t pitch, unsigned char byte, size_t width,
                              size_t height, CUstream stream) {
    COCONET_MAY_FAIL_IN("cuMemsetD2D8Async", ContextOf(stream));
    if (height > 1 && pitch < width) return CUDA_ERROR_INVALID_VALUE;
    Give(stream, [=] {
      for (size_t row = 0; row < height; ++row)
        std::memset(reinterpret_cast<void*>(at + row * pitch), byte, width);
    });
    return CUDA_SUCCESS;
  };
  driver.MemsetD8Async = [](CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream) {
    COCONET_MAY_FAIL_IN("cuMemsetD8Async", ContextOf(stream));
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
  driver.DeviceGetP2PAttribute = [](int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                    CUdevice to) {
    COCONET_MAY_FAIL("cuDeviceGetP2PAttribute");
    const HostDevices& devices = Devices();
    const bool rank = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
    *value = devices.link != nullptr ? devices.link(attribute, from, to)
             : rank                  ? 0
                                     : static_cast<int>(devices.reach_each_other);
    return CUDA_SUCCESS;
  };
  driver.CtxEnablePeerAccess = [](CUcontext, unsigned) {
    COCONET_MAY_FAIL_IN("cuCtxEnablePeerAccess");
    return CUDA_SUCCESS;
  };
}

void FillStreams(DriverApi& driver) {
  driver.StreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    COCONET_MAY_FAIL_IN("cuStreamCreateWithPriority");
    *stream = reinterpret_cast<CUstream>(new HostStream(CurrentContext()));
    return CUDA_SUCCESS;
  };
  driver.StreamDestroy = [](CUstream stream) {
    NeedContext("cuStreamDestroy", ContextOf(stream));
    delete Of(stream);
    return CUDA_SUCCESS;
  };
  driver.StreamSynchronize = [](CUstream stream) {
    NeedContext("cuStreamSynchronize", ContextOf(stream));
    if (const CUresult end = EndOfContext(); end != CUDA_SUCCESS) return end;
    const bool threads = stream != nullptr && stream != CU_STREAM_PER_THREAD;
    if (threads && Of(stream)->capture() != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (threads) Of(stream)->Finish();
    return Sprung("cuStreamSynchronize");
  };
  driver.StreamQuery = [](CUstream stream) {
    NeedContext("cuStreamQuery", ContextOf(stream));
    if (const CUresult end = EndOfContext(); end != CUDA_SUCCESS) return end;
    const bool threads = stream != nullptr && stream != CU_STREAM_PER_THREAD;
    return !threads || Of(stream)->Idle() ? Sprung("cuStreamQuery") : CUDA_ERROR_NOT_READY;
  };
  driver.StreamWaitEvent = WaitForEvent;
  driver.EventCreate = [](CUevent* event, unsigned) {
    COCONET_MAY_FAIL_IN("cuEventCreate");
    *event = reinterpret_cast<CUevent>(new HostEvent(CurrentContext()));
    return CUDA_SUCCESS;
  };
  driver.EventDestroy = [](CUevent event) {
    NeedContext("cuEventDestroy", Of(event)->context());
    delete Of(event);
    return CUDA_SUCCESS;
  };
  driver.EventRecord = Record;
  driver.EventElapsedTime = [](float* ms, CUevent from, CUevent to) {
    COCONET_MAY_FAIL_IN("cuEventElapsedTime", Of(from)->context());
    *ms = std::chrono::duration<float, std::milli>(Of(to)->when() - Of(from)->when()).count();
    return CUDA_SUCCESS;
  };
  driver.EventQuery = [](CUevent event) {
    NeedContext("cuEventQuery", Of(event)->context());
    if (const CUresult end = EndOfContext(); end != CUDA_SUCCESS) return end;
    if (Of(event)->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (!Of(event)->Idle()) return CUDA_ERROR_NOT_READY;
    CountCall("cuEventQuery");
    return CUDA_SUCCESS;
  };
}

/// The real name of an error that ends a context, which tests look for.
const char* NameOf(CUresult result) {
#define COCONET_NAME(error) \
  case error:               \
    return #error
  switch (result) {
    COCONET_NAME(CUDA_ERROR_DEINITIALIZED);
    COCONET_NAME(CUDA_ERROR_ECC_UNCORRECTABLE);
    COCONET_NAME(CUDA_ERROR_NVLINK_UNCORRECTABLE);
    COCONET_NAME(CUDA_ERROR_CONTAINED);
    COCONET_NAME(CUDA_ERROR_ILLEGAL_ADDRESS);
    COCONET_NAME(CUDA_ERROR_LAUNCH_TIMEOUT);
    COCONET_NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    COCONET_NAME(CUDA_ERROR_ASSERT);
    COCONET_NAME(CUDA_ERROR_HARDWARE_STACK_ERROR);
    COCONET_NAME(CUDA_ERROR_ILLEGAL_INSTRUCTION);
    COCONET_NAME(CUDA_ERROR_MISALIGNED_ADDRESS);
    COCONET_NAME(CUDA_ERROR_INVALID_ADDRESS_SPACE);
    COCONET_NAME(CUDA_ERROR_INVALID_PC);
    COCONET_NAME(CUDA_ERROR_LAUNCH_FAILED);
    COCONET_NAME(CUDA_ERROR_TENSOR_MEMORY_LEAK);
    COCONET_NAME(CUDA_ERROR_MPS_RPC_FAILURE);
    COCONET_NAME(CUDA_ERROR_MPS_CLIENT_TERMINATED);
    COCONET_NAME(CUDA_ERROR_EXTERNAL_DEVICE);
    default:
      return "CUDA_ERROR_OF_A_TEST";
  }
#undef COCONET_NAME
}

}  // namespace

const DriverApi& HostDriver() {
  static const DriverApi* driver = [] {
    auto* made = new DriverApi;
    made->GetErrorName = [](CUresult result, const char** name) {
      *name = NameOf(result);
      return CUDA_SUCCESS;
    };
    made->GetErrorString = [](CUresult, const char** words) {
      *words = "what a driver says";
      return CUDA_SUCCESS;
    };
    FillDevices(*made);
    FillContexts(*made);
    FillMemory(*made);
    FillStreams(*made);
    FillKernels(*made, Devices());
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

void SetHostDevices(const HostDevices& devices) {
  Devices() = devices;
  ForgetSharedMemory();
}

void FailCall(int call, CUresult result, const std::string& only) {
  EndContextAt(call, result, /*device=*/-1, only);
}

void EndContextAt(int call, CUresult result, int device, const std::string& only) {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  trap.left = call;
  trap.result = result;
  trap.device = device;
  trap.only = only;
  trap.call.clear();
  trap.ended.clear();
}

std::map<std::string, int> HostCalls() {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  return trap.calls;
}

std::map<std::string, int> HostCallsOf(const std::function<void()>& body) {
  const std::map<std::string, int> before = HostCalls();
  body();
  std::map<std::string, int> calls = HostCalls();
  for (const auto& [call, count] : before) {
    if ((calls[call] -= count) == 0) calls.erase(call);
  }
  return calls;
}

std::string FailedCall() {
  Trap& trap = TheTrap();
  const std::lock_guard<std::mutex> lock(trap.mutex);
  return trap.call;
}

}  // namespace coconet
