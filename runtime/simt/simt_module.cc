#include "runtime/simt/simt_module.h"

#include <dlfcn.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace coconet {
std::unique_ptr<SimtModule> SimtModule::Load(const void* image, SimtCalls* calls) {
  absl::StatusOr<MemoryObject> object = LoadFromMemory(ElfFile(image));
  if (!object.ok()) return nullptr;
  std::unique_ptr<SimtModule> module(new SimtModule(*std::move(object)));
  auto* asks = static_cast<SimtCalls**>(dlsym(module->object_.handle, COCONET_SIMT_CALLS_NAME));
  if (asks == nullptr) return nullptr;
  *asks = calls;
  return module;
}

SimtModule::~SimtModule() { dlclose(object_.handle); }

SimtModule::Function* SimtModule::Find(const std::string& name) {
  const auto known = functions_.find(name);
  if (known != functions_.end()) return &known->second;
  void* symbol = dlsym(object_.handle, name.c_str());
  if (symbol == nullptr) return nullptr;
  const auto* threads =
      static_cast<const int*>(dlsym(object_.handle, absl::StrCat(name, "_threads").c_str()));
  return &functions_
              .emplace(name, Function{reinterpret_cast<SimtKernel>(symbol), name,
                                      threads == nullptr ? 0 : *threads})
              .first->second;
}

}  // namespace coconet
