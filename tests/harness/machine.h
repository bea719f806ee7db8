#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {

/// What differential tests run variants on.
struct Machine {
  using RunsWorld = std::function<absl::Status(const WorldOptions& options,
                                               const std::function<absl::Status(Rank&)>& body)>;
  using MakesCompiler =
      std::function<absl::StatusOr<std::unique_ptr<Compiler>>(const CompilerOptions& options)>;
  RunsWorld run_world = RunWorld;
  MakesCompiler make_compiler = MakeHostCompiler;
  bool gpu = false;            // blocks have several threads
  bool simulated = false;      // which are simulated one by one: what is small is tried
  bool may_lack_room = false;  // for all blocks of a kernel at once: where these wait for each
                               // other, binding refuses the variant, and that is right
};

/// GPUs that are simulated so; nullopt: as COCONET_SIMT_SEED says.
Machine SimulatedMachine(std::optional<SimtOptions> simt = std::nullopt);

/// COCONET_TEST_BACKEND: host (or unset), cuda, or simt. A test that wants a GPU where there is
/// none should be skipped: Unavailable says why.
absl::StatusOr<Machine> MachineOfTests();

/// The same, for where that is known to be well; else the host.
const Machine& TheMachine();

}  // namespace coconet
