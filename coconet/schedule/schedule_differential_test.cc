#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>

#include "absl/algorithm/container.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/testing/random_copies.h"
#include "coconet/testing/random_elements.h"
#include "coconet/testing/random_program.h"
#include "coconet/testing/simulator.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 8};

/// The interpreter and the simulator work in double; schedules only change the order of no sum.
bool Same(const Number& a, const Number& b) {
  if (a.is_integer() && b.is_integer()) return a == b;
  return a == b || std::fabs(a.real() - b.real()) <= 1e-12 * std::max(1.0, std::fabs(b.real()));
}

/// Results of a program by name, for each rank.
using Results = std::map<std::string, std::vector<std::vector<Number>>>;

Results Interpreted(const Graph& g, int ranks, const ElementSource& source, int stages = 1,
                    int nodes = 1) {
  Results results;
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(g, ranks, stages, nodes);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  if (!interpreter.ok()) return results;
  for (const std::string& result : interpreter->results()) {
    std::vector<int64_t> indices(NumElements(interpreter->type(result).shape));
    std::iota(indices.begin(), indices.end(), 0);
    for (int rank = 0; rank < ranks * stages; ++rank) {
      const absl::StatusOr<Expected> found = interpreter->Evaluate(result, rank, indices, source);
      results[result].push_back(found->value);
    }
  }
  return results;
}

void ExpectSame(const Results& got, const Results& want, const Schedule& s,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, ranks] : want) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      for (size_t i = 0; i < ranks[rank].size(); ++i) {
        ASSERT_TRUE(Same(got.at(name)[rank][i], ranks[rank][i]))
            << what << ", " << Describe(s) << " [" << TraceText(s.trace()) << "]: " << name << "["
            << i << "] on rank " << rank << " of " << ranks.size() << " is "
            << NumberText(got.at(name)[rank][i]) << ", want " << NumberText(ranks[rank][i]);
      }
    }
  }
}

/// Every schedule of `program` means what the program means: the transformed graph to the
/// interpreter, and its kernels run element by element in an order drawn from the seed.
void CheckSchedules(const Graph& program, const std::vector<Schedule>& schedules, int ranks,
                    uint64_t seed, int stages = 1, int nodes = 1) {
  const ElementSource source = RandomElements(seed, program);
  const Results want = Interpreted(program, ranks, source, stages);
  uint64_t order = 1000 * seed;
  for (const Schedule& s : schedules) {
    const std::string what = absl::StrCat("seed ", seed);
    // Kernels do not change the graph.
    if (s.kernels().empty())
      ExpectSame(Interpreted(s.graph(), ranks, source, stages, nodes), want, s,
                 what + " interpreted");
    ExpectSame(Simulate(s, ranks, source, ++order, stages, nodes), want, s, what + " simulated");
    if (testing::Test::HasFatalFailure()) return;
  }
}

std::vector<Schedule> AllOf(const Graph& program, bool by_node = false) {
  absl::StatusOr<std::vector<Schedule>> schedules = Derive(program, {.by_node = by_node});
  EXPECT_TRUE(schedules.ok()) << schedules.status();
  return *std::move(schedules);
}

/// Schedules of optimizers at sizes, in types and on ranks; of each world one schedule in `one_in`,
/// in the next world the others.
void CheckOptimizers(size_t one_in) {
  size_t first = 0;
  for (const WorkloadInfo& workload : Workloads()) {
    if (!workload.optimizer) continue;
    for (DType dtype : {DType::kF32, DType::kF16}) {
      for (int64_t n : {1, 67, 193}) {
        if (!workload.varies.empty() && (dtype != DType::kF32 || n != 67)) continue;
        const Graph program =
            *BindSizes(*MakeWorkload(workload.name, {.dtype = dtype}), {{"N", n}});
        const std::vector<Schedule> schedules = AllOf(program);
        for (int ranks : kRanks) {
          // Several slices only where there are that many elements.
          if (n < 193 && ranks == 3) continue;
          std::vector<Schedule> some;
          for (size_t i = first++ % one_in; i < schedules.size(); i += one_in)
            some.push_back(schedules[i]);
          CheckSchedules(program, some, ranks, static_cast<uint64_t>(n));
          ASSERT_FALSE(testing::Test::HasFatalFailure()) << workload.name;
        }
      }
    }
  }
}

