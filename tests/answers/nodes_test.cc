// Schedules of workloads in worlds of several nodes, those that are split by node among them, at
// sizes that are odd or tiny, with configs drawn at random, against the interpreter.

#include <iostream>
#include <random>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

/// Schedules of each program in each world, about.
size_t Some() {
  const int asked = absl::GetFlag(FLAGS_schedules);
  return asked > 0 ? static_cast<size_t>(asked) : TheMachine().simulated ? 1 : 5;
}

/// Ranks and nodes of a stage, stages.
std::vector<Target> WorldsOf(const Graph& program) {
  if (absl::c_any_of(program.nodes,
                     [](const Node& node) { return std::holds_alternative<Send>(node.op); }))
    return {{4, 2, 2}};
  return {{4, 2}, {6, 2}, {6, 3}, {8, 4}};
}

std::vector<Sizes> SizesOf(const WorkloadInfo& info) {
  if (info.optimizer) return {{{"N", 1}}, {{"N", 65}}, {{"N", 4097}}, {{"N", {70, 1, 1000, 70}}}};
  const Sizes all = {{"B", 2},         {"S", 33}, {"H", 40}, {"K", 24}, {"R", 9}, {"D", 24},
                     {"L", {2, 0, 5}}, {"T", 5},  {"F", 28}, {"E", 6},  {"G", 8}, {"C", 3}};
  Sizes used;
  for (const auto& [symbol, unused] : info.presets[0].sizes)
    used.insert_or_assign(symbol, all.at(symbol));
  return {used};
}

