#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/nccl/nccl_api.h"

namespace coconet {

// Memory and windows of HostNccl: memfds, which threads and processes map alike.

/// How other ranks map one rank's memory.
struct HostOffer {
  int64_t pid, file, bytes;
};

ncclResult_t AllocateHostMemory(void** memory, size_t bytes);
ncclResult_t FreeHostMemory(void* memory);
/// False if it is not memory of HostNccl.
bool OfferHostMemory(void* memory, size_t bytes, HostOffer& offer);

/// Writes a rank's offer to a file in the communicator's folder, for other processes.
void WriteOffer(const std::string& folder, int number, int rank, const HostOffer& offer);
/// The offers of the ranks that have written theirs.
std::vector<HostOffer> ReadOffers(const std::string& folder, int number, int ranks);

/// The window of `rank` on all ranks' memory, in the layout of NCCL 2.28.9; null if some memory
/// cannot be mapped.
NcclWindow OpenHostWindow(const std::vector<HostOffer>& offers, int rank);
ncclResult_t CloseHostWindow(NcclWindow window);
void* InHostWindow(NcclWindow window, size_t offset, int peer);

/// Windows and pieces of memory that exist.
int HostWindowsLeft();

}  // namespace coconet
