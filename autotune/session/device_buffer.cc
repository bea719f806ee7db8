#include "autotune/session/device_buffer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/session/session_state.h"
#include "coconet/base/status.h"

namespace coconet {

absl::Status DeviceBuffer::Check(absl::string_view operation, DType dtype, int64_t elements) const {
  if (dtype == dtype_ && elements == part_.elements()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(operation, " a buffer: want ", part_.elements(),
                                                 " elements of ", Name(dtype_), ", have ", elements,
                                                 " of ", Name(dtype)));
}

absl::Status DeviceBuffer::Read(DType dtype, void* to, int64_t elements) const {
  RETURN_IF_ERROR(Check("Read", dtype, elements));
  const auto size = static_cast<int64_t>(SizeOf(dtype_));
  for (int64_t i = 0; i < part_.runs && part_.run > 0; ++i) {
    RETURN_IF_ERROR(memory_->Read(i * part_.storage_stride * size, part_.run * size,
                                  static_cast<char*>(to) + i * part_.run * size));
  }
  return absl::OkStatus();
}

absl::Status DeviceBuffer::Write(DType dtype, const void* from, int64_t elements) {
  RETURN_IF_ERROR(Check("Write", dtype, elements));
  const auto size = static_cast<int64_t>(SizeOf(dtype_));
  for (int64_t i = 0; i < part_.runs && part_.run > 0; ++i) {
    RETURN_IF_ERROR(memory_->Write(i * part_.storage_stride * size, part_.run * size,
                                   static_cast<const char*>(from) + i * part_.run * size));
  }
  return absl::OkStatus();
}

void DeviceBuffer::Release() {
  if (session_ != nullptr) session_->Discard(std::move(memory_));
  memory_ = nullptr;
  session_ = nullptr;
}

}  // namespace coconet
