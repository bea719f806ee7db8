#include "tests/harness/schedule_sampler.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/launches.h"
#include "coconet/schedule/schedule.h"
#include "gtest/gtest.h"
#include "jit/config/config_traits.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"

ABSL_FLAG(int, schedules, 0,
          "how many of a program's schedules are tried in each world, about; 0: 16, on simulated "
          "GPUs 4");

namespace coconet {
namespace {

constexpr int kGemmWaysOfHosts = 3;

/// Whether a collective is in no kernel, so that Config::protocol decides who does it.
bool LeavesCollectives(const Schedule& s) {
  std::vector<bool> fused(s.graph().size());
  for (const std::vector<NodeId>& kernel : s.kernels()) {
    for (NodeId id : kernel) fused[id] = true;
  }
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    if (Communicates(s.graph(), id) && !fused[id]) return true;
  }
  return false;
}

/// Takes too long where threads are simulated one by one.
bool IsLarge(const Graph& program, const Target& world) {
  constexpr int64_t kMostElements = 80000;  // of all ranks
  int64_t elements = 0;
  const Graph written_out = Expand(program);
  for (const Node& node : written_out.nodes) {
    if (const auto* input = std::get_if<Input>(&node.op))
      elements += NumElements(input->type.shape);
    if (const auto* state = std::get_if<State>(&node.op))
      elements += NumElements(state->type.shape);
  }
  return elements * world.world() > kMostElements;
}

}  // namespace

ScheduleSampler::ScheduleSampler(std::vector<Target> worlds, std::mt19937_64& random,
                                 VariantBatch& batch, int gemm_candidates)
    : worlds_(std::move(worlds)),
      random_(random),
      batch_(batch),
      gemm_candidates_(gemm_candidates),
      first_(random() % 1024) {
  OneIn sample(std::min<uint64_t>(OneInFlag(1), worlds_.size()), random);
  for (const Target& world : worlds_) {
    compiled_[world] = DrawCompiledConfig(random_);
    sampled_.push_back(sample.Takes());
  }
}

absl::Status ScheduleSampler::Add(const Graph& program, const Tries& tries) {
  for (size_t world = 0; world < worlds_.size(); ++world) {
    if (TheMachine().simulated && IsLarge(program, worlds_[world])) continue;
    const bool by_node = worlds_[world].nodes > 1 && worlds_[world].ranks_per_node() > 1;
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {.by_node = by_node}));
    for (size_t i = 0; i < schedules.size(); ++i) {
      if (!tries(i, schedules.size(), world)) continue;
      const Schedule schedule = DrawOrder(schedules[i], random_);
      Config config = DrawArguments(compiled_.at(worlds_[world]), schedule, random_);
      const int ways = TheMachine().gpu ? gemm_candidates_ : kGemmWaysOfHosts;
      if (Multiplies(schedule)) config.gemm = static_cast<int>(random_() % ways);
      for (Protocol protocol : {Protocol::kGenerated, Protocol::kLibrary}) {
        if (protocol == Protocol::kLibrary && !LeavesCollectives(schedule)) continue;
        Config here = config;
        here.protocol = protocol;
        DrawLanes(schedule, worlds_[world].nodes, random_, here);
        RETURN_IF_ERROR(batch_.Add(program, schedule, here, worlds_[world]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ScheduleSampler::AddSome(const Graph& program) {
  const auto asked = static_cast<size_t>(absl::GetFlag(FLAGS_schedules));
  const size_t some = asked > 0 ? asked : TheMachine().simulated ? 4 : 16;
  return Add(program, [&](size_t index, size_t count, size_t world) {
    return sampled_[world] && (index + world + first_) % ((count + some - 1) / some) == 0;
  });
}

Tally RunBatch(
    const std::function<absl::Status(std::mt19937_64& random, VariantBatch& batch)>& fill,
    Machine machine) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch(std::move(machine));
  if (const absl::Status filled = fill(random, batch); !filled.ok())
    ADD_FAILURE() << filled << "\nCOCONET_SEED=" << seed;
  EXPECT_EQ(batch.Run(seed, /*steps=*/3), "");
  const Tally& tally = batch.tally();
  std::cout << tally.variants << " variants, " << batch.kernels() << " kernels, " << tally.elements
            << " elements, COCONET_SEED=" << seed << "\n";
  return tally;
}

Tally RunSome(const SampledProgram& sampled) {
  return RunBatch([&](std::mt19937_64& random, VariantBatch& batch) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph symbolic, Parse(absl::StrCat("coconet 1\nprogram ", sampled.name,
                                                              "\n", sampled.statements)));
    ScheduleSampler sampler(sampled.worlds, random, batch);
    for (const Sizes& sizes : sampled.sizes) {
      ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
      RETURN_IF_ERROR(sampler.AddSome(program));
    }
    return absl::OkStatus();
  });
}

}  // namespace coconet
