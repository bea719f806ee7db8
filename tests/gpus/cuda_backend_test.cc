// The CUDA backend's way of running plans (streams, events, launches, flags in device memory,
// collectives by NCCL or by way of the host) against the interpreter, on a driver that runs kernels
// of the host dialect and an NCCL of the host: all of the backend but the GPU.

#include <random>
#include <string>

#include "absl/functional/bind_front.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/config/beside.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_green.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/testing/host_nccl.h"
#include "tests/harness/random_config.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

constexpr double kTimeout = 60;

absl::Status OnHostDriver(bool green, const WorldOptions& options,
                          const std::function<absl::Status(Rank&)>& body) {
  const auto open = [](const StreamLibraryTerms& terms) {
    return OpenNcclLibrariesOver(&HostNccl(), terms);
  };
  const CudaLibraries libraries{.driver = HostDriver(),
                                .open_cublaslt = OpenHostCublasLt,
                                .open_libraries = open,
                                .green_contexts = green,
                                .control = ControlOfHostKernels()};
  return RunCudaWorldOver(
      libraries, {options.ranks, {.stages = options.stages, .nodes = options.nodes}, kTimeout},
      body);
}

/// A sample of the schedules of a workload in each of these worlds, on so many GPUs: library
/// collectives are NCCL's where each rank has one.
Tally RunSome(const std::string& name, DType dtype, const Sizes& sizes,
              const std::vector<Target>& worlds, int gpus) {
  SetHostDevices({.count = gpus, .multiprocessors = 512});
  return RunBatch(
      [&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
        ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(name, {.dtype = dtype}));
        ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
        return ScheduleSampler(worlds, random, batch, kHostWays).AddSome(program);
      },
      {.run_world = absl::bind_front(OnHostDriver, /*green=*/true)});
}

