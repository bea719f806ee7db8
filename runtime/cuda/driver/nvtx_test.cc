#include "runtime/cuda/driver/nvtx.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> seen;  // what happened, in order

constexpr NvtxApi kRecorded = {.push =
                                   [](const char* name) {
                                     seen.push_back(name);
                                     return 0;
                                   },
                               .pop =
                                   [] {
                                     seen.push_back("end");
                                     return 0;
                                   }};

class CountedPlan final : public BoundPlan {
 public:
  absl::Status Run() override {
    seen.push_back("run");
    return absl::AbortedError("as it is");
  }
  absl::Status Enqueue(void*) override {
    seen.push_back("enqueue");
    return absl::OkStatus();
  }
};

TEST(Nvtx, RunsLieInRanges) {
  seen.clear();
  const std::unique_ptr<BoundPlan> plan =
      InRanges(&kRecorded, "step", std::make_unique<CountedPlan>());
  EXPECT_TRUE(absl::IsAborted(plan->Run()));
  EXPECT_TRUE(plan->Enqueue(nullptr).ok());
  EXPECT_THAT(seen, ElementsAre("step", "run", "end", "step", "enqueue", "end"));
}

TEST(Nvtx, WithoutTheLibraryAPlanIsAsItWas) {
  EXPECT_EQ(OpenNvtx({"libno_such_nvtx.so", "libc.so.6"}), nullptr) << "neither has its functions";
  auto plan = std::make_unique<CountedPlan>();
  const BoundPlan* const before = plan.get();
  EXPECT_EQ(InRanges(nullptr, "step", std::move(plan)).get(), before);
}

TEST(Nvtx, ANameHasTheLabelsOfSteps) {
  Plan plan;
  plan.steps = {CollectiveStep{.label = "AR"}, KernelStep{.label = "fuse(C)"}};
  EXPECT_EQ(RangeName(plan), "coconet: AR; fuse(C)");
  plan.steps.assign(100, CollectiveStep{.label = "AR"});
  EXPECT_EQ(RangeName(plan).size(), 100u);
}

}  // namespace
}  // namespace coconet
