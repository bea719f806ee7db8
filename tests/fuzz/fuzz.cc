#include "tests/fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>

#include "coconet/language/text.h"
#include "coconet/workloads/workloads.h"
#include "jit/lower/lower.h"
#include "tests/harness/program_texts.h"

namespace coconet {
namespace {

Graph Workload(absl::string_view name, const Sizes& sizes) {
  return BindSizes(MakeWorkload(name).value(), sizes).value();
}

std::vector<Graph> MakePrograms() {
  const std::vector<int64_t> list = {1, 7, 70};
  return {
      Workload("sgd", {{"N", 100}}),
      Workload("adam", {{"N", 1000}}),
      Workload("lamb", {{"N", list}}),
      Workload("clip", {{"N", list}}),
      Workload("attention", {{"B", 1}, {"S", 8}, {"H", 16}, {"K", 32}}),
      Workload("sequence", {{"B", 1}, {"S", 8}, {"H", 16}, {"K", 32}}),
      Workload("pipeline", {{"B", 2}, {"S", 8}, {"H", 16}}),
      BindSizes(Parse(kExchange).value(), {{"A", 4}, {"S", 8}, {"D", 12}}).value(),
      BindSizes(Parse(kRooted).value(), {{"N", 90}}).value(),
  };
}

FuzzedWorld WorldOf(const Target& target, int multiprocessors) {
  FuzzedWorld world{target, {}};
  world.space.ranks = target.ranks;
  world.space.nodes = target.nodes;
  world.space.stages_apart = target.stages_apart;
  world.space.cores = 4;
  world.space.multiprocessors = multiprocessors;
  world.space.gemm_candidates = multiprocessors > 0 ? 4 : 1;
  world.space.multicast = world.space.bulk = world.space.ring = multiprocessors > 0;
  return world;
}

}  // namespace

void Expect(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "finding: %s\n", std::string(what).c_str());
  std::abort();
}

void ExpectNoneOfOurs(const absl::Status& status) {
  Expect(!absl::IsInternal(status) && !absl::IsUnknown(status), status.ToString());
  Expect(status.ok() || !status.message().empty(), "an error without words");
}

const std::vector<Graph>& FuzzedPrograms() {
  static const auto& programs = *new std::vector<Graph>(MakePrograms());
  return programs;
}

const FuzzedWorld& WorldAt(uint64_t number) {
  static const auto& worlds = *new std::vector<FuzzedWorld>{
      WorldOf({2}, 0), WorldOf({4, 2}, 0),    WorldOf({1}, 0),      WorldOf({3, 3}, 0),
      WorldOf({2}, 8), WorldOf({2, 1, 2}, 0), WorldOf({4, 2}, 132), WorldOf({2, 1, 2, true}, 8),
  };
  return worlds[number % worlds.size()];
}

void LowerFuzzed(const Schedule& schedule, const Config& config, const FuzzedWorld& world) {
  const absl::Status valid = Validate(config, schedule, world.space);
  ExpectNoneOfOurs(valid);
  if (!valid.ok()) return;
  const absl::StatusOr<Lowered> lowered = Lower(schedule, config, world.target);
  ExpectNoneOfOurs(lowered.status());
  if (!lowered.ok()) return;
  Expect(CodeFingerprint(*lowered).size() == 64, "a fingerprint of another length");
  const bool computes = !schedule.kernels().empty();
  Expect(!computes || !lowered->kernels.empty(), "kernels without text");
}

uint64_t HashOf(absl::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash ^ (hash >> 29);
}

}  // namespace coconet
