#include "runtime/host/module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/bundle.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

class HostModule final : public Module {
 public:
  explicit HostModule(std::string path) : path_(std::move(path)) {}
  ~HostModule() override {
    for (void* handle : handles_) dlclose(handle);
  }
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;

  /// Opens a shared object of these kernels, which have commas between; "": all of the module.
  absl::Status Open(absl::string_view kernels, const std::string& file) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      return absl::NotFoundError(absl::StrCat("loading a module: ", dlerror()));
    handles_.push_back(handle);
    for (absl::string_view kernel : absl::StrSplit(kernels, ','))
      handle_of_.emplace(kernel, handle);
    return absl::OkStatus();
  }

  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    auto handle = handle_of_.find(name);
    if (handle == handle_of_.end()) handle = handle_of_.find("");
    void* symbol =
        handle == handle_of_.end() ? nullptr : dlsym(handle->second, std::string(name).c_str());
    if (symbol != nullptr) return symbol;
    return absl::NotFoundError(absl::StrCat("module ", path_, " has no kernel \"", name, "\""));
  }

 private:
  std::string path_;
  std::vector<void*> handles_;
  std::map<std::string, void*, std::less<>> handle_of_;  // by kernel
};

/// A path of an open file descriptor that no earlier call returned. dlopen returns the object that
/// is already loaded when the path is equal, and descriptor numbers are reused.
std::string NewNameOf(int file) {
  static std::atomic<uint32_t> count{0};
  std::string name = "/proc/self";
  for (uint32_t bits = ++count; bits > 0; bits >>= 1)
    absl::StrAppend(&name, (bits & 1) != 0 ? "/." : "/");  // resolves to the same folder
  return absl::StrCat(name, "/fd/", file);
}

/// Opens a part by way of a file in memory.
absl::Status OpenPart(absl::string_view kernels, absl::string_view content, HostModule& module) {
  const int file = memfd_create("coconet kernels", MFD_CLOEXEC);
  const bool written = file >= 0 && write(file, content.data(), content.size()) ==
                                        static_cast<ssize_t>(content.size());
  const absl::Status opened =
      written ? module.Open(kernels, NewNameOf(file))
              : absl::ResourceExhaustedError(absl::StrCat(
                    "loading a module: no memory for a file of ", content.size(), " bytes"));
  if (file >= 0) close(file);
  return opened;
}

absl::Status OpenBundle(std::ifstream& file, const std::string& path, HostModule& module) {
  const std::string content(std::istreambuf_iterator<char>(file), {});
  const auto parts = UnpackBundle(content);
  RETURN_IF_ERROR(WithContext(parts.status(), absl::StrCat("loading ", path)));
  for (const auto& [kernels, part] : *parts) RETURN_IF_ERROR(OpenPart(kernels, part, module));
  return absl::OkStatus();
}

bool ForbidsExecution(const std::string& path) {
  struct statvfs system = {};
  return statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0;
}

/// A shared object; of a file system from which nothing may be executed, a copy of it in memory.
absl::Status OpenFile(const std::string& path, HostModule& module) {
  const absl::Status opened = module.Open("", path);
  if (opened.ok() || !ForbidsExecution(path)) return opened;
  std::ifstream file(path, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  const absl::Status in_memory = OpenPart("", content, module);
  if (in_memory.ok()) return in_memory;
  return absl::FailedPreconditionError(
      absl::StrCat(opened.message(), ": the file system is mounted noexec, and memory cannot be ",
                   "executed either (", in_memory.message(),
                   "); let COCONET_CACHE_DIR name a folder from which programs may run"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> LoadHostModule(const std::string& path) {
  auto module = std::make_unique<HostModule>(path);
  std::ifstream file(path, std::ios::binary);
  std::string first(kBundleBegin.size(), '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  if (file && IsBundle(first)) {
    file.seekg(0);
    RETURN_IF_ERROR(OpenBundle(file, path, *module));
  } else {
    RETURN_IF_ERROR(OpenFile(path, *module));
  }
  return std::unique_ptr<Module>(std::move(module));
}

}  // namespace coconet
