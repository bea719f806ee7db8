// One rank of the differential test in a world of MPI processes: schedules of Adam, every so many, with both protocols.
// mpi_commands_test starts it. Arguments: the folder of the kernel cache, the seed.

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
#include "coconet/workloads.h"
#include "jit/compiler.h"
#include "runtime/world.h"
#include "tests/differential_body.h"
#include "tests/kernel_set.h"
#include "tests/random_config.h"

namespace coconet {
namespace {

constexpr int64_t kSizes[] = {1, 1001, 4097};
constexpr int kOneIn = 4;

/// The same on every rank.
absl::StatusOr<std::vector<Variant>> DrawVariants(const Target& target, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Config compiled = DrawCompiledConfig(random);
  std::vector<Variant> variants;
  for (DType dtype : {DType::kF32, DType::kF16}) {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("adam", {.dtype = dtype}));
    for (int64_t n : kSizes) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, {{"N", n}}));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {.by_node = target.nodes > 1}));
      for (const Schedule& schedule : schedules) {
        Config config = DrawArguments(compiled, schedule, random);
        config.protocol = random() % 2 == 0 ? Protocol::kLibrary : Protocol::kGenerated;
        const bool drawn = random() % kOneIn == 0;
        if (!drawn || !Validate(config, schedule, {.ranks = target.ranks, .nodes = target.nodes}).ok()) continue;
        ASSIGN_OR_RETURN(Variant variant, MakeVariant(program, schedule, config, target));
        variants.push_back(std::move(variant));
      }
    }
  }
  return variants;
}

/// Rank 0 compiles; all get the paths.
absl::StatusOr<std::vector<std::string>> CompileOnce(Rank& rank, const std::vector<Variant>& variants,
                                                     const std::string& folder) {
  absl::StatusOr<std::vector<std::string>> binaries = std::vector<std::string>();
  if (rank.rank() == 0) {
    KernelSet kernels;
    for (const Variant& variant : variants) kernels.Add(variant.lowered);
    ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                     MakeHostCompiler({.cache_dir = folder, .optimize = Optimize::kFast}));
    binaries = kernels.Compile(*compiler);
  }
  RETURN_IF_ERROR(rank.exchange().Agree(binaries.status()));
  ASSIGN_OR_RETURN(const std::string paths, rank.exchange().Broadcast(absl::StrJoin(*binaries, "\n")));
  return std::vector<std::string>(absl::StrSplit(paths, '\n'));
}

absl::Status Body(Rank& rank, const std::string& folder, uint64_t seed) {
  ASSIGN_OR_RETURN(const std::vector<Variant> variants, DrawVariants({rank.mesh().stage_size(), rank.mesh().nodes}, seed));
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, CompileOnce(rank, variants, folder));
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
  Tally tally;
  for (const Variant& variant : variants) {
    RETURN_IF_ERROR(WithContext(RunVariant(rank, *module, variant, seed, /*steps=*/2, tally),
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
  if (argc != 4) {
    std::fprintf(stderr, "want 3 arguments: folder, seed and number of nodes\n");
    return 2;
  }
  const absl::Status status = coconet::RunWorld(
      {.nodes = std::atoi(argv[3])}, [&](coconet::Rank& rank) { return coconet::Body(rank, argv[1], std::strtoull(argv[2], nullptr, 10)); });
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
