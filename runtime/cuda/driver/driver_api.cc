#include "runtime/cuda/driver/driver_api.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "third_party/dynamic/open_library.h"

namespace coconet {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

/// Results after which a context is of no use, by what cuda.h says of them, and what to do.
struct ContextEnd {
  CUresult result;
  const char* advice;
};
constexpr char kKernelFailed[] =
    "a kernel failed and the GPU runs nothing more for this process: start it again; "
    "compute-sanitizer finds the instruction";
constexpr char kKernelTooLong[] =
    "the system ended a kernel that kept a GPU with a display for too long: take a GPU without "
    "one, or lift the system's limit, and start the process again";
constexpr char kGpuFailed[] =
    "the GPU or one of its links failed: see dmesg and nvidia-smi -q, reset or replace the GPU, "
    "and start the process again";
constexpr char kServerEnded[] =
    "the MPS server has ended this process's access to the GPU, perhaps after the failure of "
    "another process: see its log, and start the process again";
constexpr char kContextGone[] =
    "other code of this process has reset the GPU (cudaDeviceReset) or ended the driver: let it do "
    "so only after the last call of Coconet";
constexpr ContextEnd kContextEnds[] = {
    {CUDA_ERROR_DEINITIALIZED, kContextGone},
    {CUDA_ERROR_ECC_UNCORRECTABLE, kGpuFailed},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, kGpuFailed},
    {CUDA_ERROR_CONTAINED, kGpuFailed},
    {CUDA_ERROR_ILLEGAL_ADDRESS, kKernelFailed},
    {CUDA_ERROR_LAUNCH_TIMEOUT, kKernelTooLong},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, kContextGone},
    {CUDA_ERROR_ASSERT, kKernelFailed},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, kKernelFailed},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, kKernelFailed},
    {CUDA_ERROR_MISALIGNED_ADDRESS, kKernelFailed},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, kKernelFailed},
    {CUDA_ERROR_INVALID_PC, kKernelFailed},
    {CUDA_ERROR_LAUNCH_FAILED, kKernelFailed},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, kKernelFailed},
    {CUDA_ERROR_MPS_RPC_FAILURE, kServerEnded},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, kServerEnded},
    {CUDA_ERROR_EXTERNAL_DEVICE, kGpuFailed},
};

const ContextEnd* EndBy(CUresult result) {
  const auto* found =
      std::find_if(std::begin(kContextEnds), std::end(kContextEnds),
                   [result](const ContextEnd& end) { return end.result == result; });
  return found == std::end(kContextEnds) ? nullptr : found;
}

absl::StatusCode CodeOf(CUresult result) {
  if (EndsContext(result)) return absl::StatusCode::kDataLoss;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return absl::StatusCode::kUnavailable;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return absl::StatusCode::kFailedPrecondition;
    case CUDA_ERROR_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
      return absl::StatusCode::kUnimplemented;
    default:  // CUresult is NVIDIA's, and grows
      return absl::StatusCode::kInternal;
  }
}

/// Streams share hardware queues: a kernel that waits for one behind it in its queue would wait
/// forever. The driver reads the number of queues once, when it starts.
void AskForQueues() {
  constexpr char kName[] = "CUDA_DEVICE_MAX_CONNECTIONS";
  constexpr int kMost = 32;
  const char* set = std::getenv(kName);
  int queues = 0;
  if (set == nullptr || !absl::SimpleAtoi(set, &queues) || queues < kMost)
    setenv(kName, absl::StrCat(kMost).c_str(), 1);
}

absl::StatusOr<DriverApi> Open() {
  ASSIGN_OR_RETURN(const FindFunction find, FindIn({"libcuda.so.1", "libcuda.so"}));
  ASSIGN_OR_RETURN(const DriverApi driver, FillDriverApi(find));
  AskForQueues();
  RETURN_IF_ERROR(InitDriver(driver));
  return driver;
}

}  // namespace

