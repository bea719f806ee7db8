#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// The error that a check returns.
template <class... Args>
absl::Status Wrong(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}

/// The value of `rank` at `index`: small, so that sums are exact in every type, and not negative,
/// so that they fit u8.
inline double Value(int rank, int64_t index, DType dtype) {
  if (dtype == DType::kBool) return (index + rank) % 3 == 0;
  if (IsFloat8(dtype)) return (index * 7 + rank * 3) % 5 == 0;  // sums of up to 8 are exact
  return static_cast<double>((index * 7 + rank * 5) % 11 + 1);
}

inline std::vector<char> Values(int rank, int64_t count, DType dtype) {
  std::vector<char> data(count * SizeOf(dtype));
  for (int64_t i = 0; i < count; ++i) StoreElement(dtype, data.data(), i, Value(rank, i, dtype));
  return data;
}

}  // namespace coconet
