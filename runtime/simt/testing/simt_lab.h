#ifndef COCONET_RUNTIME_SIMT_TESTING_SIMT_LAB_H_
#define COCONET_RUNTIME_SIMT_TESTING_SIMT_LAB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/kernel_abi.h"
#include "runtime/simt/machine/machine.h"
#include "runtime/simt/simt_module.h"

namespace coconet {

/// A machine of two ranks for kernels of a given module, all of which have the same arguments;
/// nobody is there but them.
class SimtLab {
 public:
  /// As kernels declare them.
  struct Params {
    Control* control;
    unsigned* a;      // `n` words
    unsigned* flag;   // two
    uint64_t* words;  // two
    int64_t n;
  };

  /// `image`: a binary of the simt dialect. Memory is zero.
  SimtLab(const std::string& image, const SimtOptions& options, int64_t n = 64);

  SimtMachine& machine() { return *machine_; }
  Params& params() { return params_; }
  /// Memory that nobody has written.
  unsigned* Fresh(size_t words);
  /// Not ordered with what is launched before, but by `after`.
  std::shared_ptr<SimtLaunch> Launch(const char* kernel, int rank, int blocks, int threads,
                                     const SimtLaunch* after = nullptr);
  /// Until all have ended; "" or what was found.
  std::string Run();
  /// On rank 0.
  std::string Run(const char* kernel, int blocks, int threads);

 private:
  template <class T>
  T* Born(size_t count);

  std::unique_ptr<SimtMachine> machine_;
  std::unique_ptr<SimtModule> module_;
  std::shared_ptr<const Clock> start_ = std::make_shared<Clock>();
  Params params_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_TESTING_SIMT_LAB_H_
