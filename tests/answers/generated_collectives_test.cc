// Every way in which kernels exchange tensors: of one-shots each way to get the other ranks'
// operands, two-shots with and without addresses for all ranks; every type and reduction, odd
// sizes, on 1 to 8 ranks, against the interpreter, for enough steps that memory is used again.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"
#include "tests/harness/sample.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

constexpr int kSteps = 7, kSimulatedSteps = 4;
constexpr int kRankCounts[] = {1, 2, 3, 4, 8};

/// Schedules of a program, on so many ranks.
int Schedules() {
  const int asked = absl::GetFlag(FLAGS_schedules);
  return asked > 0 ? asked : TheMachine().simulated ? 1 : 3;
}
/// Elements that are more than a few chunks of each rank.
int64_t Many() { return TheMachine().simulated ? 1003 : 5003; }

using Takes = std::function<bool(const Lowered&)>;

/// Some schedules of the program whose plan is taken, on all numbers of ranks; which ones, and
/// numbers of blocks and chunks, by turns.
absl::Status AddSome(const Graph& program, Config config, const Takes& takes, VariantBatch& batch) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  int turn = 0;
  for (int ranks : kRankCounts) {
    int added = 0;
    for (size_t i = 0, first = static_cast<size_t>(turn); i < schedules.size(); ++i) {
      const Schedule& schedule = schedules[(first + i) % schedules.size()];
      config.chunk = turn % 2 == 0 ? 64 : 4096;
      config.blocks = 1 + turn % 3;
      if (added == Schedules() || !Validate(config, schedule, {.ranks = ranks}).ok()) continue;
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, ranks));
      if (!takes(lowered)) continue;
      RETURN_IF_ERROR(batch.Add(program, schedule, config, ranks));
      ++turn;
      ++added;
    }
  }
  return absl::OkStatus();
}

/// Adds a bound program's schedules to the batch.
void AddProgram(const std::string& text, const Sizes& sizes, const Config& config,
                const Takes& takes, VariantBatch& batch) {
  const absl::StatusOr<Graph> symbolic = Parse(absl::StrCat("coconet 1\nprogram p\n", text));
  ASSERT_TRUE(symbolic.ok()) << symbolic.status();
  const absl::StatusOr<Graph> program = BindSizes(*symbolic, sizes);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status added = AddSome(*program, config, takes, batch);
  ASSERT_TRUE(added.ok()) << added;
}

void ExpectRight(VariantBatch& batch, size_t variants) {
  const uint64_t seed = FreshSeed();
  EXPECT_EQ(batch.Run(seed, TheMachine().simulated ? kSimulatedSteps : kSteps), "");
  const auto least = static_cast<int64_t>(Schedules() < 3 ? variants / 3 : variants);
  EXPECT_GT(batch.tally().variants, AtMostDrawn(least - 1)) << "COCONET_SEED=" << seed;
}

class OneShotTest : public testing::TestWithParam<OneShot> {
 protected:
  void Add(const std::string& text, const Sizes& sizes, int vec) {
    const Config config{.protocol = Protocol::kGenerated, .vec = vec, .one_shot = GetParam()};
    AddProgram(
        text, sizes, config,
        [](const Lowered& lowered) { return absl::StrContains(lowered.protocol, "one-shot"); },
        batch_);
  }

  VariantBatch batch_;
};

/// One in so many pairs of a type and a reduction is tried: for every type some reduction.
constexpr uint64_t kPairsOneIn = 3;

TEST_P(OneShotTest, ReducesEveryType) {
  // Each way takes other pairs.
  uint64_t number = FreshSeed() + static_cast<uint64_t>(GetParam());
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;  // no number
    ++number;
    for (ReduceKind kind : kAllReduceKinds) {
      if (number++ % OneInFlag(kPairsOneIn) != 0) continue;
      const std::string text = absl::StrCat(
          "input g : ", Name(dtype), "[N] local\noutput y = all_reduce(", Name(kind), ", g)\n");
      for (int64_t size : {3, 131}) Add(text, {{"N", size}}, size == 131 ? 16 : 2);
    }
  }
  ExpectRight(batch_, 200 / OneInFlag(kPairsOneIn));
}

