#ifndef COCONET_RUNTIME_NCCL_TESTING_HOST_FAULTS_H_
#define COCONET_RUNTIME_NCCL_TESTING_HOST_FAULTS_H_

#include "runtime/nccl/testing/host_nccl.h"

namespace coconet {

/// As they were set (SetNcclFaults), less what has come.
NcclFaults Faults();
/// True the so-many-th time.
bool Strikes(int NcclFaults::* fault);
/// What a call of the NCCL of tests returns: an error where a test has put one in.
ncclResult_t SprungOfNccl(const char* call);
#define COCONET_MAY_FAIL(call) \
  if (const ncclResult_t sprung = SprungOfNccl(call); sprung != ncclSuccess) return sprung

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_TESTING_HOST_FAULTS_H_
