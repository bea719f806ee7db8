#pragma once

#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// The result of a call of HostDriver: an error where a test has injected one (FailCall).
CUresult Sprung(const char* call);
#define COCONET_MAY_FAIL(call) \
  if (const CUresult sprung = ::coconet::Sprung(call); sprung != CUDA_SUCCESS) return sprung

}  // namespace coconet