// One in four: so every schedule of a workload is checked at some size, also of those that vary
// another one, which are checked in four worlds only.
TEST(Differential, EveryScheduleOfEveryWorkload) { CheckOptimizers(/*one_in=*/4); }
TEST(LongDifferential, EveryScheduleOfEveryWorkloadInEveryWorld) { CheckOptimizers(/*one_in=*/1); }

TEST(Differential, EveryScheduleOfRandomPrograms) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Graph program = RandomProgram(
        seed, {.kind = ProgramKind::kStep, .max_communications = 2, .max_elements = 400});
    CheckSchedules(program, AllOf(program), kRanks[seed % std::size(kRanks)], seed);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Differential, CopiesInRandomPrograms) {
  const char* given = std::getenv("COCONET_SEED");
  const uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  size_t copies = 0;
  for (uint64_t seed = first; seed < first + 24; ++seed) {
    std::mt19937_64 random(seed);
    const Graph program =
        RandomProgram(seed, {.kind = ProgramKind::kStep, .operations = 18, .max_elements = 400});
    std::vector<Schedule> schedules;
    for (int i = 0; i < 4; ++i) {
      const Schedule s = WithRandomCopies(*InitialSchedule(program), /*most=*/20, random);
      const absl::StatusOr<Schedule> replayed = Replay(program, *ParseTrace(TraceText(s.trace())));
      ASSERT_TRUE(replayed.ok()) << replayed.status() << " COCONET_SEED=" << seed;
      EXPECT_EQ(Print(*replayed), Print(s)) << "COCONET_SEED=" << seed;
      copies += s.trace().size();
      schedules.push_back(s);
    }
    CheckSchedules(program, schedules, kRanks[seed % std::size(kRanks)], seed);
    ASSERT_FALSE(HasFatalFailure()) << "COCONET_SEED=" << seed;
  }
  EXPECT_GT(copies, 24u) << "COCONET_SEED=" << first;
}

TEST(Differential, SchedulesOfProgramsThatCountAsLarge) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Graph program = RandomProgram(seed, {.kind = ProgramKind::kStep, .operations = 18});
    for (const bool by_node : {false, true}) {
      const absl::StatusOr<std::vector<Schedule>> schedules =
          Derive(program, {.large_program = 0, .by_node = by_node});
      ASSERT_TRUE(schedules.ok()) << schedules.status();
      CheckSchedules(program, *schedules, by_node ? 4 : kRanks[seed % std::size(kRanks)], seed, 1,
                     by_node ? 2 : 1);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST(Differential, EveryScheduleOfLongerRandomVectorPrograms) {
  for (uint64_t seed = 100; seed < 112; ++seed) {
    const Graph program =
        RandomProgram(seed, {.kind = ProgramKind::kStep, .operations = 24, .max_dims = 1});
    CheckSchedules(program, AllOf(program), kRanks[seed % std::size(kRanks)], seed);
    ASSERT_FALSE(HasFatalFailure());
  }
}

/// What the optimizers do not have: folds to scalars and of rows, dropout, products, views, sends.
constexpr const char* kPrograms[] = {
    R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
G = all_reduce(sum, g) / world
m1 = update(m, 0.9 * m + G)
r = m1 + 0.01 * p
update(p, p - norm(p) / norm(r) * r)
)",
    R"(input g : f32[N] local
state p : f32[N]
state count : f32[] replicated
G = all_reduce(sum, g) / world
size = norm(G)
update(p, p - G * min(1 / (size + 1), 0.5))
update(count, size)
output most = amax(G)
)",
    R"(input g : f32[3, N] local
input b : f32[N] replicated
state r : f32[3, N] replicated
x = all_reduce(sum, g) + b
update(r, r + layer_norm(dropout(x, 7, 0.25), 1e-3))
)",
    R"(input x : f32[N, 6] sliced(1)
