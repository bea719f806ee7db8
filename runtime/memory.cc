#include "runtime/memory.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"

namespace coconet {

absl::Status Memory::Read(int64_t offset, int64_t bytes, void* to) const {
  CC_CHECK(0 <= offset && offset + bytes <= bytes_);
  const char* from = static_cast<const char*>(own()) + offset;
  if (space_ != nullptr) return space_->Copy(from, bytes, to);
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status Memory::Write(int64_t offset, int64_t bytes, const void* from) {
  CC_CHECK(0 <= offset && offset + bytes <= bytes_);
  char* to = static_cast<char*>(own()) + offset;
  if (space_ != nullptr) return space_->Copy(from, bytes, to);
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status Memory::Repeat(int64_t bytes, int64_t end) {
  CC_CHECK(0 < bytes && bytes <= end && end <= bytes_);
  // As many whole periods as there are at once, so that few calls do it.
  for (int64_t done = bytes; done < end;) {
    const int64_t more = std::min(done, end - done);
    RETURN_IF_ERROR(Write(done, more, own()));
    done += more;
  }
  return absl::OkStatus();
}

HostView HostView::Blank(Memory& memory, int64_t bytes) {
  CC_CHECK(bytes <= memory.bytes());
  return HostView(memory, bytes,
                  memory.space() == nullptr
                      ? nullptr
                      : std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes)));
}

absl::StatusOr<HostView> HostView::Of(Memory& memory, int64_t bytes) {
  HostView view = Blank(memory, bytes);
  if (view.copy_ != nullptr) RETURN_IF_ERROR(memory.Read(0, bytes, view.data()));
  return view;
}

absl::Status HostView::Store() {
  return copy_ == nullptr ? absl::OkStatus() : memory_->Write(0, bytes_, copy_.get());
}

}  // namespace coconet