TEST(Nodes, SchedulesOfEveryWorkloadComputeWhatTheProgramSays) {
  const Tally tally = RunBatch([](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    for (const WorkloadInfo& info : Workloads()) {
      if (!info.varies.empty()) continue;
      ASSIGN_OR_RETURN(
          const Graph symbolic,
          MakeWorkload(info.name, {.dtype = random() % 3 == 0 ? DType::kBF16 : DType::kF32}));
      ScheduleSampler sampler(WorldsOf(symbolic), random, batch);
      for (const Sizes& sizes : SizesOf(info)) {
        ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
        const auto some = [&](size_t /*index*/, size_t count, size_t /*world*/) {
          return random() % (1 + count / Some()) == 0;
        };
        RETURN_IF_ERROR(WithContext(sampler.Add(program, some), info.name));
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(20 * Some()));
}

/// A program whose text needs what optimizers do not: rows, slices of an inner dimension, what all
/// have of a row.
TEST(Nodes, EveryScheduleOfAProgramOfMatricesComputesWhatItSays) {
  const Tally tally = RunBatch([](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph program, Parse(R"(coconet 1
program rows
input g : f32[37, 24] local
input h : bf16[37, 24] local
input scale : f32[24] replicated
input shift : f32[37, 1] replicated
state w : f32[37, 24]
x = all_reduce(sum, g) * scale + shift
y = cast(f32, all_reduce(max, h))
z = x - mean(x, 1) + y * amax(y, 1)
update(w, 0.5 * w + z)
output o = z * z
)"));
    ScheduleSampler sampler({{4, 2}, {6, 2}, {6, 3}, {3, 3}}, random, batch);
    return sampler.Add(program, [&](size_t /*index*/, size_t count, size_t /*world*/) {
      return random() % (1 + count / (12 * Some())) == 0;
    });
  });
  EXPECT_GT(tally.variants, AtMostDrawn(10 * Some()));
}

/// Chains of launches with AllToAlls between dimensions, cut into pieces: rows for ranks of
/// experts, that do not divide evenly or leave ranks without any; matrices that no rank has slices
/// of; rows that a rank computes for all.
TEST(Nodes, OverlapsExchangesChunkByChunk) {
  constexpr absl::string_view kExperts = R"(coconet 1
program experts
input x : f32[9, H] local
input token : i32[E, G, 3] sliced(1)
input gate : f32[E, 1, H, F] sliced(0)
input up : f32[E, 1, F, H] sliced(0)
a = abs(gather(x, token, 0))
b = all_to_all(a, 0)
c = matmul(exp(matmul(b, gate)), up)
output y = abs(all_to_all(c, 1))
)";
  constexpr absl::string_view kRows = R"(coconet 1
program rows
input x : f32[1, G, E, H] sliced(1)
input w : f32[H, H] replicated
a = all_to_all(matmul(abs(x), w), 2)
b = exp(matmul(a, w, transpose_b))
output y = abs(all_to_all(b, 1)) + x
)";
  constexpr absl::string_view kLayers = R"(coconet 1
program layers
input x : bf16[E, G, H] sliced(1)
a = all_to_all(x * 0.5, 2)
output y = abs(all_to_all(abs(a), 1)) + x
)";
  constexpr absl::string_view kBags = R"(coconet 1
program bags
input table : f32[7, H] sliced(1)
input indices : i32[G, E] replicated
input v : f32[G, H] sliced(0)
output y = abs(all_to_all(embedding_bag(table, indices, sum), 0)) * v
)";
  const Tally tally = RunBatch([&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    for (absl::string_view text : {kExperts, kRows, kLayers, kBags}) {
      ASSIGN_OR_RETURN(const Graph symbolic, Parse(text));
      for (int64_t experts : {1, 5, 8}) {
        Sizes sizes = {{"E", experts}, {"G", 7}, {"H", 12}};
        if (text == kExperts) sizes.insert_or_assign("F", 20);
        ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
        ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
        for (const Target& world : {Target(2, 2), Target(3, 3), Target(4, 2)}) {
          for (const Schedule& schedule : schedules) {
            if (schedule.overlaps().empty() || random() % 3 == 0) continue;
            Config config = DrawArguments({.vec = 4}, schedule, random);
            if (absl::IsInvalidArgument(
                    Validate(config, schedule, {.ranks = world.ranks, .nodes = world.nodes})))
              continue;  // fuses what crosses nodes
            RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
          }
        }
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(40));
}

/// The same of lists of tables, batch by batch, where one table has most of the look-ups, some have
/// none, and ranks have columns of several tables or of a part of one.
TEST(Nodes, OverlapsExchangesOfTensorsBatchByBatch) {
  const Tally tally = RunBatch([&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    for (const std::vector<int64_t>& lookups :
         std::vector<std::vector<int64_t>>{{1, 2, 40, 0, 3, 1, 5}, {3, 1}, {0, 0, 7}}) {
      ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("dlrm_embedding", {}));
      ASSIGN_OR_RETURN(const Graph program,
                       BindSizes(symbolic, {{"B", 7}, {"R", 11}, {"D", 20}, {"L", lookups}}));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
      for (const Target& world : {Target(2, 2), Target(3, 3), Target(4, 2)}) {
        for (const Schedule& schedule : schedules) {
          if (schedule.overlaps().empty()) continue;
          const Config config = DrawArguments({.vec = 4}, schedule, random);
          RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
        }
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(8));
}

/// Collectives that run beside all of a step's computation, and beside the next step's.
TEST(Nodes, RoundsOfLocalSgdAndDelayedGradientsComputeWhatTheySay) {
  constexpr absl::string_view kDelayed = R"(coconet 1
program delayed
input x : f32[33, 17] local
input t : f32[33, 5] local
input lr : f32[]
state w : f32[17, 5] replicated
state b : bf16[5] replicated
state d : f32[17, 5] replicated
state e : bf16[5] replicated
off = matmul(x, w) + cast(f32, b) - t
update(d, all_reduce(sum, matmul(x, off, transpose_a)))
update(e, all_reduce(sum, cast(bf16, reshape(sum(off, 0), [5]))))
update(w, w - lr * d)
update(b, b - cast(bf16, lr) * e)
output loss = sum(off * off)
)";
  const Tally tally = RunBatch([&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph delayed, Parse(kDelayed));
    std::vector<Graph> programs = {Canonicalize(delayed).graph};
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      ASSIGN_OR_RETURN(
          programs.emplace_back(),
          LocalSgd(
              {.layers = 2, .inputs = 5, .width = 7, .outputs = 3, .examples = 3, .local_steps = 2},
              {.dtype = dtype}));
    }
    for (const Graph& program : programs) {
      for (const Target& world : {Target(2, 2), Target(4, 2), Target(3, 3), Target(3)}) {
        ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                         Derive(program, {.by_node = world.nodes > 1 && world.nodes < world.ranks,
                                          .few = true}));
        for (int i = 0; i < 2; ++i) {
          const Schedule& schedule = schedules[i == 0 ? 0 : random() % schedules.size()];
          Config config = DrawArguments({.vec = 4}, schedule, random);
          DrawLanes(schedule, world.nodes, random, config);
          if (i == 0) config.concurrent = true;
          RETURN_IF_ERROR(WithContext(batch.Add(program, schedule, config, world), program.name));
        }
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(12));
}

/// With one rank per node, collectives within a node have one rank; with many ranks and few
/// elements, most parts are empty.
TEST(Nodes, SplitsByNodeWorkOnAnyMesh) {
  const Tally tally = RunBatch([](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    for (int64_t n : {1, 1003}) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(*MakeWorkload("momentum", {}), {{"N", n}}));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {.by_node = true}));
      for (const Target& world : {Target(3, 3), Target(8, 2)}) {
        for (const Schedule& schedule : schedules) {
          Config config = DrawArguments({.vec = 16}, schedule, random);
          config.protocol = random() % 2 == 0 ? Protocol::kLibrary : Protocol::kGenerated;
          RETURN_IF_ERROR(batch.Add(program, schedule, config, world));
        }
      }
    }
    return absl::OkStatus();
  });
  EXPECT_GT(tally.variants, AtMostDrawn(50));
}

}  // namespace
}  // namespace coconet
