#include "runtime/simt/simt_driver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "runtime/cuda/driver/tensor_map.h"
#include "runtime/node/wait.h"
#include "runtime/simt/device_streams.h"
#include "runtime/simt/simt_module.h"

namespace coconet {
namespace {

constexpr int kMultiprocessors = 4;  // few, so that search tries few blocks
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kSharedPerMultiprocessor = 228 << 10, kSharedPerBlock = 227 << 10;  // as Hopper has
constexpr int64_t kMemoryBytes = int64_t{4} << 30;

/// A CUcontext points to one: a device of a simulation.
struct Context {
  Simulation* simulation;
  int rank;
};
/// The GPUs that the calling thread sees.
struct Seen {
  std::shared_ptr<Simulation> simulation;
  std::vector<Context> contexts;
};
thread_local Seen seen;

/// The calling thread as a host thread of the simulation of its current context.
struct ThisHost final : WaitObserver {
  const Context* context = nullptr;
  std::unique_ptr<SimtHost> host;

  void Begin(absl::FunctionRef<bool()> ready) override {
    context->simulation->WaitForHost(*host, ready);
  }
  void End() override { context->simulation->GoOn(*host); }

  void Use(const Context* next) {
    const Simulation* before = context == nullptr ? nullptr : context->simulation;
    if (next == nullptr || next->simulation != before) Leave();
    context = next;
    if (next != nullptr && host == nullptr)
      host = next->simulation->Attach(absl::StrCat("the host of rank ", next->rank));
    if (host != nullptr) ObserveWaits(this);
  }
  void Leave() {
    ObserveWaits(nullptr);
    if (host != nullptr) context->simulation->Detach(std::move(host));
    context = nullptr;
  }
  ~ThisHost() override { Leave(); }
};
thread_local ThisHost here;
thread_local std::vector<CUcontext> pushed;  // the calling thread's contexts, the current one last

Simulation& Gpus() { return *here.context->simulation; }
/// Null: the stream whose work is done at once.
SimtStream* Of(CUstream stream) {
  return stream == CU_STREAM_PER_THREAD ? nullptr : reinterpret_cast<SimtStream*>(stream);
}
SimtEvent* Of(CUevent event) { return reinterpret_cast<SimtEvent*>(event); }
SimtGraph* Of(CUgraph graph) { return reinterpret_cast<SimtGraph*>(graph); }
SimtModule::Function& Of(CUfunction function) {
  return *reinterpret_cast<SimtModule::Function*>(function);
}
template <class T = void>
T* At(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

CUresult Outcome() { return Gpus().mistake().empty() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED; }

CUresult Give(CUstream stream, SimtWork work) {
  return Gpus().Use().streams.Give(*here.host, Of(stream), std::move(work))
             ? CUDA_SUCCESS
             : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

/// What most functions do: one of their arguments receives the answer.
template <class T>
CUresult Answer(T* to, const T& answer) {
  *to = answer;
  return CUDA_SUCCESS;
}
/// Deletes the object of ours that a handle stands for.
template <class T, class Handle>
CUresult Delete(Handle handle) {
  delete reinterpret_cast<T*>(handle);
  return CUDA_SUCCESS;
}
CUresult FreeAt(void* address) {
  return Gpus().Use().machine.memory().Free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// An instantiated graph, with a stream for each branch but the first.
struct Launchable {
  std::vector<std::pair<int, SimtWork>> work;
  std::vector<SimtStream*> others;
};

void FillErrors(DriverApi& driver) {
  driver.GetErrorName = [](CUresult result, const char** name) {
    *name = result == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                               : "an error of the simulated driver";
    return CUDA_SUCCESS;
  };
  driver.GetErrorString = [](CUresult, const char** words) {
    static thread_local std::string text;
    text = here.context == nullptr ? "" : Gpus().mistake();
    *words = text.c_str();
    return CUDA_SUCCESS;
  };
}

void FillDevices(DriverApi& driver) {
  driver.DriverGetVersion = [](int* version) { return Answer(version, kLeastDriver); };
  driver.DeviceGetCount = [](int* count) {
    return Answer(count, static_cast<int>(seen.contexts.size()));
  };
  driver.DeviceGet = [](CUdevice* device, int ordinal) { return Answer(device, ordinal); };
  driver.DeviceGetName = [](char* name, int size, CUdevice) {
    std::strncpy(name, "simulated GPU", size);
    return CUDA_SUCCESS;
  };
  driver.DeviceGetUuid = [](CUuuid* uuid, CUdevice device) {
    std::memcpy(uuid->bytes, &device, sizeof device);
    return CUDA_SUCCESS;
  };
  driver.DeviceTotalMem = [](size_t* bytes, CUdevice) {
    return Answer(bytes, static_cast<size_t>(kMemoryBytes));
  };
  driver.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    const int resident = seen.simulation->options().resident_blocks;
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return Answer(value, resident > 0 ? resident : kMultiprocessors);
      case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return Answer(value, kThreadsPerMultiprocessor);
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return Answer(value, kSharedPerMultiprocessor);
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return Answer(value, kSharedPerBlock);
      default:  // CUdevice_attribute is NVIDIA's, and grows
        return Answer(value, 0);
    }
  };
  driver.DeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) { return Answer(can, 1); };
  driver.DeviceGetP2PAttribute = [](int* value, CUdevice_P2PAttribute attribute, CUdevice,
                                    CUdevice) {
    return Answer(value, attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1);
  };
  driver.CtxEnablePeerAccess = [](CUcontext, unsigned) { return CUDA_SUCCESS; };
  driver.DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    return Answer(context, reinterpret_cast<CUcontext>(&seen.contexts[device]));
  };
  driver.DevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  driver.CtxGetCurrent = [](CUcontext* context) {
    return Answer(context, pushed.empty() ? nullptr : pushed.back());
  };
  driver.CtxPushCurrent = [](CUcontext context) {
    pushed.push_back(context);
    here.Use(reinterpret_cast<const Context*>(context));
    return CUDA_SUCCESS;
  };
  driver.CtxPopCurrent = [](CUcontext* context) {
    if (pushed.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = pushed.back();
    pushed.pop_back();
    // Without a context the thread remains one of the simulation's, which waits for it.
    if (!pushed.empty()) here.Use(reinterpret_cast<const Context*>(pushed.back()));
    return CUDA_SUCCESS;
  };
}

void FillMemory(DriverApi& driver) {
  driver.MemAlloc = [](CUdeviceptr* address, size_t bytes) {
    const SimtBuffer* made = Gpus().Use().machine.memory().Allocate(bytes, here.context->rank);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    return Answer(address, reinterpret_cast<CUdeviceptr>(made->base()));
  };
  driver.MemFree = [](CUdeviceptr address) { return FreeAt(At(address)); };
  driver.PointerGetAttribute = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.IpcGetMemHandle = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.IpcOpenMemHandle = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.IpcCloseMemHandle = [](auto...) { return CUDA_ERROR_NOT_SUPPORTED; };
  driver.MemHostRegister = [](void* base, size_t bytes, unsigned) {
    const Simulation::Locked gpus = Gpus().Use();
    gpus.machine.memory().Register(base, bytes);
    gpus.machine.checker().BeginPlan();  // its kernels are told by these words to stop
    return CUDA_SUCCESS;
  };
  driver.MemHostUnregister = [](void* base) {
    Gpus().Use().machine.memory().Unregister(base);
    return CUDA_SUCCESS;
  };
  driver.MemHostGetDevicePointer = [](CUdeviceptr* address, void* memory, unsigned) {
    return Answer(address, reinterpret_cast<CUdeviceptr>(memory));
  };
  driver.MemHostAlloc = [](void** address, size_t bytes, unsigned) {
    SimtBuffer* made = Gpus().Use().machine.memory().Allocate(bytes, here.context->rank);
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    made->shadow().Initialize();  // the host writes it without the simulation
    *address = made->base();
    return CUDA_SUCCESS;
  };
  driver.MemFreeHost = FreeAt;
  driver.MemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return Give(stream, CopyWork{At(to), At(from), bytes});
  };
  driver.MemsetD2D8Async = [](CUdeviceptr at, size_t pitch, unsigned char byte, size_t width,
                              size_t height, CUstream stream) {
    if (height > 1 && pitch < width) return CUDA_ERROR_INVALID_VALUE;
    return Give(stream, FillWork{At(at), pitch, byte, width, height});
  };
  driver.MemsetD8Async = [](CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream) {
    return Give(stream, FillWork{At(at), bytes, byte, bytes, 1});
  };
}

void FillStreams(DriverApi& driver) {
  driver.StreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    *stream = reinterpret_cast<CUstream>(Gpus().Use().streams.Make(here.context->rank));
    return *stream == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  driver.StreamSynchronize = [](CUstream stream) {
    if (Of(stream) == nullptr) return CUDA_SUCCESS;
    if (Of(stream)->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    while (!Gpus().Await(*here.host, Of(stream))) continue;
    return Outcome();
  };
  driver.StreamDestroy = [](CUstream stream) {
    while (!Gpus().Await(*here.host, Of(stream))) continue;
    Gpus().Use().streams.Destroy(Of(stream));
    return CUDA_SUCCESS;
  };
  driver.StreamQuery = [](CUstream stream) {
    const bool done = Of(stream) == nullptr || Gpus().Await(*here.host, Of(stream));
    return done ? Outcome() : CUDA_ERROR_NOT_READY;
  };
  driver.StreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    return Give(stream, AwaitWork{Of(event), 0});
  };
  driver.EventCreate = [](CUevent* event, unsigned) {
    return Answer(event, reinterpret_cast<CUevent>(new SimtEvent));
  };
  driver.EventDestroy = Delete<SimtEvent>;
  driver.EventRecord = [](CUevent event, CUstream stream) {
    return Give(stream, RecordWork{Of(event), 0});
  };
  driver.EventQuery = [](CUevent event) {
    return Gpus().Await(*here.host, Of(event)) ? Outcome() : CUDA_ERROR_NOT_READY;
  };
  driver.EventElapsedTime = [](float* ms, CUevent from, CUevent to) {
    const uint64_t ns = Of(to)->when_ns - Of(from)->when_ns;
    return Answer(ms, static_cast<float>(static_cast<double>(ns) / 1e6));
  };
}

CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return Answer(value, Of(function).most_shared);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return Answer(value, 0);  // arrays of a text are made when a thread comes to them
    default:
      return CUDA_ERROR_NOT_SUPPORTED;  // a simulated multiprocessor has no registers
  }
}

