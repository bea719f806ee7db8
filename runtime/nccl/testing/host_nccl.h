#pragma once

#include <string>

#include "runtime/nccl/nccl_api.h"

namespace coconet {

/// NCCL without GPUs: between threads of this process or between processes, over memory of the
/// host, in streams of HostDriver. Communicators do not block: a call is in its stream only when
/// the communicator's state says so. One per process; tests can inject errors. Windows have the
/// layout of 2.28.9.
const NcclApi& HostNccl();
/// The same as a later version, which returns the addresses of windows.
const NcclApi& NewerHostNccl();

/// Makes later communicators connect processes, which meet in `folder`, an empty folder in memory;
/// "": threads.
void MeetInFolderFromNowOn(const std::string& folder);

/// The faults from SetNcclFaults on: numbers of calls, counted from 1; 0: none.
struct NcclFaults {
  int failing_call = 0;        // this one of the calls that can fail returns `result`
  int failing_collective = 0;  // this one never ends, and its state is `result`
  int unheard_join = 0;        // the peers of this joining rank do not see it
  ncclResult_t result = ncclSystemError;
  bool no_windows = false;  // memory is registered but not shared
};
void SetNcclFaults(const NcclFaults& faults);
/// The name of the call that failed, "ncclAllReduce"; "" before it comes.
std::string FailedNcclCall();

/// Collectives done, where a group of calls counts once, and communicators that exist.
int NcclCollectives();
int NcclCommunicators();

}  // namespace coconet
