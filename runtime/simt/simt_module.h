#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/node/memory_object.h"
#include "runtime/simt_abi.h"

namespace coconet {

/// A shared object of the simt dialect, loaded for one machine. Each load is a separate copy.
class SimtModule {
 public:
  struct Function {
    SimtKernel kernel;
    std::string name;
  };

  /// `image`: the contents of an ELF file. Null if it is not a module of the simt dialect.
  static std::unique_ptr<SimtModule> Load(const void* image, SimtCalls* calls);
  ~SimtModule();
  SimtModule(const SimtModule&) = delete;
  SimtModule& operator=(const SimtModule&) = delete;

  /// The kernel of that name; null if there is none.
  const Function* Find(const std::string& name);

 private:
  explicit SimtModule(MemoryObject object) : object_(std::move(object)) {}

  MemoryObject object_;  // its file stays open for addr2line
  std::map<std::string, Function> functions_;
};

}  // namespace coconet
