#pragma once

#include <functional>

#include "absl/status/status.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// HostDriver's contexts, one per GPU.

/// The calling thread's current context; null: it has none.
CUcontext CurrentContext();
CUcontext ContextOf(CUdevice device);

/// What each call checks that the real driver does in the current context: ends the process unless
/// `context`, in which the call's objects are, is current for the calling thread. The real driver
/// would refuse the call, or do it elsewhere.
void NeedContext(const char* call, CUcontext context);
/// The same for a call without such objects: any context will do.
void NeedContext(const char* call);

/// Calls `body` on a thread of its own that has `context` current (null: none). An error of `body`,
/// or Internal where another context is current when it returns.
absl::Status OnThreadWith(CUcontext context, const std::function<absl::Status()>& body);

/// Sets the driver's functions that change and tell the current context.
void FillContexts(DriverApi& driver);

}  // namespace coconet