/// Kernels on slices that reach all ranks of a node at once.
Tally RunMulticast(const std::string& name, DType dtype, const Sizes& sizes,
                   const std::vector<Target>& worlds) {
  SetHostDevices({.count = 8, .multiprocessors = 512, .multicast = true});
  const auto fill = [&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(name, {.dtype = dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
    Config compiled = DrawCompiledConfig(random);
    compiled.multicast = true;
    compiled.ring = compiled.bulk = false;  // the other ways of slices
    for (const Target& world : worlds) {
      for (const Schedule& schedule : schedules) {
        if (random() % 2 == 0 || !schedule.overlaps().empty()) continue;
        Config config = DrawArguments(compiled, schedule, random);
        config.protocol = Protocol::kGenerated;
        RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
      }
    }
    return absl::OkStatus();
  };
  const auto run = [](const WorldOptions& options, const std::function<absl::Status(Rank&)>& body) {
    return OnHostDriver(/*green=*/true, options, [&](Rank& rank) {
      EXPECT_EQ(rank.topology().multicast, rank.mesh().ranks > 1);
      return body(rank);
    });
  };
  return RunBatch(fill, {.run_world = run});
}

/// Overlaps of a workload's products with collectives by kernels, all of them beside the products,
/// on one GPU.
Tally RunBeside(const std::string& name, DType dtype, const Sizes& sizes,
                const std::vector<Target>& worlds, bool green) {
  SetHostDevices({.multiprocessors = 512});
  const auto fill = [&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(name, {.dtype = dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
    const Config compiled = DrawCompiledConfig(random);
    for (const Target& world : worlds) {
      for (const Schedule& schedule : schedules) {
        if (!CommunicatesBeside(schedule, Protocol::kGenerated, 1) || random() % 4 != 0) continue;
        Config config = DrawArguments(compiled, schedule, random);
        config.protocol = Protocol::kGenerated;
        while (config.beside == 0) DrawLanes(schedule, world.nodes, random, config);
        RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
      }
    }
    return absl::OkStatus();
  };
  return RunBatch(fill, {.run_world = absl::bind_front(OnHostDriver, green)});
}

TEST(CudaBackend, OptimizersMatchTheInterpreter) {
  EXPECT_GT(RunSome("adam", DType::kF32, {{"N", 4097}}, {1, 2, 3, 4, 8}, 1).variants, 10);
  EXPECT_GT(RunSome("adamw", DType::kBF16, {{"N", 1000}}, {2, 3}, 2).variants, 6);
}

TEST(CudaBackend, KernelsThatWereCompiledInPartsMatchTheInterpreter) {
  SetHostDevices({.multiprocessors = 512});
  const auto compiler = [](CompilerOptions options) {
    options.part_kernels = 1 + FreshSeed() % 3;
    return MakeHostCompiler(options);
  };
  const auto fill = [](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("loss_scale", {}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, {{"N", 1003}}));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
    for (int i = 0; i < 4; ++i) {
      const Schedule& schedule = schedules[random() % schedules.size()];
      RETURN_IF_ERROR(batch.Add(program, schedule, DrawArguments({.vec = 4}, schedule, random), 2));
    }
    return absl::OkStatus();
  };
  const Tally tally = RunBatch(fill, {.run_world = absl::bind_front(OnHostDriver, /*green=*/true),
                                      .make_compiler = compiler});
  EXPECT_GT(tally.variants, 0);
}

TEST(CudaBackend, NormsMeetAcrossBlocksAndRanks) {
  EXPECT_GT(RunSome("lamb", DType::kF32, {{"N", 4097}}, {1, 3, 4}, 1).variants, 6);
}

TEST(CudaBackend, ListsAreReachedByTables) {
  EXPECT_GT(
      RunSome("lamb", DType::kF32, {{"N", std::vector<int64_t>{1, 64, 7001, 1000, 64}}}, {2, 3}, 1)
          .variants,
      6);
  EXPECT_GT(
      RunSome("clip", DType::kF32, {{"N", std::vector<int64_t>{1, 64, 7001}}}, {2}, 1).variants, 3);
}

TEST(CudaBackend, MatrixProductsMatchTheInterpreter) {
  const Sizes epilogue = {{"B", 2}, {"S", 33}, {"H", 65}, {"K", 40}};
  EXPECT_GT(RunSome("attention", DType::kF32, epilogue, {1, 2, 3, 4}, 1).variants, 6);
  EXPECT_GT(RunSome("mlp", DType::kBF16, epilogue, {2, 3, 4}, 2).variants, 6);
  EXPECT_GT(RunSome("attention", DType::kF16, epilogue, {1, 4, {4, 2}}, 1).variants, 6);
}

TEST(CudaBackend, CollectivesBesideProductsMatchTheInterpreter) {
  const Sizes epilogue = {{"B", 1}, {"S", 33}, {"H", 65}, {"K", 40}};
  for (bool green : {true, false}) {
    TakeHostGreen();
    EXPECT_GT(RunBeside("mlp", DType::kF32, epilogue, {1, 2, 3, 4}, green).variants, 3);
    EXPECT_GT(RunBeside("attention", DType::kBF16, epilogue, {1, 2, 3, 4}, green).variants, 3);
    EXPECT_EQ(TakeHostGreen().launches > 0, green);
  }
}

TEST(CudaBackend, MulticastMatchesTheInterpreter) {
  EXPECT_GT(RunMulticast("adam", DType::kF32, {{"N", 4097}}, {3, {4, 2}}).variants, 2);
  EXPECT_GT(RunMulticast("adamw", DType::kBF16, {{"N", 1000}}, {4}).variants, 2);
}

TEST(CudaBackend, SequenceParallelProductsMatchTheInterpreter) {
  const Sizes sizes = {{"B", 2}, {"S", 65}, {"H", 33}, {"K", 40}};
  EXPECT_GT(RunSome("sequence", DType::kF32, sizes, {1, 2, 3}, 1).variants, 0);
  EXPECT_GT(RunSome("sequence", DType::kBF16, sizes, {2, 4}, 2).variants, 0);
}

TEST(CudaBackend, CollectivesOfStreamsMatchTheInterpreter) {
  const int before = NcclCollectives();
  EXPECT_GT(RunSome("adam", DType::kF32, {{"N", 4097}}, {1, 2, 3, 4, {4, 2}, {6, 3}}, 8).variants,
            10);
  EXPECT_GT(RunSome("adamw", DType::kBF16, {{"N", 1000}}, {2, 3, {4, 2}}, 8).variants, 6);
  EXPECT_GT(
      RunSome("lamb", DType::kF32, {{"N", std::vector<int64_t>{1, 64, 7001}}}, {2, 3}, 8).variants,
      5);
  EXPECT_GT(RunSome("pipeline", DType::kF16, {{"B", 2}, {"S", 33}, {"H", 64}},
                    {{2, 1, 2}, {4, 2, 2}, {6, 1, 2}}, 8)
                .variants,
            3);
  EXPECT_GT(NcclCollectives() - before, 30);
}

TEST(CudaBackend, StagesAndNodesMatchTheInterpreter) {
  EXPECT_GT(
      RunSome("pipeline", DType::kF32, {{"B", 2}, {"S", 33}, {"H", 64}}, {{2, 1, 2}, {4, 2, 2}}, 2)
          .variants,
      0);
  EXPECT_GT(RunSome("adam", DType::kF32, {{"N", 4097}}, {{4, 2}}, 4).variants, 0);
}

}  // namespace
}  // namespace coconet
