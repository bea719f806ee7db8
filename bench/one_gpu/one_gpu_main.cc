// Checks what one GPU suffices for: one_gpu CHECK [--fake]. Prints what it found. Exit code: 0
// passed, 1 failed, 3 it cannot be tried here.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "bench/one_gpu/checks.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/nccl/testing/host_nccl.h"

namespace coconet::bench {
namespace {

constexpr int kFailed = 1, kUsage = 2, kNotHere = 3;

struct Check {
  const char* name;
  absl::StatusOr<std::string> (*run)(const OneGpu& gpu);
};
constexpr Check kChecks[] = {{"multicast", CheckMulticastOfOne},
                             {"ipc", CheckIpc},
                             {"files", CheckFileHandles},
                             {"nccl_one", CheckNcclOfOne},
                             {"nccl_two", CheckNcclOfTwo},
                             {"fault", CheckFault},
                             {"late", CheckLateRank}};

absl::StatusOr<OneGpu> Machine(bool fake) {
  if (fake) {
    SetHostDevices({.count = 1, .multicast = true});
    return OneGpu{.libraries = {.driver = HostDriver(),
                                .open_cublaslt = OpenHostCublasLt,
                                .control = ControlOfHostKernels()},
                  .nccl = &HostNccl(),
                  .fake = true};
  }
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return OneGpu{.libraries = {.driver = *driver}, .nccl = OpenNccl()};
}

int Say(const char* what, absl::string_view words, int code) {
  const std::string line = absl::StrReplaceAll(words, {{"\n", "; "}});
  std::printf("%s: %s\n", what, line.c_str());
  return code;
}

int Main(const std::vector<std::string>& arguments) {
  const bool fake = arguments.size() == 2 && arguments[1] == "--fake";
  std::vector<std::string> names;
  for (const Check& check : kChecks) {
    names.emplace_back(check.name);
    if (arguments.empty() || arguments[0] != check.name) continue;
    if (arguments.size() > 1 && !fake) break;
    const absl::StatusOr<OneGpu> machine = Machine(fake);
    if (!machine.ok()) return Say(check.name, machine.status().message(), kNotHere);
    const absl::StatusOr<std::string> found = check.run(*machine);
    if (found.ok()) return Say(check.name, *found, 0);
    return Say(check.name, found.status().ToString(),
               absl::IsUnavailable(found.status()) ? kNotHere : kFailed);
  }
  std::fprintf(stderr, "one_gpu: want one of %s, and --fake for the driver of tests, have '%s'%s\n",
               absl::StrJoin(names, ", ").c_str(), absl::StrJoin(arguments, " ").c_str(),
               arguments.empty() ? "" : DidYouMean(arguments[0], names).c_str());
  return kUsage;
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  return coconet::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
}
