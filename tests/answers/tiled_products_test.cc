// Products that tell of each tile when it is there, with the collective beside them that awaits the
// tiles: every type, transposes and odd sizes, on 1 to 4 ranks and two nodes, against the
// interpreter; and what happens when tiles do not come.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/prologue.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "jit/config/beside.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/rank_memory.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/variant_batch.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {
namespace {

/// An epilogue's rows and columns, and how its operands lie.
struct Case {
  DType dtype;
  int64_t rows, columns, depth;
  bool transpose_a, transpose_b;
};

/// `computes`: ranks compute something with their parts of the product before they add them up.
Graph Epilogue(const Case& c, bool computes) {
  const auto operand = [&](const char* name, int64_t rows, int64_t columns, bool transposed) {
    return absl::StrCat("input ", name, " : ", Name(c.dtype), "[", transposed ? columns : rows,
                        ", ", transposed ? rows : columns, "] local\n");
  };
  const absl::string_view end = computes ? " * r + 0.25" : "";
  const std::string text = absl::StrCat(
      "coconet 1\nprogram epilogue\n", operand("a", c.rows, c.depth, c.transpose_a),
      operand("b", c.depth, c.columns, c.transpose_b), "input r : ", Name(c.dtype), "[", c.rows,
      ", ", c.columns, "] replicated\noutput c = abs(all_reduce(sum, matmul(a, b",
      c.transpose_a ? ", transpose_a" : "", c.transpose_b ? ", transpose_b" : "", ")", end,
      ") + r)\n");
  const absl::StatusOr<Graph> program = Parse(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  return Canonicalize(*program).graph;
}

/// Some of the schedules that overlap the product with a kernel, in tiles.
absl::Status AddTiled(const Case& c, const Target& world, const Config& compiled,
                      std::mt19937_64& random, VariantBatch& batch) {
  // A kernel goes on with a product that it makes tile by tile.
  const bool computes = c.rows > kMostRows && random() % 2 == 0;
  const Graph program = Epilogue(c, computes);
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                   Derive(program, {.by_node = world.nodes > 1}));
  for (const Schedule& schedule : schedules) {
    if (!TakesTiles(schedule, Protocol::kGenerated, world.nodes) || random() % 8 != 0) continue;
    Config config = DrawArguments(compiled, schedule, random);
    config.protocol = Protocol::kGenerated;
    while (config.tiles == 0) DrawLanes(schedule, world.nodes, random, config);
    RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
  }
  return absl::OkStatus();
}

TEST(TiledProducts, MatchTheInterpreter) {
  const Case cases[] = {
      {DType::kF32, 200, 150, 70, false, false}, {DType::kF32, 131, 64, 129, true, false},
      {DType::kF32, 65, 257, 33, false, true},   {DType::kBF16, 300, 72, 40, true, true},
      {DType::kBF16, 128, 128, 64, false, true}, {DType::kF16, 129, 136, 65, false, false},
      {DType::kF16, 1, 300, 1, true, false},     {DType::kF32, 70, 1, 200, false, false},
      {DType::kF32, 90, 80, 0, false, false},    {DType::kF32, 0, 80, 9, false, false},
  };
  const Target worlds[] = {1, 2, 3, 4, {4, 2}};
  const Tally tally = RunBatch([&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    const Config compiled = DrawCompiledConfig(random);
    for (const Case& c : cases) {
      for (const Target& world : worlds) {
        if (random() % 3 == 0) RETURN_IF_ERROR(AddTiled(c, world, compiled, random, batch));
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(10));
}

/// The plan with a product that has no rows, so that nobody makes tiles.
Plan WithoutTiles(Plan plan, int64_t rows) {
  auto& product = std::get<KernelStep>(plan.steps[0]);
  EXPECT_EQ(product.label, "MM");
  for (Arg& arg : product.args) {
    if (arg.kind == Arg::Kind::kInt && arg.value == rows) arg.value = 0;
  }
  return plan;
}

TEST(TiledProducts, AreAwaitedUntilTheDeadline) {
  constexpr int64_t kRows = 200;
  const double timeout_s = TheMachine().simulated ? 60 : 0.3;
  const Graph program = Epilogue({DType::kF32, kRows, 150, 70, false, false}, false);
  const std::vector<Schedule> schedules = Derive(program).value();
  for (int ranks : {1, 2}) {
    for (const Schedule& schedule : schedules) {
      if (Describe(schedule) != "ol(MM, fuse(RS[flat], C, AG))") continue;
      const LoweredVariant variant =
          MakeVariant(program, schedule, {.chunk = 64, .beside = 1, .tiles = 64}, ranks).value();
      const Plan plan = WithoutTiles(variant.lowered.plan, kRows);
      KernelSet kernels;
      kernels.Add(variant.lowered);
      const auto compiler =
          TheMachine()
              .make_compiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache"),
                              .optimize = Optimize::kFast})
              .value();
      const std::vector<std::string> binaries = kernels.Compile(*compiler).value();
      const absl::Status status =
          TheMachine().run_world({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
            ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
            ASSIGN_OR_RETURN(RankMemory memory, RankMemory::Allocate(rank, schedule, plan));
            ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> bound,
                             rank.Bind(plan, *module, memory.buffers(), timeout_s));
            const absl::Status failed = bound->Run();
            EXPECT_EQ(bound->Run(), failed);
            return failed;
          });
      if (TheMachine()
              .simulated) {  // which knows, long before the deadline, that nobody will make them
        EXPECT_TRUE(absl::IsDataLoss(status) && absl::StrContains(status.message(), "deadlock: "))
            << status;
        EXPECT_TRUE(absl::StrContains(status.message(), " to reach 1, has 0")) << status;
        continue;
      }
      EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsAborted(status)) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "\"fuse(RS, C, AG)\"")) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "flag tile[") &&
                  absl::StrContains(status.message(), "]: want epoch 1, found 0"))
          << status;
    }
  }
}

}  // namespace
}  // namespace coconet
