#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/descriptor.h"

namespace coconet {

/// A shared object that dlopen has loaded from memory.
struct MemoryObject {
  void* handle = nullptr;  // for dlsym and dlclose
  Descriptor file;  // while it is open, other processes can read the object at the path in dladdr
};

/// Loads a copy of its own: `content` is an ELF file. ResourceExhausted, or NotFound with the
/// linker's words. Thread-safe.
absl::StatusOr<MemoryObject> LoadFromMemory(absl::string_view content);

/// The contents of an ELF file at `image` that ends with its section table; "" for other files.
absl::string_view ElfFile(const void* image);

}  // namespace coconet
