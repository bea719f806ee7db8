// At which sizes variants are verified when they are loaded and when they lead, told by ranks whose
// plans of some sizes spoil a result.
#include "autotune/runner/rank_runner.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// Changes an element of a state in each run.
class SpoilingPlan final : public BoundPlan {
 public:
  SpoilingPlan(std::unique_ptr<BoundPlan> plan, float* element)
      : plan_(std::move(plan)), element_(element) {}
  absl::Status Run() override { return Spoiled(plan_->Run()); }
  absl::Status Advance() override { return Spoiled(plan_->Advance()); }
  absl::Status Wait() override { return plan_->Wait(); }
  void DelayWaits(int waits, int64_t ns) override { plan_->DelayWaits(waits, ns); }
  absl::Status CheckSyncGuards() const override { return plan_->CheckSyncGuards(); }

 private:
  absl::Status Spoiled(absl::Status ran) {
    *element_ += 1;
    return ran;
  }
  std::unique_ptr<BoundPlan> plan_;
  float* element_;
};

/// A rank that notes how many elements the largest state has in each plan that it binds, and
/// spoils what plans of [spoils_from, spoils_below) elements compute.
class SpoilingRank final : public Rank {
 public:
  explicit SpoilingRank(Rank& rank) : rank_(rank) {}
  int64_t spoils_from = 0, spoils_below = 0;
  std::vector<int64_t> bound;

  int rank() const override { return rank_.rank(); }
  int size() const override { return rank_.size(); }
  const Mesh& mesh() const override { return rank_.mesh(); }
  const Topology& topology() const override { return rank_.topology(); }
  Exchange& exchange() override { return rank_.exchange(); }
  Communicator& library(Group group) override { return rank_.library(group); }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) override {
    return rank_.Allocate(bytes, symmetric);
  }
  absl::StatusOr<std::unique_ptr<Memory>> Adopt(void* address, int64_t bytes,
                                                bool symmetric) override {
    return rank_.Adopt(address, bytes, symmetric);
  }
  absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) override {
    return rank_.Load(path);
  }
  void Leave(const absl::Status& why) override { rank_.Leave(why); }
  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                  absl::Span<Memory* const> buffers,
                                                  double timeout_s) override {
    ASSIGN_OR_RETURN(std::unique_ptr<BoundPlan> made, rank_.Bind(plan, module, buffers, timeout_s));
    int64_t most = 0;
    float* element = nullptr;
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].role != BufferRole::kState || plan.buffers[b].elements <= most) continue;
      most = plan.buffers[b].elements;
      element = static_cast<float*>(buffers[b]->own());
    }
    bound.push_back(most);
    if (most < spoils_from || most >= spoils_below) return made;
    return std::make_unique<SpoilingPlan>(std::move(made), element);
  }

 private:
  Rank& rank_;
};

constexpr int64_t kElements = 1 << 18;
/// Between the sizes that are tiny and the other small ones.
constexpr int64_t kMoreThanTiny = 5000;

/// Two launch shapes of one text, and another text of the schedule.
std::vector<Variant> ThreeVariants() {
  const Graph program = BindSizes(MakeWorkload("momentum").value(), {{"N", kElements}}).value();
  Variant variant;
  const std::vector<Schedule> schedules = Derive(program).value();
  for (const Schedule& schedule : schedules) {
    if (schedule.launches().list.size() == 1) variant.schedule = schedule;
  }
  variant.config = {.protocol = Protocol::kGenerated, .vec = 8, .chunk = 4096};
  std::vector<Variant> variants(3, variant);
  variants[1].config.chunk = 32768;
  variants[2].config.vec = 4;
  return variants;
}

absl::Status LoadAndVerify(SpoilingRank& rank, RankRunner& runner) {
  ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                   runner.Compile({0, 1, 2}, [] { return false; }));
  for (const std::optional<Failure>& one : compiled) EXPECT_FALSE(one.has_value()) << one->reason;
  // A text is verified at all small sizes when it is loaded,
  ASSIGN_OR_RETURN(std::optional<Failure> failure, runner.Load(0));
  EXPECT_FALSE(failure.has_value()) << failure->reason;
  const auto is_small = [](int64_t n) { return n >= kMoreThanTiny && n < kElements; };
  EXPECT_GT(std::count_if(rank.bound.begin(), rank.bound.end(), is_small), 0);
  // another shape of it at tiny ones,
  rank.spoils_from = kMoreThanTiny;
  rank.spoils_below = kElements;
  rank.bound.clear();
  ASSIGN_OR_RETURN(failure, runner.Load(1));
  EXPECT_FALSE(failure.has_value()) << failure->reason;
  EXPECT_EQ(std::count_if(rank.bound.begin(), rank.bound.end(), is_small), 0);
  EXPECT_GT(rank.bound.size(), 1u) << "tiny ones, and the program's own";
  // and at the others once it leads, whatever it does at the program's size.
  for (int time = 0; time < 2; ++time) {
    ASSIGN_OR_RETURN(failure, runner.Verify(1));
    EXPECT_TRUE(failure.has_value()) << "verified at tiny sizes only";
    if (failure.has_value()) {
      EXPECT_EQ(failure->verdict, Verdict::kWrongAnswer);
      EXPECT_THAT(failure->reason, HasSubstr("at a small size: "));
    }
  }
  rank.spoils_below = 0;
  ASSIGN_OR_RETURN(failure, runner.Verify(1));
  EXPECT_FALSE(failure.has_value()) << failure->reason;
  runner.Unload(1);
  // What is wrong at tiny sizes is not loaded, and no other text is taken for the first.
  rank.spoils_from = 0;
  rank.spoils_below = kMoreThanTiny;
  ASSIGN_OR_RETURN(failure, runner.Load(1));
  EXPECT_TRUE(failure.has_value()) << "wrong at tiny sizes";
  rank.spoils_from = kMoreThanTiny;
  rank.spoils_below = kElements;
  ASSIGN_OR_RETURN(failure, runner.Load(2));
  EXPECT_TRUE(failure.has_value()) << "wrong at a small size";
  // A leader is verified at the program's size, too.
  rank.spoils_from = kElements;
  rank.spoils_below = kElements + 1;
  ASSIGN_OR_RETURN(failure, runner.Load(1));
  EXPECT_FALSE(failure.has_value()) << failure->reason;
  ASSIGN_OR_RETURN(failure, runner.Verify(1));
  EXPECT_TRUE(failure.has_value()) << "wrong at the program's size";
  if (failure.has_value()) {
    EXPECT_EQ(failure->verdict, Verdict::kWrongAnswer);
  }
  return absl::OkStatus();
}

TEST(RankRunner, VerifiesATextOnceAndOtherShapesOfItBeforeTheyLead) {
  const std::vector<Variant> variants = ThreeVariants();
  const absl::Status status =
      RunWorld({.ranks = 2, .timeout_s = 60, .pin = false}, [&](Rank& host) -> absl::Status {
        SpoilingRank rank(host);
        Binaries::Options options;
        options.target = BinaryTarget("", 0);
        options.cache_dir = absl::StrCat(testing::TempDir(), "/objects");
        options.compiler = [&]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
          return MakeHostCompiler({.cache_dir = options.cache_dir});
        };
        ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries, Binaries::Open(rank, options));
        const Graph& program = variants[0].schedule.graph();
        ASSIGN_OR_RETURN(
            const std::unique_ptr<RankRunner> runner,
            RankRunner::Create(rank, program, variants, {.seed = 7, .binaries = binaries.get()}));
        return LoadAndVerify(rank, *runner);
      });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
