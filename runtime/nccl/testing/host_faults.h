#pragma once

#include "runtime/nccl/testing/host_nccl.h"

namespace coconet {

/// The faults set by SetNcclFaults that have not come yet.
NcclFaults Faults();
/// Counts down; true when it reaches 0.
bool Strikes(int NcclFaults::* fault);
/// The result of a call of HostNccl: an error if a test has injected one.
ncclResult_t SprungOfNccl(const char* call);
#define COCONET_MAY_FAIL(call) \
  if (const ncclResult_t sprung = SprungOfNccl(call); sprung != ncclSuccess) return sprung

}  // namespace coconet
