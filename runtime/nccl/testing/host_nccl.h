#ifndef COCONET_RUNTIME_NCCL_TESTING_HOST_NCCL_H_
#define COCONET_RUNTIME_NCCL_TESTING_HOST_NCCL_H_

#include <string>

#include "runtime/nccl/nccl_api.h"

namespace coconet {

/// NCCL without GPUs: between threads of this process or between processes, over the host's memory,
/// in streams of the driver of tests (host_driver.h). Communicators do not block, and what is begun
/// is in its stream only when its state says so. There is one of it in a process; errors can be put
/// in. Its windows are those of 2.28.9.
const NcclApi& HostNccl();
/// The same as of later versions, which say where windows are.
const NcclApi& NewerHostNccl();

/// Communicators are between processes from now on, which meet in `folder`, an empty one of memory;
/// "": between threads.
void MeetInFolderFromNowOn(const std::string& folder);

/// What goes wrong from now on; 0: nothing.
struct NcclFaults {
  int failing_call = 0;        // the so-many-th, of those that can fail, returns `result`
  int failing_collective = 0;  // the so-many-th that is begun never ends, and its state is `result`
  int unheard_join = 0;  // the so-many-th rank that joins a communicator is not seen by its peers
  ncclResult_t result = ncclSystemError;
  bool no_windows = false;  // memory is registered, and shared with nobody
};
void SetNcclFaults(const NcclFaults& faults);
/// What the failing call was, "ncclAllReduce"; "" when it has not come.
std::string FailedNcclCall();

/// Collectives that were done, groups of calls as one, and communicators that are there.
int NcclCollectives();
int NcclCommunicators();

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_TESTING_HOST_NCCL_H_
