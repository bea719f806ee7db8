#include "runtime/host/module.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

class HostModule final : public Module {
 public:
  HostModule(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  ~HostModule() override { dlclose(handle_); }
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;

  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    void* symbol = dlsym(handle_, std::string(name).c_str());
    if (symbol != nullptr) return symbol;
    return absl::NotFoundError(absl::StrCat("module ", path_, " has no kernel \"", name, "\""));
  }

 private:
  std::string path_;
  void* handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> LoadHostModule(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(absl::StrCat("loading a module: ", dlerror()));
  return std::make_unique<HostModule>(path, handle);
}

}  // namespace coconet
