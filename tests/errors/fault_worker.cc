// One rank of a world of MPI processes in which one fails; mpi_faults_test starts it. Arguments:
// the folder of the kernel cache, the seed, the name of a program (FaultPrograms), and of a fault.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"
#include "tests/errors/faults.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {
namespace {

/// Rank 0 compiles; all get the paths.
absl::StatusOr<std::vector<std::string>> CompileOnce(Rank& rank, const LoweredVariant& variant,
                                                     const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> binaries = std::vector<std::string>();
  if (rank.rank() == 0) {
    KernelSet kernels;
    kernels.Add(variant.lowered);
    ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                     MakeHostCompiler({.cache_dir = folder, .optimize = Optimize::kFast}));
    binaries = kernels.Compile(*compiler);
  }
  RETURN_IF_ERROR(rank.exchange().Agree(binaries.status()));
  ASSIGN_OR_RETURN(const std::string paths,
                   rank.exchange().Broadcast(absl::StrJoin(*binaries, "\n")));
  return std::vector<std::string>(absl::StrSplit(paths, '\n', absl::SkipEmpty()));
}

absl::Status Body(Rank& rank, const std::string& folder, uint64_t seed, const FaultProgram& program,
                  Fault fault) {
  ASSIGN_OR_RETURN(const std::vector<LoweredVariant> variants, FaultVariants(program, seed));
  const LoweredVariant& variant = variants[Mix(seed, 1) % variants.size()];
  if (!MustBeNoticed(fault, variant)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, CompileOnce(rank, variant, folder));
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
  if (rank.rank() == 0) std::fprintf(stderr, "%s\n", Reproducer(variant, seed).c_str());
  std::string wrong;
  const absl::Status status = RunIntoFault(rank, *module, variant, fault, seed, wrong);
  const std::string line =
      absl::StrCat("rank ", rank.rank(), wrong.empty() ? " is right: " : " is wrong: ", wrong, "; ",
                   status.ToString(), "\n");
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0)
    return absl::InternalError("write");  // one write a line: mpirun mixes them
  return status;
}

int Run(const std::string& folder, uint64_t seed, const std::string& program,
        const std::string& fault) {
  for (const FaultProgram& known : FaultPrograms()) {
    for (Fault kind : kAllFaults) {
      if (known.name != program || Name(kind) != fault) continue;
      const Target& target = known.target;
      const WorldOptions options{.stages = target.stages,
                                 .nodes = target.world_nodes(),
                                 .timeout_s = TimeoutOf(kind, target)};
      return RunWorld(options, [&](Rank& rank) { return Body(rank, folder, seed, known, kind); })
                     .ok()
                 ? 0
                 : 1;
    }
  }
  std::fprintf(stderr, "no program \"%s\" or fault \"%s\"\n", program.c_str(), fault.c_str());
  return 2;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "want 4 arguments: folder, seed, program, fault\n");
    return 2;
  }
  return coconet::Run(argv[1], std::strtoull(argv[2], nullptr, 10), argv[3], argv[4]);
}