bool EndsContext(CUresult result) { return EndBy(result) != nullptr; }

absl::Status ToStatus(const DriverApi& driver, CUresult result, absl::string_view call) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char *name = nullptr, *words = nullptr;
  if (driver.GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "an error that the driver has no name for";
  if (driver.GetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) words = "";
  const ContextEnd* end = driver.explains_failures ? nullptr : EndBy(result);
  return absl::Status(CodeOf(result),
                      absl::StrCat(call, ": ", name, " (", static_cast<int>(result), ")",
                                   *words == '\0' ? "" : ": ", words, end == nullptr ? "" : "; ",
                                   end == nullptr ? "" : end->advice));
}

absl::Status CauseOf(const DriverApi& driver, const absl::Status& status) {
  if (status.ok() || absl::IsDataLoss(status)) return status;
  // The stream's own work is of no interest: any stream returns the error that ended the context.
  const CUresult state = driver.StreamQuery(CU_STREAM_PER_THREAD);
  if (!EndsContext(state)) return status;
  return WithContext(ToStatus(driver, state, "cuStreamQuery"), status.message());
}

absl::StatusOr<FindFunction> FindIn(absl::Span<const std::string> files) {
  decltype(&::cuGetProcAddress) get = nullptr;
  const OpenedLibrary opened = OpenFirst(files, [&](void* library, const std::string&) {
    return FunctionTable(SymbolsOf(library)).Take("cuGetProcAddress_v2", get)
               ? ""
               : absl::StrCat(": too old, want the driver of CUDA ", VersionText(kLeastDriver),
                              " or later");
  });
  if (opened.handle != nullptr) {
    return FindFunction([get](const char* name, int version) -> void* {
      void* function = nullptr;
      CUdriverProcAddressQueryResult found{};
      const CUresult result = get(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
      return result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
    });
  }
  return absl::UnavailableError(
      absl::StrCat("the CUDA driver (libcuda) cannot be opened: want an NVIDIA GPU and its driver "
                   "on this machine, or, in a container, its GPUs made visible. Tried: ",
                   opened.tried));
}

absl::StatusOr<DriverApi> FillDriverApi(const FindFunction& find) {
  DriverApi driver;
  // A driver older than the headers refuses their version; it has the function as introduced.
  const auto since = [&](int version) {
    return FunctionTable([&find, version](const char* name) {
      void* const function = find(name, CUDA_VERSION);
      return function != nullptr ? function : find(name, version);
    });
  };
  FunctionTable table = since(kLeastDriver), optional = since(kGreenStreamsDriver);
#define COCONET_NEED(name) table.Need("cu" #name, driver.name);
  COCONET_DRIVER_FUNCTIONS(COCONET_NEED)
#undef COCONET_NEED
#define COCONET_TAKE(name) optional.Take("cu" #name, driver.name);
  COCONET_DRIVER_OPTIONAL(COCONET_TAKE)
#undef COCONET_TAKE
  if (table.missing().empty()) return driver;
  return absl::UnavailableError(absl::StrCat("the CUDA driver lacks ", table.missing(),
                                             ": want that of CUDA ", VersionText(kLeastDriver),
                                             " or later"));
}

absl::Status InitDriver(const DriverApi& driver) {
  if (absl::Status status = ToStatus(driver, driver.Init(0), "cuInit"); !status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the CUDA driver does not start: ", status.message()));
  }
  int version = 0;
  RETURN_IF_CU(driver, DriverGetVersion, &version);
  if (version >= kLeastDriver) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the CUDA driver is of CUDA ", VersionText(version),
                                             ": want one of CUDA ", VersionText(kLeastDriver),
                                             " or later"));
}

absl::StatusOr<const DriverApi*> OpenDriver() {
  static const auto* driver = new absl::StatusOr<DriverApi>(Open());
  if (!driver->ok()) return driver->status();
  return &**driver;
}

}  // namespace coconet
