#include "runtime/node/memory_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// A path of an open file that no earlier call returned. dlopen returns the object that is already
/// loaded if the path is equal, and descriptor numbers are reused.
std::string NewNameOf(const Descriptor& file) {
  static std::atomic<uint32_t> count{0};
  std::string name = absl::StrCat("/proc/", getpid());
  for (uint32_t bits = ++count; bits > 0; bits >>= 1)
    absl::StrAppend(&name, (bits & 1) != 0 ? "/." : "/");  // resolves to the same folder
  return absl::StrCat(name, "/fd/", file.get());
}

}  // namespace

absl::StatusOr<MemoryObject> LoadFromMemory(absl::string_view content) {
  Descriptor file(memfd_create("coconet kernels", MFD_CLOEXEC));
  if (!file ||
      write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat("loading a module: no memory for a file of ", content.size(), " bytes"));
  }
  void* handle = dlopen(NewNameOf(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(absl::StrCat("loading a module: ", dlerror()));
  return MemoryObject{.handle = handle, .file = std::move(file)};
}

absl::string_view ElfFile(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  return {static_cast<const char*>(image),
          header.e_shoff + size_t{header.e_shnum} * header.e_shentsize};
}

}  // namespace coconet
