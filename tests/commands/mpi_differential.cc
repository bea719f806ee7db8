// One rank of the differential test in a world of MPI processes: schedules of Adam, or, where there
// are several stages, of the boundary between two, every so many, with both protocols.
// mpi_commands_test starts it. Arguments: the folder of the kernel cache, the seed, how many nodes
// and stages.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"
#include "tests/harness/differential_body.h"
#include "tests/harness/random_config.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {
namespace {

/// What is run, at which sizes, and one schedule in how many of that.
struct Drawn {
  const char* workload;
  std::vector<Sizes> sizes;
  unsigned one_in;
};

Drawn DrawnOf(const Target& target) {
  if (target.stages == 1) return {"adam", {{{"N", 1}}, {{"N", 1001}}, {{"N", 4097}}}, 4};
  return {"pipeline", {{{"B", 1}, {"S", 3}, {"H", 5}}, {{"B", 2}, {"S", 33}, {"H", 64}}}, 25};
}

/// The same on every rank.
absl::StatusOr<std::vector<LoweredVariant>> DrawVariants(const Target& target, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Config compiled = DrawCompiledConfig(random);
  const Drawn drawn = DrawnOf(target);
  std::vector<LoweredVariant> variants;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(drawn.workload, {.dtype = dtype}));
    for (const Sizes& sizes : drawn.sizes) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                       Derive(program, {.by_node = target.nodes > 1}));
      for (const Schedule& schedule : schedules) {
        Config config = DrawArguments(compiled, schedule, random);
        config.protocol = random() % 2 == 0 ? Protocol::kLibrary : Protocol::kGenerated;
        const ConfigSpace space{
            .ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart};
        if (random() % drawn.one_in != 0 || !Validate(config, schedule, space).ok()) continue;
        ASSIGN_OR_RETURN(LoweredVariant variant, MakeVariant(program, schedule, config, target));
        variants.push_back(std::move(variant));
      }
    }
  }
  return variants;
}

/// Rank 0 compiles; all get the paths.
absl::StatusOr<std::vector<std::string>> CompileOnce(Rank& rank,
                                                     const std::vector<LoweredVariant>& variants,
                                                     const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> binaries = std::vector<std::string>();
  if (rank.rank() == 0) {
    KernelSet kernels;
    for (const LoweredVariant& variant : variants) kernels.Add(variant.lowered);
    ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                     MakeHostCompiler({.cache_dir = folder, .optimize = Optimize::kFast}));
    binaries = kernels.Compile(*compiler);
  }
  RETURN_IF_ERROR(rank.exchange().Agree(binaries.status()));
  ASSIGN_OR_RETURN(const std::string paths,
                   rank.exchange().Broadcast(absl::StrJoin(*binaries, "\n")));
  return std::vector<std::string>(absl::StrSplit(paths, '\n'));
}

absl::Status Body(Rank& rank, const std::string& folder, uint64_t seed) {
  const Mesh& mesh = rank.mesh();
  const Target target = {mesh.stage_size(), mesh.nodes, mesh.stages, mesh.stages_apart};
  ASSIGN_OR_RETURN(const std::vector<LoweredVariant> variants, DrawVariants(target, seed));
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, CompileOnce(rank, variants, folder));
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
  Tally tally;
  for (const LoweredVariant& variant : variants) {
    RETURN_IF_ERROR(WithContext(RunVariant(rank, *module, variant, seed, /*steps=*/3, tally),
                                Reproducer(variant, seed)));
  }
  if (rank.rank() == 0)
    std::printf("%d variants on %d %s ranks\n", static_cast<int>(tally.variants), rank.size(),
                std::string(rank.library().name()).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "want 4 arguments: folder, seed, nodes and stages\n");
    return 2;
  }
  const absl::Status status = coconet::RunWorld(
      {.stages = std::atoi(argv[4]), .nodes = std::atoi(argv[3])}, [&](coconet::Rank& rank) {
        return coconet::Body(rank, argv[1], std::strtoull(argv[2], nullptr, 10));
      });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
