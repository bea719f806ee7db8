#include "runtime/processes/process_sharing.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/algorithm/container.h"
#include "coconet/base/descriptor.h"
#include "coconet/base/status.h"
#include "runtime/node/budget.h"

namespace coconet {
namespace {

/// Where peers open this rank's memory, and how they recognise the file; all zero: it has none.
struct Offer {
  int64_t pid, fd;
  uint64_t device, inode;
  const std::shared_ptr<Region>* region;  // for threads of its process
};

struct Shared {
  Descriptor handle;
  std::shared_ptr<Region> region;
};

absl::Status Exhausted(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Allocate: ", SizeText(bytes), " of shared memory: ", strerror(errno)));
}

/// A memfd of reserved huge pages from the system's pool; not open if the pool has too few.
Descriptor ReserveHuge(int64_t bytes) {
  Descriptor handle(memfd_create("coconet", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB));
  const bool reserved =
      handle && ftruncate(handle.get(), bytes) == 0 && fallocate(handle.get(), 0, 0, bytes) == 0;
  return reserved ? std::move(handle) : Descriptor();
}

absl::StatusOr<Shared> MakeOwn(int64_t bytes, int64_t present) {
  const int64_t rounded = Region::Rounded(bytes);
  if (present == bytes) present = rounded;
  Shared own;
  if (present >= kHugePage) own.handle = ReserveHuge(rounded);
  if (!own.handle) {
    own.handle = Descriptor(memfd_create("coconet", MFD_CLOEXEC));
    if (!own.handle || ftruncate(own.handle.get(), rounded) != 0) return Exhausted(rounded);
  }
  ASSIGN_OR_RETURN(own.region, Region::Map(bytes, own.handle.get()));
  RETURN_IF_ERROR(own.region->Populate(0, present));
  // After Populate, because pages become huge ones only through a mapping. Reserves the pages that
  // are still missing, so that a full memory is an error here and not a SIGBUS later.
  if (fallocate(own.handle.get(), 0, 0, present) != 0) return Exhausted(present);
  return own;
}

absl::StatusOr<std::shared_ptr<Region>> MapPeer(const Offer& offer, int peer, int64_t bytes,
                                                int64_t present) {
  const Descriptor handle(
      open(absl::StrCat("/proc/", offer.pid, "/fd/", offer.fd).c_str(), O_RDWR | O_CLOEXEC));
  struct stat found{};
  if (!handle || fstat(handle.get(), &found) != 0 || found.st_ino != offer.inode ||
      found.st_dev != offer.device) {
    return absl::FailedPreconditionError(
        absl::StrCat("Allocate: no access to the memory of rank ", peer, " (process ", offer.pid,
                     "): ", !handle ? strerror(errno) : "another file",
                     "; ranks of one node must be processes of one user in one PID namespace"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Region> region, Region::Map(bytes, handle.get()));
  region->Prefault(0, std::min(present, region->bytes()));
  return region;
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<Region>>> ProcessSharing::Share(int64_t bytes,
                                                                           int64_t present) {
  const absl::StatusOr<Shared> own = MakeOwn(bytes, present);
  Offer offer{};
  if (own.ok()) {
    struct stat mine{};
    CC_CHECK(fstat(own->handle.get(), &mine) == 0);
    offer = {.pid = getpid(),
             .fd = own->handle.get(),
             .device = mine.st_dev,
             .inode = mine.st_ino,
             .region = &own->region};
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> letters,
                   exchange_.AllGather({reinterpret_cast<const char*>(&offer), sizeof offer}));
  std::vector<Offer> offers(letters.size());
  for (size_t peer = 0; peer < letters.size(); ++peer) {
    CC_CHECK(letters[peer].size() == sizeof offer);
    std::memcpy(&offers[peer], letters[peer].data(), sizeof offer);
  }
  // Some rank has none.
  if (absl::c_any_of(offers, [](const Offer& theirs) { return theirs.pid == 0; }))
    return exchange_.Agree(own.status());

  std::vector<std::shared_ptr<Region>> regions(offers.size());
  regions[rank_] = own->region;
  absl::Status mapped;
  for (int i = 0; i < group_.size && mapped.ok(); ++i) {
    const int peer = group_.Rank(i);
    if (peer == rank_) continue;
    if (offers[peer].pid == getpid()) {
      regions[peer] = *offers[peer].region;
      continue;
    }
    absl::StatusOr<std::shared_ptr<Region>> region = MapPeer(offers[peer], peer, bytes, present);
    mapped = region.status();
    if (region.ok()) regions[peer] = *std::move(region);
  }
  RETURN_IF_ERROR(exchange_.Agree(mapped));  // peers use descriptor and region until then
  return regions;
}

}  // namespace coconet