TEST_P(OneShotTest, GoesWithComputationOfSeveralTensors) {
  const std::string text = R"(input g : bf16[N] local
input h : f32[N] local
state p : f32[N] replicated
state most : f32[] replicated
x = cast(f32, all_reduce(sum, g)) + all_reduce(max, h)
update(most, amax(x))
update(p, 0.5 * p - 0.1 * x / world)
)";
  for (int64_t size : {int64_t{1}, int64_t{65}, Many()}) Add(text, {{"N", size}}, 4);
  ExpectRight(batch_, 40);
}

TEST_P(OneShotTest, GoesWithFoldsOfRows) {
  const std::string text = R"(input x : f16[B, 7, H] local
state r : f32[B, 7, H] replicated
y = cast(f32, all_reduce(sum, x))
update(r, 0.5 * r + softmax(y))
)";
  for (int64_t size : {3, 16, 129}) Add(text, {{"B", 5}, {"H", size}}, 8);
  ExpectRight(batch_, 40);
}

TEST_P(OneShotTest, GoesOverListsOfTensors) {
  const std::string text = R"(input g : f16[N] local
state p : f32[N] replicated
input lr : f32[]
G = cast(f32, all_reduce(sum, g))
update(p, p - lr * G / (1 + sqrt(total(sum(G * G)))))
)";
  Add(text, {{"N", std::vector<int64_t>{1, 64, 0, 333, 64, Many()}}}, 4);
  ExpectRight(batch_, 10);
}

INSTANTIATE_TEST_SUITE_P(, OneShotTest,
                         testing::Values(OneShot::kPull, OneShot::kStaged, OneShot::kLL),
                         [](const auto& info) {
                           return info.param == OneShot::kPull     ? "Pull"
                                  : info.param == OneShot::kStaged ? "Staged"
                                                                   : "LL";
                         });

bool Multicasts(const Lowered& lowered) {
  return absl::c_any_of(lowered.plan.steps, [](const Step& step) {
    const auto* kernel = std::get_if<KernelStep>(&step);
    const auto is_multicast = [](const Arg& arg) { return arg.kind == Arg::Kind::kMulticast; };
    return kernel != nullptr &&
           (absl::c_any_of(kernel->args, is_multicast) ||
            (!kernel->tensors.empty() && absl::c_any_of(kernel->tensors[0], is_multicast)));
  });
}

TEST(MulticastTest, ReducesAndGathersSlicesOfEveryType) {
  VariantBatch batch;
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;  // no number
    const std::string text =
        absl::StrCat("input g : ", Name(dtype), "[N] local\nstate p : ", Name(dtype),
                     "[N] replicated\nupdate(p, all_reduce(sum, g))\n");
    for (int64_t size : {3, 1000}) {
      AddProgram(text, {{"N", size}},
                 {.protocol = Protocol::kGenerated, .vec = size == 3 ? 2 : 8, .multicast = true},
                 Multicasts, batch);
    }
  }
  ExpectRight(batch, 80);
}

TEST(MulticastTest, GoesWithComputationAndFolds) {
  VariantBatch batch;
  const std::string text = R"(input g : bf16[N] local
state p : bf16[N] replicated
state m : f32[N]
input lr : f32[]
G = cast(f32, all_reduce(sum, g)) / world
m1 = update(m, 0.9 * m + 0.1 * G)
update(p, p - cast(bf16, lr * m1 / (1 + norm(G))))
)";
  for (int64_t size : {int64_t{1}, int64_t{65}, Many()})
    AddProgram(text, {{"N", size}}, {.protocol = Protocol::kGenerated, .vec = 4, .multicast = true},
               Multicasts, batch);
  AddProgram(text, {{"N", std::vector<int64_t>{1, 64, 0, 333}}},
             {.protocol = Protocol::kGenerated, .vec = 8, .multicast = true}, Multicasts, batch);
  ExpectRight(batch, 30);
}

bool GoesAround(const Lowered& lowered) {
  return absl::StrContains(lowered.kernels.text(), "PassOn(");
}

TEST(RingTest, ReducesAndGathersSlicesOfEveryType) {
  VariantBatch batch;
  uint64_t number = FreshSeed();
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;  // no number
    ++number;
    for (absl::string_view kind : {"sum", "max", "min"}) {
      if (number++ % OneInFlag(kPairsOneIn) != 0) continue;
      const std::string text =
          absl::StrCat("input g : ", Name(dtype), "[N] local\nstate p : ", Name(dtype),
                       "[N] replicated\nupdate(p, all_reduce(", kind, ", g))\n");
      const int64_t size = kind == "sum" ? 1000 : 130;
      AddProgram(text, {{"N", size}}, {.protocol = Protocol::kGenerated, .vec = 8, .ring = true},
                 GoesAround, batch);
    }
  }
  ExpectRight(batch, 100 / OneInFlag(kPairsOneIn));
}

