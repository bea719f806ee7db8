#include "runtime/host/module.h"

#include <dlfcn.h>
#include <sys/statvfs.h>

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
#include "runtime/node/memory_object.h"

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

  /// Takes a shared object of these kernels, which have commas between; "": all of the module.
  void Add(absl::string_view kernels, void* handle) {
    handles_.push_back(handle);
    for (absl::string_view kernel : absl::StrSplit(kernels, ','))
      handle_of_.emplace(kernel, handle);
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

absl::Status OpenPart(absl::string_view kernels, absl::string_view content, HostModule& module) {
  ASSIGN_OR_RETURN(const MemoryObject object, LoadFromMemory(content));
  module.Add(kernels, object.handle);
  return absl::OkStatus();
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
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
    module.Add("", handle);
    return absl::OkStatus();
  }
  const absl::Status opened = absl::NotFoundError(absl::StrCat("loading a module: ", dlerror()));
  if (!ForbidsExecution(path)) return opened;
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
