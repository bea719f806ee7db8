// Workloads on simulated GPUs, thread for thread, in several interleavings, against the interpreter.

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule.h"
#include "coconet/workloads.h"
#include "gtest/gtest.h"
#include "tests/variant_batch.h"

namespace coconet {
namespace {

struct Case {
  const char* workload;
  DType dtype;
  Sizes sizes;
  int ranks;
  OneShot one_shot;
};

class SimtTest : public testing::TestWithParam<Case> {
 protected:
  /// Some of them where there are many.
  static absl::Status AddSchedules(VariantBatch& batch) {
    constexpr size_t kSome = 5;
    const Case& c = GetParam();
    ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(c.workload, {.dtype = c.dtype}));
    ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, c.sizes));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {}));
    const size_t apart = schedules.size() / kSome + 1;
    for (size_t i = 0; i < schedules.size(); i += apart) {
      for (Protocol protocol : {Protocol::kGenerated, Protocol::kLibrary}) {
        const Config config{.protocol = protocol, .vec = 4, .chunk = 192, .blocks = 2, .streaming = Streaming::kShared, .one_shot = c.one_shot, .threads = 64};
        RETURN_IF_ERROR(batch.Add(program, schedules[i], config, {c.ranks}));
      }
    }
    return absl::OkStatus();
  }
};

TEST_P(SimtTest, EveryInterleavingComputesWhatTheProgramSays) {
  for (uint64_t seed = 0; seed < kSimtOrders; ++seed) {
    VariantBatch batch(SimulatedMachine(SimtOptions::Of(seed)));
    ASSERT_EQ(AddSchedules(batch), absl::OkStatus());
    EXPECT_EQ(batch.Run(seed, /*steps=*/3), "") << "COCONET_SIMT_SEED=" << seed;
    EXPECT_GT(batch.tally().variants, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, SimtTest,
                         testing::ValuesIn(std::vector<Case>{
                             {"adam", DType::kF32, {{"N", 1000}}, 2, OneShot::kPull},
                             {"attention", DType::kF16, {{"B", 2}, {"S", 5}, {"H", 12}, {"K", 8}}, 2, OneShot::kPull},
                             {"adam", DType::kF16, {{"N", 65}}, 3, OneShot::kStaged},
                             {"lamb", DType::kBF16, {{"N", 333}}, 2, OneShot::kLL},
                         }),
                         [](const auto& info) { return absl::StrCat(info.param.workload, "_", Name(info.param.dtype), "_", info.param.ranks); });

}  // namespace
}  // namespace coconet