input w : f32[6, 4] sliced(0)
input b : f32[4] replicated
y = all_reduce(sum, matmul(x, w)) + b
output z = softmax(transpose(y, 1, 0) + 1)
output u = y * slice(y, 0, 0, 1) + amax(y, 0)
)",
    R"(input x : f8e4m3[N, 6] local
input s : f32[N, 3] local
input w : f8e5m2[4, 6] replicated
input t : f32[2, 3] replicated
input h : f32[N, 6] sliced(0)
a = all_gather(h)
r = amax(abs(a), 1) + 1
output y = all_reduce(sum, matmul(x, w, s, t, transpose_b)) * 2
output z = relu(matmul(cast(f8e4m3, a / r), w, r, t, transpose_b))
)",
    R"(input g : f32[4, N] local
input r : f32[4, N] replicated
y = send(dropout(all_reduce(sum, g), 3, 0.5) + r, next)
output z = 2 * y
output mean = mean(y, 1)
)",
    R"(input g : f32[N] local
state p : f32[N] replicated
state q : f32[N]
x = p - all_reduce(sum, g)
output z = send(x, next)
update(p, send(x * x, previous))
update(q, q + send(0.5 * x + 1, previous))
)",
    R"(input x : f32[N, 4] sliced(0)
output y = all_to_all(silu(x), 1)
input g : f32[4, N] local
output z = reduce(sum, g + broadcast(reshape(all_gather(x), [4, N]) - g, 0), 1)
)",
    R"(input g : bf16[N, 5] local
state p : f32[N, 5]
input h : f16[N] local
update(p, p * 0.5 + all_reduce(sum, cast(f32, g)))
output y = all_reduce(max, cast(f32, h * 2))
output z = all_reduce(sum, cast(f32, cast(bf16, p * rank(f32))))
)",
    R"(state s : f32[7, 7] replicated
input w : f32[N] local
t = transpose(s, 1, 0)
update(s, s + t * sum(all_reduce(sum, w)) + sum(s * t))
)",
};

TEST(Differential, EveryScheduleOfFoldsAndProducts) {
  for (const char* text : kPrograms) {
    for (int64_t n : {1, 5, 40}) {
      const absl::StatusOr<Graph> parsed = Parse(absl::StrCat("coconet 1\n", text));
      ASSERT_TRUE(parsed.ok()) << parsed.status() << text;
      const absl::StatusOr<Graph> program = BindSizes(*parsed, {{"N", n}});
      if (!program.ok()) continue;  // no such shape
      const std::vector<Schedule> schedules = AllOf(*program);
      for (int ranks : {2, 3}) {
        CheckSchedules(*program, schedules, ranks, static_cast<uint64_t>(n), ranks);
        ASSERT_FALSE(HasFatalFailure()) << text;
      }
    }
  }
}

/// Ranks and nodes of worlds of several nodes.
constexpr std::pair<int, int> kMeshes[] = {{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}};

/// About `count` of the schedules of a program that are split by node.
std::vector<Schedule> SomeOf(const Graph& program, size_t count) {
  const std::vector<Schedule> all = AllOf(program, /*by_node=*/true);
  std::vector<Schedule> split;
  for (const Schedule& s : all) {
    if (absl::c_any_of(s.trace(), [](const Transformation& t) {
          return std::holds_alternative<SplitByNode>(t);
        }))
      split.push_back(s);
  }
  std::vector<Schedule> some;
  for (size_t i = 0; i < split.size(); i += 1 + split.size() / count) some.push_back(split[i]);
  return some;
}

TEST(Differential, SchedulesByNodeOfEveryOptimizer) {
  for (const WorkloadInfo& workload : Workloads()) {
    if (!workload.optimizer || !workload.varies.empty()) continue;
    const Graph program = *BindSizes(*MakeWorkload(workload.name, {}), {{"N", 193}});
    const std::vector<Schedule> schedules = SomeOf(program, 40);
    for (const auto& [ranks, nodes] : kMeshes) {
      CheckSchedules(program, schedules, ranks, static_cast<uint64_t>(ranks), 1, nodes);
      ASSERT_FALSE(HasFatalFailure()) << workload.name;
    }
  }
}

