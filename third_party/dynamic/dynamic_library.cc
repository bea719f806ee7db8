#include "third_party/dynamic/dynamic_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace coconet {

absl::Status DynamicLibrary::Open() {
  const absl::MutexLock lock(&mutex_);
  if (library_ != nullptr) return absl::OkStatus();
  absl::StatusOr<void*> opened = open_();
  if (!opened.ok()) return opened.status();
  library_ = *opened;
  return absl::OkStatus();
}

void* DynamicLibrary::Find(const char* symbol) {
  std::string error;
  if (const absl::Status opened = Open(); opened.ok()) {
    const absl::MutexLock lock(&mutex_);
    if (void* const address = dlsym(library_, symbol); address != nullptr) return address;
    error = dlerror();
  } else {
    error = std::string(opened.message());
  }
  std::fprintf(stderr, "coconet: %s: %s\n", symbol, error.c_str());
  std::abort();
}

}  // namespace coconet
