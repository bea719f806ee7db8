// Random programs, with schedules and configs drawn at random, against the interpreter. A failure
// prints the program, as it is and shrunk, and the seed that makes it again. More of them:
// --test_arg=--programs=10000.

#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/random_copies.h"
#include "coconet/testing/random_program.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/shrink.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

ABSL_FLAG(int, programs, 0, "how many programs of each kind; 0: 48, on simulated GPUs 16");

namespace coconet {
namespace {

const Target kWorlds[] = {1,
                          2,
                          3,
                          4,
                          5,
                          8,
                          {2, 2},
                          {4, 2},
                          {6, 3},
                          {6, 2},
                          {3, 1, 2},
                          {2, 1, 3},
                          {2, 1, 2, true},
                          {2, 2, 2},
                          {4, 2, 2}};  // ranks and nodes of a stage, stages
constexpr int64_t kSizes[] = {0, 1, 2, 3, 7, 63, 64, 65, 130, 257};
constexpr int kSchedules = 3;        // tried of each program, and one that computes values again
constexpr int kMostCopies = 12;      // of values of one program
constexpr int kProgramsABatch = 16;  // share ranks and kernels
constexpr int kShrinkTries = 40;     // each compiles for a second or so

/// What the programs of a batch have in common.
struct Terms {
  Target world;
  Config compiled;
};
Terms DrawTerms(std::mt19937_64& random) {
  const Target world = kWorlds[random() % std::size(kWorlds)];
  return {world, DrawCompiledConfig(random)};
}

/// Adds up to `limit` schedules of the program, the plainest among them.
absl::Status AddSchedules(const Graph& program, const Terms& terms, size_t limit,
                          std::mt19937_64& random, VariantBatch& batch) {
  const bool by_node = terms.world.nodes > 1 && terms.world.ranks_per_node() > 1;
  ASSIGN_OR_RETURN(std::vector<Schedule> schedules, Derive(program, {.by_node = by_node}));
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(program));
  const size_t derived = schedules.size(), some = std::min(limit, derived);
  schedules.push_back(WithRandomCopies(plain, kMostCopies, random));
  for (size_t i = 0; i <= some; ++i) {
    const size_t at = i == some ? derived : derived <= limit ? i : i == 0 ? 0 : random() % derived;
    const Schedule schedule = DrawOrder(schedules[at], random);
    for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
      Config config = DrawArguments(terms.compiled, schedule, random);
      config.protocol = protocol;
      DrawLanes(schedule, terms.world.nodes, random, config);
      RETURN_IF_ERROR(
          WithContext(batch.Add(program, schedule, config, terms.world),
                      absl::StrCat(Describe(schedule), " [", TraceText(schedule.trace()), "] of\n",
                                   Print(program))));
    }
  }
  return absl::OkStatus();
}

/// Some schedule of the program fails, as the first one did.
bool Fails(const Graph& program, const Terms& terms, uint64_t seed) {
  VariantBatch batch;
  std::mt19937_64 random(seed);
  return !AddSchedules(program, terms, /*limit=*/16, random, batch).ok() ||
         !batch.Run(seed, /*steps=*/3).empty();
}

/// Runs programs made by `make`; returns what was compared.
template <class Make>
Tally RunPrograms(uint64_t seed, Make make) {
  Tally all;
  std::mt19937_64 random(seed);
  const int programs = absl::GetFlag(FLAGS_programs) > 0 ? absl::GetFlag(FLAGS_programs)
                       : TheMachine().simulated          ? 16
                                                         : 48;
  const int together = programs < 64 ? 4 : kProgramsABatch;  // of few programs, too, several worlds
  for (int begin = 0; begin < programs; begin += together) {
    const Terms terms = DrawTerms(random);
    VariantBatch batch;
    std::vector<Graph> made;
    for (int i = begin; i < std::min(programs, begin + together); ++i) {
      made.push_back(Canonicalize(make(random)).graph);
      const absl::Status added = AddSchedules(made.back(), terms, kSchedules, random, batch);
      if (!added.ok()) ADD_FAILURE() << added << "\nCOCONET_SEED=" << seed;
    }
    const std::string failures = batch.Run(seed, /*steps=*/3);
    all += batch.tally();
    if (failures.empty()) continue;
    ADD_FAILURE() << failures;
    for (const Graph& program : made) {
      if (!Fails(program, terms, seed)) continue;
      const auto fails = [&](const Graph& smaller) { return Fails(smaller, terms, seed); };
      ADD_FAILURE() << "shrunk:\n" << Print(Shrink(program, kShrinkTries, fails));
      break;
    }
    break;
  }
  std::cout << all.variants << " variants, " << all.elements << " elements, " << all.undetermined
            << " of them undetermined\n";
  return all;
}