CUresult EncodeTensorMap(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                         const cuuint64_t* extents, const cuuint64_t* strides,
                         const cuuint32_t* box, const cuuint32_t* steps,
                         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const TiledTensor tensor{type,  rank,       address, extents,   strides, box,
                           steps, interleave, swizzle, promotion, fill};
  if (!MistakeOfTensorMap(tensor).empty()) return CUDA_ERROR_INVALID_VALUE;
  const bool of_many = rank == 3;
  const bool is_simple =
      (rank == 2 || of_many) && steps[1] == 1 && (!of_many || (steps[2] == 1 && box[2] == 1)) &&
      swizzle == CU_TENSOR_MAP_SWIZZLE_128B && fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  if (!is_simple) return CUDA_ERROR_NOT_SUPPORTED;
  const SimtTensorMap made{address,
                           extents[0],
                           extents[1],
                           strides[0],
                           of_many ? extents[2] : 0,
                           of_many ? strides[1] : 0,
                           box[0],
                           box[1],
                           ElementBytes(type),
                           kSimtTensorMap};
  static_assert(sizeof made <= sizeof *map);
  *map = {};
  std::memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

void FillKernels(DriverApi& driver) {
  driver.LibraryLoadData = [](CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                              CUlibraryOption*, void**, unsigned) {
    *library = reinterpret_cast<CUlibrary>(SimtModule::Load(code, Gpus().calls()).release());
    return *library == nullptr ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
  };
  driver.LibraryUnload = Delete<SimtModule>;
  driver.LibraryGetKernel = [](CUkernel* kernel, CUlibrary library, const char* name) {
    SimtModule::Function* const function = reinterpret_cast<SimtModule*>(library)->Find(name);
    *kernel = reinterpret_cast<CUkernel>(function);
    return function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
  };
  driver.KernelGetFunction = [](CUfunction* function, CUkernel kernel) {
    return Answer(function, reinterpret_cast<CUfunction>(kernel));
  };
  driver.FuncLoad = [](CUfunction) { return CUDA_SUCCESS; };
  driver.FuncGetAttribute = GetFunctionAttribute;
  driver.FuncSetAttribute = [](CUfunction function, CUfunction_attribute attribute, int value) {
    const bool is_known = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (!is_known || value < 0 || value > kSharedPerBlock) return CUDA_ERROR_INVALID_VALUE;
    return Answer(&Of(function).most_shared, value);
  };
  driver.OccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int threads,
                                                        size_t shared) {
    const int by_threads = kThreadsPerMultiprocessor / std::max(threads, 1);
    const auto by_memory = static_cast<int>(kSharedPerMultiprocessor /
                                            (shared + kSharedPerMultiprocessor - kSharedPerBlock));
    const bool one = Gpus().options().resident_blocks > 0;
    return Answer(blocks, std::min(one ? 1 : by_threads, by_memory));
  };
  driver.TensorMapEncodeTiled = EncodeTensorMap;
  driver.LaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void** params,
                             void**) {
    const SimtModule::Function& kernel = Of(function);
    const unsigned most = kernel.most_threads > 0 ? kernel.most_threads : Epoch::kThreads;
    if (config->gridDimX == 0 || config->blockDimX == 0 || config->blockDimX > most ||
        config->sharedMemBytes > static_cast<unsigned>(kernel.most_shared))
      return CUDA_ERROR_INVALID_VALUE;
    return Give(config->hStream,
                RunWork{kernel.kernel, &kernel.name, params[0], static_cast<int>(config->gridDimX),
                        static_cast<int>(config->blockDimX), config->sharedMemBytes});
  };
}

