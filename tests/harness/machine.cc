#include "tests/harness/machine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, gpu_lock, "",
          "a file that is locked while ranks use GPUs: processes that share one take turns, which "
          "is faster than its slices of time, one of which each wait would take");

namespace coconet {
namespace {

/// Holds --gpu_lock, where it is given.
class GpuLock {
 public:
  GpuLock() {
    const std::string path = absl::GetFlag(FLAGS_gpu_lock);
    if (path.empty()) return;
    file_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0 || flock(file_, LOCK_EX) != 0) std::perror(path.c_str());
  }
  ~GpuLock() {
    if (file_ >= 0) close(file_);
  }
  GpuLock(const GpuLock&) = delete;
  GpuLock& operator=(const GpuLock&) = delete;

 private:
  int file_ = -1;
};

/// Retains the primary context of GPU 0 until the process ends. Without it each world creates and
/// destroys the context, which takes long.
void KeepContext() {
  using RetainsContext = int(void** context, int device);  // cuDevicePrimaryCtxRetain, CUDA 7.0
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* retain = driver == nullptr
                     ? nullptr
                     : reinterpret_cast<RetainsContext*>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  void* context = nullptr;
  if (retain != nullptr) retain(&context, 0);
}

absl::StatusOr<Machine> Gpus() {
  std::string arch;
  int driver = 0;
  RETURN_IF_ERROR(RunWorld({.ranks = 1, .backend = Backend::kCuda}, [&](Rank& rank) {
    arch = rank.topology().arch;
    driver = rank.topology().driver;
    return absl::OkStatus();
  }));
  KeepContext();
  Machine machine;
  machine.gpu = true;
  machine.run_world = [](WorldOptions options, const std::function<absl::Status(Rank&)>& body) {
    const GpuLock lock;
    options.backend = Backend::kCuda;
    return RunWorld(options, body);
  };
  machine.make_compiler = [arch, driver](CompilerOptions options) {
    options.driver = driver;
    return MakeNvrtcCompiler(arch, options);
  };
  return machine;
}

absl::StatusOr<Machine> SimulatedGpus() {
  RETURN_IF_ERROR(
      RunWorld({.ranks = 1, .backend = Backend::kSimt}, [](Rank&) { return absl::OkStatus(); }));
  return SimulatedMachine();
}

}  // namespace

Machine SimulatedMachine(std::optional<SimtOptions> simt) {
  Machine machine;
  machine.gpu = machine.simulated = true;
  machine.may_lack_room = simt.has_value() && simt->resident_blocks > 0;
  machine.run_world = [simt](WorldOptions options, const std::function<absl::Status(Rank&)>& body) {
    options.backend = Backend::kSimt;
    options.simt = simt;
    return RunWorld(options, body);
  };
  machine.make_compiler = MakeSimtCompiler;
  return machine;
}

absl::StatusOr<Machine> MachineOfTests() {
  const char* set = std::getenv("COCONET_TEST_BACKEND");
  const std::string backend = set == nullptr ? "host" : set;
  if (backend == "host") return Machine();
  if (backend == "cuda") return Gpus();
  if (backend == "simt") return SimulatedGpus();
  return absl::InvalidArgumentError(
      absl::StrCat("COCONET_TEST_BACKEND: want host, cuda or simt, have '", backend, "'"));
}

const Machine& TheMachine() {
  static const Machine& machine = *new Machine(MachineOfTests().value());
  return machine;
}

}  // namespace coconet