/// A program of extents N, and M if it has it. Draws again where one has no such sizes: 300
/// elements are not a number of type u8.
Graph BoundProgram(const BoundSize& n, std::mt19937_64& random) {
  for (;;) {
    const Graph symbolic = RandomProgram(random(), {.kind = ProgramKind::kSymbolic});
    const int64_t m = kSizes[random() % std::size(kSizes)] % 8;
    absl::StatusOr<Graph> program = BindSizes(symbolic, {{"N", n}, {"M", m}});
    if (!program.ok()) program = BindSizes(symbolic, {{"N", n}});
    if (program.ok()) return *std::move(program);
  }
}

TEST(RandomPrograms, OfAnySizeComputeWhatTheySay) {
  const Tally tally = RunPrograms(FreshSeed(), [](std::mt19937_64& random) {
    return BoundProgram(kSizes[random() % std::size(kSizes)], random);
  });
  EXPECT_LE(tally.undetermined * 2, tally.elements) << "bounds that say nothing";
}

/// The program with an output more: the sum of a replicated tensor over all tensors of the list.
Graph WithTotal(Graph g, std::mt19937_64& random) {
  const std::vector<TensorType> types = InferTypes(g).value();
  std::vector<NodeId> candidates;
  for (NodeId id = 0; id < g.size(); ++id) {
    const TensorType& type = types[id];
    const bool is_value = !As<Output>(g, id) && !As<Update>(g, id);
    if (is_value && type.dtype == DType::kF32 && !type.shape.empty() &&
        type.layout.kind == Layout::Kind::kReplicated)
      candidates.push_back(id);
  }
  if (candidates.empty()) return g;
  const NodeId summed = candidates[random() % candidates.size()];
  std::vector<int> dims(types[summed].shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  g.nodes.push_back({Fold{FoldKind::kSum, dims}, {summed}});
  g.nodes.push_back({Total{ReduceKind::kSum}, {g.size() - 1}});
  g.nodes.push_back({Output{"total"}, {g.size() - 1}});
  return g;
}

TEST(RandomPrograms, OverListsOfTensorsComputeWhatTheySay) {
  const Tally tally = RunPrograms(FreshSeed(), [](std::mt19937_64& random) {
    std::vector<int64_t> sizes(1 + random() % 4);
    for (int64_t& size : sizes) size = kSizes[random() % std::size(kSizes)];
    return WithTotal(BoundProgram(sizes, random), random);
  });
  EXPECT_LE(tally.undetermined * 2, tally.elements) << "bounds that say nothing";
}

TEST(RandomPrograms, LikeTrainingStepsComputeWhatTheySay) {
  const Tally tally = RunPrograms(FreshSeed(), [](std::mt19937_64& random) {
    return RandomProgram(random(), {.kind = ProgramKind::kStep, .operations = 18});
  });
  EXPECT_LE(tally.undetermined * 10, tally.elements) << "bounds that say nothing";
}

TEST(RandomPrograms, OfAllOperationsComputeWhatTheySay) {
  const Tally tally = RunPrograms(FreshSeed(), [](std::mt19937_64& random) {
    const uint64_t seed = random();
    return RandomProgram(seed, {.max_elements = seed % 4 == 0 ? 4000 : 300});
  });
  EXPECT_LE(tally.undetermined * 10, tally.elements) << "bounds that say nothing";
}

}  // namespace
}  // namespace coconet
