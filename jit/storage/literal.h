#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// Name of the storage type in the kernel dialect: "f32", "bf16", "boolean", ...
absl::string_view KernelType(DType dtype);

/// `value` as a literal of Compute<T>, exact after rounding to it: "0.899999976f", "1.0", "5ll".
std::string Literal(const Number& value, DType dtype);

}  // namespace coconet