TEST(RingTest, GoesWithComputationFoldsAndSeveralTensors) {
  VariantBatch batch;
  const std::string text = R"(input g : bf16[N] local
input h : f32[N] local
state p : bf16[N] replicated
state q : f32[N] replicated
state m : f32[N]
input lr : f32[]
G = cast(f32, all_reduce(sum, g)) / world
H = all_reduce(max, h)
m1 = update(m, 0.9 * m + 0.1 * G)
update(p, p - cast(bf16, lr * m1 / (1 + norm(G))))
update(q, q + H * m1)
)";
  for (Streaming streaming : {Streaming::kNone, Streaming::kAll}) {
    const Config config{
        .protocol = Protocol::kGenerated, .vec = 4, .streaming = streaming, .ring = true};
    for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{65}, Many()})
      AddProgram(text, {{"N", size}}, config, GoesAround, batch);
    AddProgram(text, {{"N", std::vector<int64_t>{1, 64, 0, 333}}}, config, GoesAround, batch);
  }
  ExpectRight(batch, 60);
}

TEST(RingTest, GoesOverRowsAndWhatIsCutInTheMiddle) {
  VariantBatch batch;
  const std::string text = R"(input x : f16[B, S, H] local
state r : f32[B, S, H] replicated
y = cast(f32, all_reduce(sum, x))
update(r, 0.5 * r + softmax(y))
)";
  for (int64_t size : {3, 16, 129})
    AddProgram(text, {{"B", 5}, {"S", 7}, {"H", size}},
               {.protocol = Protocol::kGenerated, .vec = 4, .ring = true}, GoesAround, batch);
  ExpectRight(batch, 15);
}

TEST(BulkTest, GathersSlicesOfEveryType) {
  const Takes copies = [](const Lowered& lowered) {
    return absl::StrContains(lowered.kernels.text(), "CopyToAll<");
  };
  VariantBatch batch;
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBool) continue;  // no number
    const std::string text =
        absl::StrCat("input g : ", Name(dtype), "[N] local\nstate p : ", Name(dtype),
                     "[N] replicated\nupdate(p, all_reduce(sum, g))\n");
    for (int64_t size : {3, 1000})
      AddProgram(text, {{"N", size}}, {.protocol = Protocol::kGenerated, .vec = 4, .bulk = true},
                 copies, batch);
  }
  const std::string rows =
      "input x : f16[B, S, H] local\nstate r : f32[B, S, H] replicated\nupdate(r, 0.5 * r + "
      "softmax(cast(f32, all_reduce(sum, x))))\n";
  AddProgram(rows, {{"B", 5}, {"S", 7}, {"H", 33}},
             {.protocol = Protocol::kGenerated, .vec = 4, .bulk = true}, copies, batch);
  ExpectRight(batch, 40);
}

// The ring goes around the ranks of each node.
TEST(RingTest, GoesAroundTheRanksOfANode) {
  VariantBatch batch;
  const Graph symbolic = MakeWorkload("adam", {}).value();
  for (const Sizes& sizes :
       {Sizes{{"N", Many()}}, Sizes{{"N", std::vector<int64_t>{1, 64, 0, 333}}}}) {
    const Graph program = BindSizes(symbolic, sizes).value();
    const std::vector<Schedule> schedules = Derive(program, {.by_node = true}).value();
    size_t turn = 0;
    for (const Schedule& schedule : schedules) {
      const Config config{.protocol = Protocol::kGenerated,
                          .vec = 4,
                          .chunk = turn % 2 == 0 ? 64 : 4096,
                          .blocks = 1 + static_cast<int>(turn % 3),
                          .ring = true};
      const Target target{6, 2};
      if (!Validate(config, schedule, {.ranks = target.ranks, .nodes = target.nodes}).ok() ||
          !GoesAround(Lower(schedule, config, target).value()))
        continue;
      if (turn++ % 3 != 0) continue;
      ASSERT_TRUE(batch.Add(program, schedule, config, target).ok());
    }
  }
  ExpectRight(batch, 8);
}

}  // namespace
}  // namespace coconet
