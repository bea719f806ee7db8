#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"

namespace coconet {

/// Greater than any struct of the interface: a size beyond it was never set.
inline constexpr size_t kMostStructBytes = 4096;

/// OK if `size`, the first field of a caller's struct, is plausible.
inline absl::Status CheckStructSize(size_t size, size_t ours, absl::string_view name) {
  if (size > sizeof(size_t) && size <= kMostStructBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ".size: want sizeof(", name, "), ", ours,
                                                 " in this version, have ", size));
}

/// Copies a caller's struct that begins with its size into this version's: fields that an older
/// header does not have are zero. InvalidArgument if fields of a newer header have a value.
template <class T>
absl::StatusOr<T> ReadSized(const T* from, absl::string_view name) {
  const size_t size = from->size;
  RETURN_IF_ERROR(CheckStructSize(size, sizeof(T), name));
  const char* bytes = reinterpret_cast<const char*>(from);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, ": a field at byte ", i,
                                                   " is set, which this version of the library "
                                                   "does not know; it knows ",
                                                   sizeof(T), " bytes; use a newer library"));
  }
  T copy{};
  std::memcpy(&copy, bytes, std::min(size, sizeof(T)));
  copy.size = sizeof(T);
  return copy;
}

/// Fills the caller's struct as far as its size goes, and keeps the size.
template <class T>
absl::Status WriteSized(const T& from, T* to, absl::string_view name) {
  const size_t size = to->size;
  RETURN_IF_ERROR(CheckStructSize(size, sizeof(T), name));
  std::memset(reinterpret_cast<char*>(to), 0, size);
  std::memcpy(reinterpret_cast<char*>(to), &from, std::min(size, sizeof(T)));
  to->size = size;
  return absl::OkStatus();
}

}  // namespace coconet
