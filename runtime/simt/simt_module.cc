#include "runtime/simt/simt_module.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// The size of an ELF file that ends with its section table; 0 where it is no ELF file.
size_t BytesOf(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0
             ? header.e_shoff + size_t{header.e_shnum} * header.e_shentsize
             : 0;
}

}  // namespace

std::unique_ptr<SimtModule> SimtModule::Load(const void* image, SimtCalls* calls) {
  const size_t bytes = BytesOf(image);
  const int file = memfd_create("simt module", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  const bool written = bytes > 0 && write(file, image, bytes) == static_cast<ssize_t>(bytes);
  // By a name that addr2line can open, too.
  void* opened = written ? dlopen(absl::StrCat("/proc/", getpid(), "/fd/", file).c_str(),
                                  RTLD_NOW | RTLD_LOCAL)
                         : nullptr;
  if (opened == nullptr) {
    close(file);
    return nullptr;
  }
  std::unique_ptr<SimtModule> module(new SimtModule(file, opened));
  auto* asks = static_cast<SimtCalls**>(dlsym(opened, COCONET_SIMT_CALLS_NAME));
  if (asks == nullptr) return nullptr;
  *asks = calls;
  return module;
}

SimtModule::~SimtModule() {
  dlclose(opened_);
  close(file_);
}

const SimtModule::Function* SimtModule::Find(const std::string& name) {
  const auto known = functions_.find(name);
  if (known != functions_.end()) return &known->second;
  void* symbol = dlsym(opened_, name.c_str());
  if (symbol == nullptr) return nullptr;
  return &functions_.emplace(name, Function{reinterpret_cast<SimtKernel>(symbol), name})
              .first->second;
}

}  // namespace coconet
