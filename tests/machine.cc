#include "tests/machine.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::StatusOr<Machine> Gpus() {
  std::string arch;
  int driver = 0;
  RETURN_IF_ERROR(RunWorld({.ranks = 1, .backend = Backend::kCuda}, [&](Rank& rank) {
    arch = rank.topology().arch;
    driver = rank.topology().driver;
    return absl::OkStatus();
  }));
  Machine machine;
  machine.gpu = true;
  machine.run_world = [](WorldOptions options, const std::function<absl::Status(Rank&)>& body) {
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
