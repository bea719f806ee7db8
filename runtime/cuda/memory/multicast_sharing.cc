#include "runtime/cuda/memory/multicast_sharing.h"

#include <functional>

#include "coconet/base/status.h"
#include "runtime/cuda/driver/stream_library.h"

namespace coconet {

struct MulticastSharing::Work {
  std::shared_ptr<Device> device;
  int64_t bytes = 0;                     // rounded up
  std::shared_ptr<MemoryHandle> memory;  // of this rank
  std::shared_ptr<MemoryHandle> object;  // the node's multicast object
  MemoryHandles memories = {};           // of all ranks
};

absl::Status MulticastSharing::Create(Work& work) const {
  ASSIGN_OR_RETURN(work.memory,
                   MemoryHandle::OfMemory(*work.device, work.bytes, passing_->exported()));
  if (rank_ != node_.first) return absl::OkStatus();
  ASSIGN_OR_RETURN(work.object, MemoryHandle::OfMulticast(work.device->driver(), node_.size,
                                                          work.bytes, passing_->exported()));
  return absl::OkStatus();
}

absl::Status MulticastSharing::Map(const Work& work, Shared& shared) const {
  shared.all.resize(work.memories.size());
  for (int i = 0; i < sharing_.size; ++i) {
    const int peer = sharing_.Rank(i);
    ASSIGN_OR_RETURN(shared.all[peer], coconet::Map(work.device, work.memories[peer], work.bytes));
  }
  ASSIGN_OR_RETURN(shared.multicast, coconet::Map(work.device, work.object, work.bytes));
  return shared.all[rank_]->Clear(static_cast<size_t>(work.bytes));
}

absl::StatusOr<MulticastSharing::Shared> MulticastSharing::Share(
    const std::shared_ptr<Device>& device, int64_t bytes) {
  passing_->Prepare();
  const DriverApi& driver = device->driver();
  Work work{.device = device, .memory = nullptr, .object = nullptr};
  Shared shared;
  const absl::StatusOr<int64_t> rounded =
      RoundedForMulticast(*device, node_.size, bytes, passing_->exported());
  // Granularities are powers of two, so the largest size is a multiple of all of them.
  ASSIGN_OR_RETURN(const double most,
                   exchange_.Max(rounded.ok() ? static_cast<double>(*rounded) : 0));
  work.bytes = static_cast<int64_t>(most);
  // All ranks finish a step before any begins the next: calls made too early wait in the driver,
  // without a deadline.
  const std::function<absl::Status()> steps[] = {
      [&] { return rounded.status(); },
      [&] { return Create(work); },
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(work.memories, passing_->Pass(sharing_, work.memory));
        return absl::OkStatus();
      },
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const MemoryHandles objects, passing_->Pass(node_, work.object));
        work.object = objects[node_.first];
        return absl::OkStatus();
      },
      [&] {
        return ToStatus(driver, driver.MulticastAddDevice(work.object->get(), device->handle()),
                        "cuMulticastAddDevice");
      },
      [&] { return work.object->Bind(*device, work.memories[rank_], work.bytes); },
      [&] { return Map(work, shared); }};
  for (const std::function<absl::Status()>& step : steps) {
    const absl::Status done = step();
    if (absl::IsAborted(done) || absl::IsDeadlineExceeded(done)) return done;
    ASSIGN_OR_RETURN(const std::string note, FirstNote(exchange_, done.message()));
    if (note.empty()) continue;
    shared = {};
    work = {};
    // Peers must have released their handles before what is retained here goes.
    RETURN_IF_ERROR(exchange_.Barrier());
    return Shared{.all = {}, .multicast = nullptr, .note = note};
  }
  return shared;
}

}  // namespace coconet
