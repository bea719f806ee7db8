#include "tests/harness/random_config.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/beside.h"
#include "jit/config/config_traits.h"
#include "jit/launches/pieces.h"
#include "tests/harness/machine.h"

namespace coconet {
namespace {

template <class T, size_t N>
T Pick(std::mt19937_64& random, const T (&choices)[N]) {
  return choices[random() % N];
}

/// Whether warp groups can multiply in each overlap of a product: halves, whose rows have a
/// multiple of 16 bytes; and in the schedule's kernels, which have the same tiles.
bool TakesWideTiles(const Schedule& s) {
  const auto takes = [&](NodeId id) {
    const TensorType& type = s.type(id);
    return type.dtype != DType::kF32 && type.shape.back().size % 8 == 0 &&
           type.layout.dim + 1 != static_cast<int>(type.shape.size());
  };
  const auto takes_operands = [&](NodeId product) {
    return product < 0 || absl::c_all_of(s.program().inputs(product), takes);
  };
  const auto of_kernel = [&](const std::vector<NodeId>& kernel) {
    return takes_operands(TiledProductOf(s.program(), kernel));
  };
  return absl::c_all_of(s.kernels(), of_kernel) &&
         absl::c_all_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
           return absl::c_all_of(
               overlap, [&](NodeId first) { return takes_operands(ProductOfLaunch(s, first)); });
         });
}

/// Tiles by warp groups.
struct WideTiles {
  int rows, columns, stages;
  bool tma;
};

}  // namespace

Config DrawCompiledConfig(std::mt19937_64& random) {
  Config config;
  config.vec = Pick(random, {1, 4, 16, 32});
  config.unroll = Pick(random, {1, 2, 16});
  config.streaming = Pick(random, {Streaming::kNone, Streaming::kShared, Streaming::kAll});
  config.one_shot = Pick(random, {OneShot::kPull, OneShot::kStaged, OneShot::kLL});
  const int ways = static_cast<int>(random() % 5);
  config.multicast = ways == 1;
  config.ring = ways == 2;
  config.bulk = ways == 3;
  return config;
}

Config DrawArguments(const Config& compiled, const Schedule& schedule, std::mt19937_64& random) {
  Config config = compiled;
  config.chunk = Pick<int64_t>(random, {64, 192, 4096});
  config.blocks = Pick(random, {1, 1, 2, 3});
  const int pieces = Pick(random, {2, 3, 6});
  const bool columns = random() % 2 == 0 && !TheMachine().gpu;
  if (!schedule.overlaps().empty()) {
    config.pieces = pieces;
    config.columns =
        columns && absl::c_all_of(schedule.overlaps(), [&](const std::vector<NodeId>& overlap) {
          return WhyNoColumns(schedule, overlap).empty();
        });
  }
  if (OnlyPulls(schedule)) {
    config.one_shot = OneShot::kPull;
    config.ring = false;
  }
  if (TheMachine().gpu) config.threads = Pick(random, {32, 96, 256, 512});
  if (TheMachine().simulated) config.threads = std::min(config.threads, 96);
  const int64_t batch = Pick<int64_t>(random, {0, 1, 100, 3000});
  if (WorksInBatches(schedule)) config.batch = batch;
  const bool remote_first = random() % 2 == 0;
  if (Exchanges(schedule)) config.remote_first = remote_first;
  return config;
}

void DrawLanes(const Schedule& schedule, int nodes, std::mt19937_64& random, Config& config) {
  int beside = Pick(random, {0, 1, 2, 3}), tiles = Pick(random, {0, 64, 128});
  if (TilesInKernels(schedule)) {  // which has no other way
    beside = std::max(beside, 1);
    tiles = std::max(tiles, 64);
  }
  const bool concurrent = random() % 2 == 0;
  if (HasConcurrency(schedule, config.protocol, nodes)) config.concurrent = concurrent;
  const int64_t bucket = Pick<int64_t>(random, {0, 1, 1000, 100000});
  if (config.concurrent && schedule.buckets().empty()) config.bucket = bucket;
  if (CommunicatesBeside(schedule, config.protocol, nodes)) config.beside = beside;
  if (config.beside == 0 || tiles == 0 || !TakesTiles(schedule, config.protocol, nodes)) return;
  config.tiles = tiles;
  config.pieces = 1;
  config.columns = false;
  const WideTiles wide = Pick<WideTiles>(random, {{0, 0, 0, false},
                                                  {128, 64, 3, false},
                                                  {128, 256, 4, false},
                                                  {256, 128, 3, true},
                                                  {128, 192, 4, true},
                                                  {128, 0, 6, true}});
  if (wide.stages == 0 || !TakesWideTiles(schedule)) return;
  // Nothing else is resident beside such a block, and a simulated GPU has four multiprocessors.
  config.beside = std::min(config.beside, 2);
  config.blocks = std::min(config.blocks, 2);
  config.tiles = wide.rows;
  config.tile_columns = wide.columns;
  config.stages = wide.stages;
  config.tma = wide.tma;
}

Schedule DrawOrder(const Schedule& schedule, std::mt19937_64& random) {
  if (random() % 2 == 0) return schedule;
  Schedule drawn = schedule;
  std::vector<NodeId> reduces;
  for (NodeId id = 0; id < drawn.graph().size(); ++id) {
    if (As<AllReduce>(drawn.graph(), id) != nullptr) reduces.push_back(id);
  }
  std::shuffle(reduces.begin(), reduces.end(), random);
  while (reduces.size() > 1) {
    const size_t count = std::min<size_t>(2 + random() % 3, reduces.size());
    Bucket bucket{{reduces.end() - count, reduces.end()}};
    reduces.resize(reduces.size() - count);
    std::sort(bucket.nodes.begin(), bucket.nodes.end());
    absl::StatusOr<Schedule> applied = Apply(drawn, bucket);
    if (applied.ok()) drawn = *std::move(applied);
  }
  if (random() % 3 == 0) return drawn;
  const Launches& launches = drawn.launches();
  std::vector<int> ranks(launches.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  Order order;
  for (int launch : InOrder(launches.list, ranks)) order.nodes.push_back(launches[launch].nodes[0]);
  const absl::StatusOr<Schedule> applied = Apply(drawn, order);
  CC_CHECK(applied.ok());  // it is topological
  return *applied;
}

}  // namespace coconet
