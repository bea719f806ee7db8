#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "autotune/c/coconet.h"
#include "autotune/session/binding.h"
#include "autotune/session/device_buffer.h"
#include "coconet/base/dtype.h"

namespace coconet {

DLDataType ToDlpack(DType dtype);
/// InvalidArgument if programs have no such element type.
absl::StatusOr<DType> FromDlpack(DLDataType dtype);

/// The tensor's memory; `error` says what is wrong with it, if anything is.
ForeignTensor FromDlpack(const DLTensor* tensor);

/// A tensor over the buffer's memory, which it shares. Its deleter may be called by any thread,
/// once, at any time.
DLManagedTensor* ToDlpack(const DeviceBuffer& buffer, DLDataType dtype, std::vector<int64_t> shape,
                          std::vector<int64_t> strides);

}  // namespace coconet
