#pragma once

#include <cuda.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// The oldest supported driver, CUDA 12.4: it has libraries of kernels that belong to no context.
/// Newer functions are optional.
inline constexpr int kLeastDriver = 12040;
// clang-format off
#define COCONET_DRIVER_FUNCTIONS(X) \
  X(GetErrorName) X(GetErrorString) X(Init) X(DriverGetVersion) X(DeviceGetCount) X(DeviceGet) \
  X(DeviceGetName) X(DeviceGetUuid) X(DeviceGetAttribute) X(DeviceTotalMem) \
  X(DeviceCanAccessPeer) X(DeviceGetP2PAttribute) X(DevicePrimaryCtxRetain) \
  X(DevicePrimaryCtxRelease) X(CtxGetCurrent) X(CtxPushCurrent) X(CtxPopCurrent) \
  X(CtxEnablePeerAccess) X(PointerGetAttribute) X(MemAlloc) X(MemFree) X(IpcGetMemHandle) \
  X(IpcOpenMemHandle) X(IpcCloseMemHandle) X(MemCreate) X(MemRelease) X(MemAddressReserve) \
  X(MemAddressFree) X(MemMap) X(MemUnmap) X(MemSetAccess) X(MemGetAllocationGranularity) \
  X(MemExportToShareableHandle) X(MemImportFromShareableHandle) X(MulticastCreate) \
  X(MulticastAddDevice) X(MulticastBindMem) X(MulticastUnbind) X(MulticastGetGranularity) \
  X(MemHostAlloc) X(MemFreeHost) X(MemHostRegister) X(MemHostUnregister) \
  X(MemHostGetDevicePointer) X(MemcpyAsync) X(MemsetD8Async) X(MemsetD2D8Async) \
  X(StreamCreateWithPriority) X(StreamDestroy) X(StreamSynchronize) X(StreamQuery) \
  X(StreamWaitEvent) X(EventCreate) X(EventDestroy) X(EventRecord) X(EventQuery) \
  X(EventElapsedTime) X(LibraryLoadData) X(LibraryUnload) X(LibraryGetKernel) \
  X(KernelGetFunction) X(FuncLoad) X(FuncGetAttribute) X(FuncSetAttribute) \
  X(OccupancyMaxActiveBlocksPerMultiprocessor) X(LaunchKernelEx) X(StreamIsCapturing) \
  X(StreamBeginCapture) X(StreamEndCapture) X(GraphInstantiateWithFlags) \
  X(GraphLaunch) X(GraphDestroy) X(GraphExecDestroy) X(TensorMapEncodeTiled)
// clang-format on
/// Green contexts have streams of their own since CUDA 12.5.
inline constexpr int kGreenStreamsDriver = 12050;
#define COCONET_DRIVER_OPTIONAL(X) \
  X(DeviceGetDevResource)          \
  X(DevSmResourceSplitByCount)     \
  X(DevResourceGenerateDesc) X(GreenCtxCreate) X(GreenCtxDestroy) X(GreenCtxStreamCreate)

/// The functions of libcuda by their names without "cu", in the version that cuda.h declares.
/// Opened at run time, so that one binary runs on machines with and without a driver. Tests fill it
/// with fakes.
struct DriverApi {
#define COCONET_DECLARE(name) decltype(&::cu##name) name = nullptr;
  COCONET_DRIVER_FUNCTIONS(COCONET_DECLARE)
  COCONET_DRIVER_OPTIONAL(COCONET_DECLARE)  // null if the driver is too old
#undef COCONET_DECLARE
  /// GetErrorString explains a failed kernel, as the driver of simulated GPUs does.
  bool explains_failures = false;
};

/// Whether a call that returns `result` leaves a context in which every later call fails: a kernel,
/// the GPU or a link failed, or the context is gone. Other errors leave it usable.
bool EndsContext(CUresult result);

/// OK for CUDA_SUCCESS; else "call: NAME: <the driver's text>". ResourceExhausted: out of memory.
/// Unavailable: no device. FailedPrecondition: driver and binary, or driver and device, do not
/// match. DataLoss: EndsContext; the text then says what to do. Internal: anything else.
absl::Status ToStatus(const DriverApi& driver, CUresult result, absl::string_view call);

/// RETURN_IF_CU(driver, MemFree, address) calls driver.MemFree and returns its error as a Status.
#define RETURN_IF_CU(driver, function, ...) \
  RETURN_IF_ERROR(::coconet::ToStatus((driver), (driver).function(__VA_ARGS__), "cu" #function))

/// `status`, the error of a library that uses the calling thread's context, unless that context has
/// ended: then DataLoss with the driver's reason, too. Libraries do not pass on the driver's
/// errors.
absl::Status CauseOf(const DriverApi& driver, const absl::Status& status);

/// Opens and initialises libcuda on the first call; it stays open. Unavailable, saying what to do,
/// if it is missing, does not start or is too old.
absl::StatusOr<const DriverApi*> OpenDriver();

/// The address of a driver function in the given CUDA version, as cuGetProcAddress returns it; null
/// if there is none.
using FindFunction = std::function<void*(const char* name, int version)>;
/// A DriverApi from any source, not initialised. Unavailable that names the missing functions.
absl::StatusOr<DriverApi> FillDriverApi(const FindFunction& find);
/// Calls cuInit and checks the version.
absl::Status InitDriver(const DriverApi& driver);
/// Opens the first of these files that can be opened and returns its cuGetProcAddress.
absl::StatusOr<FindFunction> FindIn(absl::Span<const std::string> files);

}  // namespace coconet
