#include "tests/random_config.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "jit/config/beside.h"
#include "jit/config/pieces.h"
#include "tests/machine.h"

namespace coconet {
namespace {

template <class T, size_t N>
T Pick(std::mt19937_64& random, const T (&choices)[N]) {
  return choices[random() % N];
}

}  // namespace

Config DrawCompiledConfig(std::mt19937_64& random) {
  Config config;
  config.vec = Pick(random, {1, 4, 16, 32});
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
  const bool columns = random() % 2 == 0;
  if (!schedule.overlaps().empty()) {
    config.pieces = pieces;
    config.columns =
        columns && absl::c_all_of(schedule.overlaps(), [&](const std::vector<NodeId>& overlap) {
          return WhyNoColumns(schedule, overlap).empty();
        });
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
  const int beside = Pick(random, {0, 1, 2, 3}), tiles = Pick(random, {0, 64, 128});
  const bool concurrent = random() % 2 == 0;
  if (HasConcurrency(schedule, config.protocol, nodes)) config.concurrent = concurrent;
  const int64_t bucket = Pick<int64_t>(random, {0, 1, 1000, 100000});
  if (config.concurrent) config.bucket = bucket;
  if (CommunicatesBeside(schedule, config.protocol, nodes)) config.beside = beside;
  if (config.beside == 0 || tiles == 0 || !TakesTiles(schedule, config.protocol, nodes)) return;
  config.tiles = tiles;
  config.pieces = 1;
  config.columns = false;
}

}  // namespace coconet