void FillGraphs(DriverApi& driver) {
  driver.StreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    *status = Of(stream)->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  };
  driver.StreamBeginCapture = [](CUstream stream, CUstreamCaptureMode) {
    if (Of(stream)->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    Of(stream)->JoinCapture(new SimtGraph);
    return CUDA_SUCCESS;
  };
  driver.StreamEndCapture = [](CUstream stream, CUgraph* graph) {
    std::unique_ptr<SimtGraph> made(Of(stream)->capture);
    if (made == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    for (SimtStream* branch : made->branches) branch->JoinCapture(nullptr);
    const bool joined = made->AllJoined();
    *graph = joined ? reinterpret_cast<CUgraph>(made.release()) : nullptr;
    return joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  };
  driver.GraphInstantiateWithFlags = [](CUgraphExec* made, CUgraph graph, unsigned long long) {
    auto launchable = std::make_unique<Launchable>(Launchable{Of(graph)->work, {}});
    for (size_t other = 1; other < Of(graph)->branches.size(); ++other) {
      launchable->others.push_back(Gpus().Use().streams.Make(here.context->rank));
      if (launchable->others.back() == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = reinterpret_cast<CUgraphExec>(launchable.release());
    return CUDA_SUCCESS;
  };
  driver.GraphLaunch = [](CUgraphExec graph, CUstream stream) {
    const auto& launchable = *reinterpret_cast<const Launchable*>(graph);
    for (const auto& [branch, work] : launchable.work)
      Gpus().Use().streams.Give(*here.host,
                                branch == 0 ? Of(stream) : launchable.others[branch - 1], work);
    return CUDA_SUCCESS;
  };
  driver.GraphDestroy = Delete<SimtGraph>;
  driver.GraphExecDestroy = [](CUgraphExec graph) {
    std::unique_ptr<Launchable> launchable(reinterpret_cast<Launchable*>(graph));
    for (SimtStream* other : launchable->others) Gpus().Use().streams.Destroy(other);
    return CUDA_SUCCESS;
  };
}

}  // namespace

const DriverApi& SimtDriver() {
  static const DriverApi* driver = [] {
    auto* made = new DriverApi;
    made->explains_failures = true;
    FillErrors(*made);
    FillDevices(*made);
    FillMemory(*made);
    FillStreams(*made);
    FillKernels(*made);
    FillGraphs(*made);
    return made;
  }();
  return *driver;
}

SimtGpus::SimtGpus(std::shared_ptr<Simulation> simulation) {
  seen.contexts.clear();
  for (int rank = 0; rank < simulation->ranks(); ++rank)
    seen.contexts.push_back({simulation.get(), rank});
  seen.simulation = std::move(simulation);
}

SimtGpus::~SimtGpus() {
  here.Leave();
  seen = {};
}

int SimtRankHere() { return here.context == nullptr ? -1 : here.context->rank; }

Simulation& SimulationHere() { return Gpus(); }

void GiveToSimtStream(CUstream stream, SimtWork work) {
  Gpus().Use().streams.Give(*here.host, Of(stream), std::move(work));
}

void NameSimtBuffer(const void* address, size_t bytes, absl::string_view name) {
  const Simulation::Locked gpus = Gpus().Use();
  if (SimtBuffer* buffer = gpus.machine.memory().Find(address); buffer != nullptr)
    buffer->NamePart(buffer->OffsetOf(address), bytes, std::string(name));
}

}  // namespace coconet
