// Ranks on GPUs that join out of band, over a fake driver.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/processes/out_of_band_transport.h"
#include "runtime/processes/process_world.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/gatherer.h"

namespace coconet {
namespace {

using Check = absl::Status (*)(Rank&);
constexpr std::pair<const char*, Check> kChecks[] = {{"Exchange", CheckExchange},
                                                     {"CollectiveSteps", CheckCollectiveSteps},
                                                     {"Memory", CheckMemory},
                                                     {"Plans", CheckPlans},
                                                     {"BindErrors", CheckBindErrors}};

absl::Status JoinAndRun(Gatherer& gatherer, const WorldShape& shape, Check check) {
  const MakeRank make = LaunchedCudaRanksOver({.driver = HostDriver(),
                                               .open_cublaslt = OpenHostCublasLt,
                                               .control = ControlOfHostKernels()});
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, OutOfBandTransport::Over(gatherer.way()));
  const WorldRequest request{.shape = shape, .timeout_s = 60, .pin = false};
  ASSIGN_OR_RETURN(const std::unique_ptr<ProcessWorld> world,
                   ProcessWorld::Join(std::move(transport), request, make));
  const absl::Status status = check(world->rank());
  if (!status.ok()) world->Leave(status);
  return status;
}

struct Case {
  int ranks, gpus;
  WorldShape shape = {};
};
class CudaJoin : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { SetHostDevices({.count = GetParam().gpus}); }
};
INSTANTIATE_TEST_SUITE_P(Of, CudaJoin,
                         testing::Values(Case{1, 1}, Case{3, 1}, Case{2, 8},
                                         Case{4, 2, {.stages = 1, .nodes = 2}},
                                         Case{4, 4, {.stages = 2}}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return absl::StrCat(info.param.ranks, "Ranks", info.param.gpus, "Gpus");
                         });

TEST_P(CudaJoin, ConnectsThreads) {
  for (const auto& [name, check] : kChecks) {
    const auto body = [&, check = check](Gatherer& gatherer, int /*rank*/) {
      return JoinAndRun(gatherer, GetParam().shape, check);
    };
    for (const absl::Status& status : GatherOnThreads(GetParam().ranks, body))
      EXPECT_EQ(status, absl::OkStatus()) << name;
  }
}

TEST_P(CudaJoin, ConnectsProcesses) {
  for (const auto& [name, check] : kChecks) {
    const auto body = [&, check = check](Gatherer& gatherer, int /*rank*/) {
      return JoinAndRun(gatherer, GetParam().shape, check);
    };
    for (const std::string& status : GatherOnProcesses(GetParam().ranks, body))
      EXPECT_EQ(status, "OK") << name;
  }
}

TEST(CudaJoin, ARankWithoutAGpuIsNamedByAll) {
  SetHostDevices({.count = 0});
  const auto body = [](Gatherer& gatherer, int /*rank*/) {
    return JoinAndRun(gatherer, {}, CheckExchange);
  };
  for (const absl::Status& status : GatherOnThreads(2, body)) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "rank 0: GPU 0: want one of the 0")) << status;
  }
}

}  // namespace
}  // namespace coconet