TEST(Differential, SchedulesByNodeOfRandomPrograms) {
  for (uint64_t seed = 200; seed < 208; ++seed) {
    const Graph program = RandomProgram(
        seed, {.kind = ProgramKind::kStep, .max_communications = 2, .max_elements = 400});
    const auto [ranks, nodes] = kMeshes[seed % std::size(kMeshes)];
    CheckSchedules(program, SomeOf(program, 20), ranks, seed, 1, nodes);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Differential, SchedulesByNodeOfFoldsAndProducts) {
  for (const char* text : kPrograms) {
    const Graph program = *BindSizes(*Parse(absl::StrCat("coconet 1\n", text)), {{"N", 40}});
    CheckSchedules(program, SomeOf(program, 20), 6, 40, 2, 3);
    ASSERT_FALSE(HasFatalFailure()) << text;
  }
}

// ---- The simulator notices kernels that a fusion would refuse -----------------------------------

/// Whether some order of elements makes the schedule's results wrong.
bool GoesWrong(const Schedule& s, int stages = 1) {
  const ElementSource source = RandomElements(1);
  const Results want = Interpreted(s.graph(), 3, source, stages);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Results got = Simulate(s, 3, source, seed, stages);
    for (const auto& [name, ranks] : want) {
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        for (size_t i = 0; i < ranks[rank].size(); ++i) {
          if (!Same(got.at(name)[rank][i], ranks[rank][i])) return true;
        }
      }
    }
  }
  return false;
}

Schedule Unchecked(const char* program, std::vector<std::vector<NodeId>> kernels) {
  absl::StatusOr<Graph> g = Parse(absl::StrCat("coconet 1\n", program));
  EXPECT_TRUE(g.ok()) << g.status();
  return Schedule(*TypedGraph::Of(Canonicalize(*g).graph), std::move(kernels));
}

TEST(Simulator, SeesASendOverAStateThatIsStillRead) {
  EXPECT_TRUE(GoesWrong(
      Unchecked("state s : f32[200] replicated\nupdate(s, send(abs(s), next))\n", {{1, 2, 3}}),
      /*stages=*/3));
}

TEST(Simulator, SeesAPushOverAStateThatIsStillRead) {
  const char* program = R"(input g : f32[200] local
state p : f32[200] replicated
x = all_gather(reduce_scatter(sum, g, 0))
update(p, x)
output y = p * x
)";
  EXPECT_TRUE(GoesWrong(Unchecked(program, {{2, 3, 4, 5, 6}})));
  EXPECT_FALSE(GoesWrong(Unchecked(program, {})));
}

TEST(Simulator, SeesAReductionOfWhatTheKernelOverwrites) {
  const char* program = R"(input g : f32[200] local
state acc : f32[200] local
update(acc, acc * g)
output y = all_reduce(sum, acc)
)";
  EXPECT_TRUE(GoesWrong(Unchecked(program, {{2, 3, 4, 5}})));
  EXPECT_FALSE(GoesWrong(Unchecked(program, {{2, 3}})));
}

TEST(Simulator, SeesAWholeStoreOfWhatSlicesRead) {
  const char* program = R"(input g : f32[200] local
state p : f32[200] replicated
output y = all_gather(p * reduce_scatter(sum, g, 0))
update(p, p * p)
)";
  EXPECT_TRUE(GoesWrong(Unchecked(program, {{2, 3, 4, 5, 6}})));
  EXPECT_FALSE(GoesWrong(Unchecked(program, {{4, 5, 6}})));
}

TEST(Simulator, SeesASecondRound) {
  const char* program = R"(input g : f32[200] local
state s : f32[200] sliced(0)
x = all_gather(reduce_scatter(sum, g, 0))
update(s, s * x)
output y = x
)";
  EXPECT_TRUE(GoesWrong(Unchecked(program, {{2, 3, 4, 5, 6}})));
  EXPECT_FALSE(GoesWrong(Unchecked(program, {{2, 3, 6}})));
}

}  // namespace
}  // namespace coconet
