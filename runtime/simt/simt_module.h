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
    int most_threads;            // of a block, by CC_KERNEL_OF; 0: its text does not say
    int most_shared = 48 << 10;  // bytes of dynamic shared memory that a launch may give a block
  };

  /// `image`: the contents of an ELF file. Null if it is not a module of the simt dialect.
  static std::unique_ptr<SimtModule> Load(const void* image, SimtCalls* calls);
  ~SimtModule();
  SimtModule(const SimtModule&) = delete;
  SimtModule& operator=(const SimtModule&) = delete;

  /// The kernel of that name; null if there is none.
  Function* Find(const std::string& name);

 private:
  explicit SimtModule(MemoryObject object) : object_(std::move(object)) {}

  MemoryObject object_;  // its file stays open for addr2line
  std::map<std::string, Function> functions_;
};

}  // namespace coconet
