#pragma once

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_context.h"

namespace coconet {

/// The result of a call of HostDriver, which counts the call: an error if a test has injected one
/// (FailCall), or if the current context has ended (EndContextAt).
CUresult Sprung(const char* call);
void CountCall(const char* call);
/// CUDA_SUCCESS, or the error with which the current context has ended.
CUresult EndOfContext();
#define COCONET_MAY_FAIL(call) \
  if (const CUresult sprung = ::coconet::Sprung(call); sprung != CUDA_SUCCESS) return sprung
/// The same for a call that the driver does in `context`, or, without that, in the current one.
#define COCONET_MAY_FAIL_IN(call, ...)         \
  ::coconet::NeedContext(call, ##__VA_ARGS__); \
  COCONET_MAY_FAIL(call)

}  // namespace coconet
