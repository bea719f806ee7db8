// Which context is current: calls work whatever the calling thread has current, which they leave as
// it is. The driver checks at each of its calls that it is the right one.

#include <dlfcn.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/driver/cuda_module.h"
#include "runtime/cuda/testing/host_context.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr int kOtherGpu = 2;  // which no rank uses

absl::Status OnHost(int ranks, bool green, const RankBody& body) {
  SetHostDevices({.count = 3, .multiprocessors = 132});
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .green_contexts = green,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks, .timeout_s = 60}, body);
}

/// What a calling thread may have current.
class Context : public testing::TestWithParam<int> {
 protected:
  static absl::Status OnAnotherThread(const std::function<absl::Status()>& body) {
    return OnThreadWith(GetParam() < 0 ? nullptr : ContextOf(GetParam()), body);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Context, testing::Values(-1, kOtherGpu),
                         [](const auto& info) { return info.param < 0 ? "None" : "OfAnotherGpu"; });

TEST_P(Context, OfTheCallingThreadDoesNotMatterToAnyCheck) {
  for (absl::Status (*check)(Rank&) :
       {CheckMemory, CheckPlans, CheckSyncGuardsOfPlans, CheckCollectiveSteps, CheckMatrixProducts,
        CheckProductsOnBothLanes, CheckOrderOfLanes, CheckBindErrors}) {
    EXPECT_EQ(
        OnHost(2, true, [&](Rank& rank) { return OnAnotherThread([&] { return check(rank); }); }),
        absl::OkStatus());
  }
}

/// All of a plan's calls, each on a thread of its own.
absl::Status CallAll(Rank& rank,
                     absl::Status (*elsewhere)(const std::function<absl::Status()>& body)) {
  std::unique_ptr<Memory> in, out, words;
  std::unique_ptr<BoundPlan> plan, graph;
  std::unique_ptr<Module> module;
  CUstream stream = nullptr;
  RETURN_IF_CU(HostDriver(), StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  const auto keep = [](auto& to, auto made) {
    if (made.ok()) to = *std::move(made);
    return made.status();
  };
  Dl_info library{};
  dladdr(reinterpret_cast<void*>(static_cast<double (*)(double)>(std::cos)), &library);
  int64_t word = 7;
  float value = 0;
  const std::function<absl::Status()> calls[] = {
      [&] { return keep(in, rank.Allocate(40, true)); },
      [&] { return keep(out, rank.Allocate(40, false)); },
      [&] { return keep(words, rank.AllocateWords(8)); },
      [&] { return keep(module, rank.Load(library.dli_fname)); },
      [&] { return module->Symbol("cos").status(); },
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const KernelFootprint footprint, FootprintOf(*module, "cos", 64, 100));
        return footprint.registers == 32 && footprint.resident_blocks == 2 &&
                       footprint.shared_bytes == 100
                   ? absl::OkStatus()
                   : Wrong("not what the driver of tests says of a kernel");
      },
      [&] {
        Memory* const buffers[] = {in.get(), nullptr, out.get(), nullptr};
        return keep(plan, rank.Bind(OneShotSum(rank.mesh(), 10, 1), HandWritten(), buffers, 0));
      },
      [&] { return words->Write(0, 8, &word); },
      [&] { return in->Write(0, 4, (value = 1, &value)); }, [&] { return plan->Run(); },
      [&] { return plan->RunSteps(2); }, [&] { return plan->Trace().status(); },
      [&] { return plan->Enqueue(stream); }, [&] { return plan->Wait(); },
      [&] { return keep(graph, plan->Capture(2)); }, [&] { return graph->RunSteps(2); },
      [&] { return graph->Enqueue(stream); }, [&] { return graph->Wait(); },
      [&] { return plan->CheckSyncGuards(); }, [&] { return out->Read(0, 4, &value); },
      [&] { return graph = nullptr, absl::OkStatus(); }, [&] { return plan->Enqueue(stream); },
      [&] { return plan = nullptr, absl::OkStatus(); },
      [&] { return module = nullptr, absl::OkStatus(); },
      [&] { return words = nullptr, in = nullptr, out = nullptr, absl::OkStatus(); },
      // Frees what was dropped.
      [&] { return rank.exchange().Barrier(); }};
  for (size_t i = 0; i < std::size(calls); ++i)
    RETURN_IF_ERROR(WithContext(elsewhere(calls[i]), absl::StrCat("call ", i)));
  HostDriver().StreamDestroy(stream);
  return value == static_cast<float>(rank.size())
             ? absl::OkStatus()
             : Wrong("want the sum ", rank.size(), ", have ", value);
}

TEST_P(Context, OfTheCallingThreadDoesNotMatterToAnyCall) {
  for (int ranks : {1, 2, 4}) {  // four of them share GPUs, two of them green contexts
    EXPECT_EQ(OnHost(ranks, true, [](Rank& rank) { return CallAll(rank, OnAnotherThread); }),
              absl::OkStatus());
  }
}

/// The driver's calls during `body`.
std::map<std::string, int> CallsOf(const std::function<absl::Status()>& body) {
  return HostCallsOf([&] { EXPECT_EQ(body(), absl::OkStatus()); });
}

TEST(ContextOfARun, CostsOneCallWhereItIsCurrentAndThreeElsewhere) {
  EXPECT_EQ(
      OnHost(1, true,
             [&](Rank& rank) -> absl::Status {
               ASSIGN_OR_RETURN(const auto in, rank.Allocate(40, true));
               ASSIGN_OR_RETURN(const auto out, rank.Allocate(40, false));
               Memory* const buffers[] = {in.get(), nullptr, out.get(), nullptr};
               ASSIGN_OR_RETURN(const auto plan, rank.Bind(OneShotSum(rank.mesh(), 10, 1),
                                                           HandWritten(), buffers, 0));
               const auto run = [&] { return plan->RunSteps(10); };
               EXPECT_THAT(CallsOf(run),
                           ElementsAre(Pair("cuCtxGetCurrent", 1), Pair("cuLaunchKernelEx", 10),
                                       Pair("cuStreamQuery", 1)));
               EXPECT_THAT(CallsOf([&] { return OnThreadWith(nullptr, run); }),
                           ElementsAre(Pair("cuCtxGetCurrent", 1), Pair("cuCtxPopCurrent", 1),
                                       Pair("cuCtxPushCurrent", 1), Pair("cuLaunchKernelEx", 10),
                                       Pair("cuStreamQuery", 1)));
               return absl::OkStatus();
             }),
      absl::OkStatus());
}

}  // namespace
}  // namespace coconet
