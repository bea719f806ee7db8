#ifndef COCONET_RUNTIME_NCCL_TESTING_HOST_WINDOWS_H_
#define COCONET_RUNTIME_NCCL_TESTING_HOST_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/nccl/nccl_api.h"

namespace coconet {

// Memory and windows of the NCCL of tests: files of the host's memory, which threads and processes
// map alike.

/// Where other ranks find a rank's memory.
struct HostOffer {
  int64_t pid, file, bytes;
};

ncclResult_t AllocateHostMemory(void** memory, size_t bytes);
ncclResult_t FreeHostMemory(void* memory);
/// False: not such memory.
bool OfferHostMemory(void* memory, size_t bytes, HostOffer& offer);

/// For processes.
void WriteOffer(const std::string& folder, int number, int rank, const HostOffer& offer);
/// Of the ranks that have written theirs.
std::vector<HostOffer> ReadOffers(const std::string& folder, int number, int ranks);

/// A window of rank `rank` on the memory of all, as NCCL 2.28.9 lays it out; null where some cannot
/// be mapped.
NcclWindow OpenHostWindow(const std::vector<HostOffer>& offers, int rank);
ncclResult_t CloseHostWindow(NcclWindow window);
void* InHostWindow(NcclWindow window, size_t offset, int peer);

/// Windows, and memory, that there are.
int HostWindowsLeft();

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_TESTING_HOST_WINDOWS_H_
