#pragma once

#include <functional>

#include "absl/status/status.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// HostDriver's contexts, one per GPU.

/// The calling thread's current context; null: it has none.
CUcontext CurrentContext();
CUcontext ContextOf(CUdevice device);

/// The check that each call makes of the current context: ends the process unless `context`, which
/// has the call's objects, is current for the calling thread. The real driver would refuse the
/// call, or apply it to another context.
void NeedContext(const char* call, CUcontext context);
/// The same for a call without such objects, which needs any context.
void NeedContext(const char* call);

/// Calls `body` on a thread of its own that has `context` current (null: none). Returns the error
/// of `body`, or Internal if another context is current afterwards.
absl::Status OnThreadWith(CUcontext context, const std::function<absl::Status()>& body);

/// Sets the driver's functions that change and return the current context.
void FillContexts(DriverApi& driver);

}  // namespace coconet
