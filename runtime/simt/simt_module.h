#ifndef COCONET_RUNTIME_SIMT_SIMT_MODULE_H_
#define COCONET_RUNTIME_SIMT_SIMT_MODULE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "runtime/simt_abi.h"

namespace coconet {

/// A shared object of the simt dialect, loaded for one machine: every load is a copy of its own.
class SimtModule {
 public:
  struct Function {
    SimtKernel kernel;
    std::string name;
  };

  /// `image`: of an ELF file. Null where it is no such module.
  static std::unique_ptr<SimtModule> Load(const void* image, SimtCalls* calls);
  ~SimtModule();
  SimtModule(const SimtModule&) = delete;
  SimtModule& operator=(const SimtModule&) = delete;

  /// Null where it has no such kernel.
  const Function* Find(const std::string& name);

 private:
  SimtModule(int file, void* opened) : file_(file), opened_(opened) {}

  int file_;
  void* opened_;
  std::map<std::string, Function> functions_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMT_MODULE_H_
