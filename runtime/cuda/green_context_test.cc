#include "runtime/cuda/driver/green_context.h"

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_green.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The part of each of `ranks` ranks on a GPU of `multiprocessors`; empty: they share all.
std::vector<int> PartsOf(int multiprocessors, int ranks, bool tells_group = true) {
  SetHostDevices({.multiprocessors = multiprocessors, .tells_group = tells_group});
  std::vector<int> parts;
  for (const GpuPart& part : SplitAmong(Device::Open(HostDriver(), 0).value(), ranks, true)) {
    if (part.own != nullptr) parts.push_back(part.own->multiprocessors());
  }
  return parts;
}

TEST(GreenContext, PartsAreEqualAndOfWholeGroups) {
  for (bool tells_group : {true, false}) {
    EXPECT_THAT(PartsOf(132, 2, tells_group), ElementsAre(64, 64));
    EXPECT_THAT(PartsOf(132, 3, tells_group), ElementsAre(40, 40, 40));
    EXPECT_THAT(PartsOf(132, 8, tells_group), AllOf(testing::SizeIs(8), Each(16)));
    EXPECT_THAT(PartsOf(132, 16, tells_group), AllOf(testing::SizeIs(16), Each(8)));
    EXPECT_THAT(PartsOf(132, 17, tells_group), ElementsAre());
    EXPECT_THAT(PartsOf(20, 2, tells_group), ElementsAre(8, 8));
    EXPECT_THAT(PartsOf(7, 2, tells_group), ElementsAre());
  }
  EXPECT_THAT(PartsOf(132, 1), ElementsAre()) << "what nobody shares is not split";
  EXPECT_EQ(TakeHostGreen().contexts, 0);
}

std::string WhyNone(const DriverApi& driver, int multiprocessors, bool wanted) {
  SetHostDevices({.multiprocessors = multiprocessors});
  const std::vector<GpuPart> parts = SplitAmong(Device::Open(driver, 0).value(), 2, wanted);
  EXPECT_EQ(parts[0].own, nullptr);
  return parts[1].why_none;
}

TEST(GreenContext, SaysWhyRanksHaveNone) {
  EXPECT_EQ(WhyNone(HostDriver(), 132, false), "COCONET_GREEN_CONTEXTS=0");
  EXPECT_EQ(WhyNone(HostDriver(), 12, true),
            "GPU 0: want groups of multiprocessors for each of 2 ranks, have too few in 12 "
            "multiprocessors");
  DriverApi old = HostDriver();
  old.GreenCtxStreamCreate = nullptr;
  EXPECT_EQ(WhyNone(old, 132, true),
            "the driver has no streams of green contexts: want that of CUDA 12.5 or later");
}

absl::Status OnHost(int ranks, bool green, const RankBody& body) {
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .green_contexts = green,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks}, body);
}

TEST(GreenContext, StepsOfRanksThatShareAGpuRunOnMultiprocessorsOfTheirOwn) {
  for (int gpus : {1, 2, 4}) {
    for (bool green : {true, false}) {
      SetHostDevices({.count = gpus, .multiprocessors = 132});
      TakeHostGreen();
      const auto check = [&](Rank& rank) -> absl::Status {
        const Topology& topology = rank.topology();
        EXPECT_EQ(topology.own_multiprocessors, !green || gpus == 4 ? 0 : gpus == 2 ? 64 : 32);
        EXPECT_EQ(
            absl::StrContains(topology.note, "and its multiprocessors: COCONET_GREEN_CONTEXTS=0"),
            !green && gpus < 4)
            << topology.note;
        return RunSteps(rank, 2, [](int) {});
      };
      EXPECT_EQ(OnHost(4, green, check), absl::OkStatus());
      const HostGreen seen = TakeHostGreen();
      EXPECT_EQ(seen.launches, green && gpus < 4 ? 4 * 2 : 0);
      EXPECT_EQ(seen.contexts + seen.streams + seen.left, 0);
    }
  }
}

TEST(GreenContext, EachCallThatFailsLeavesRanksWithoutOrIsNamed) {
  SetHostDevices({.multiprocessors = 132});
  std::set<std::string> without, named;
  for (int call = 1;; ++call) {
    FailCall(call, CUDA_ERROR_UNKNOWN);
    std::string note;
    const absl::Status status = OnHost(2, true, [&](Rank& rank) {
      if (rank.rank() == 0) note = rank.topology().note;
      return CheckExchange(rank);
    });
    const std::string failed = FailedCall();
    FailCall(0, CUDA_SUCCESS);
    if (failed.empty()) break;
    if (status.ok()) {
      EXPECT_THAT(note, AllOf(HasSubstr("2 ranks share GPU 0 and its multiprocessors: "),
                              HasSubstr(failed), HasSubstr("what a driver says")));
      without.insert(failed);
    } else {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(failed), HasSubstr("what a driver says")));
      named.insert(failed);
    }
    const HostGreen seen = TakeHostGreen();
    EXPECT_EQ(seen.contexts + seen.streams + seen.left, 0) << failed;
  }
  EXPECT_THAT(without, ElementsAre("cuDevResourceGenerateDesc", "cuDevSmResourceSplitByCount",
                                   "cuDeviceGetDevResource", "cuGreenCtxCreate"));
  EXPECT_THAT(named, testing::Contains("cuGreenCtxStreamCreate"));
}

/// A bound plan of f32 buffers, with its memory.
struct Bound {
  HandWritten kernels;
  std::vector<std::unique_ptr<Memory>> memory;  // of all buffers but kSync
  std::unique_ptr<BoundPlan> plan;
};
absl::Status BindPlan(Rank& rank, const Plan& plan, Bound& bound) {
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    const bool sync = buffer.role == BufferRole::kSync;
    if (!sync) {
      ASSIGN_OR_RETURN(bound.memory.emplace_back(),
                       rank.Allocate(buffer.elements * 4, buffer.symmetric));
    }
    buffers.push_back(sync ? nullptr : bound.memory.back().get());
  }
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(plan, bound.kernels, buffers, 0));
  return absl::OkStatus();
}

/// Binds a plan of a kernel whose blocks wait for those of other ranks, and a concurrent product.
absl::Status BindSumAndProduct(Rank& rank, int blocks, int beside) {
  Plan plan = OneShotSum(rank.mesh(), 10, blocks);
  for (const char* name : {"a", "b", "c"})
    plan.buffers.push_back({name, BufferRole::kTemp, DType::kF32, 16, false});
  GemmStep product{
      .dtype = DType::kF32, .m = {4}, .n = {4}, .k = {4}, .beside = beside, .label = "MM"};
  product.a = {.buffer = 4, .ld = 4}, product.b = {.buffer = 5, .ld = 4},
  product.c = {.buffer = 6, .ld = 4};
  plan.steps.emplace_back(product);
  Bound bound;
  return BindPlan(rank, plan, bound);
}

/// Enqueues a sum over ranks in the middle of a caller's stream, which writes the operands late and
/// reads the sums.
absl::Status SumInAStreamOfTheCallers(Rank& rank, bool as_graph) {
  Bound bound;
  RETURN_IF_ERROR(BindPlan(rank, OneShotSum(rank.mesh(), 1, 1), bound));
  std::unique_ptr<BoundPlan> graph;
  if (as_graph) {
    ASSIGN_OR_RETURN(graph, bound.plan->Capture(1));
  }
  BoundPlan& plan = as_graph ? *graph : *bound.plan;
  CUstream stream = nullptr;
  RETURN_IF_CU(HostDriver(), StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  auto* in = static_cast<float*>(bound.memory[0]->own());
  const auto* out = static_cast<const float*>(bound.memory[1]->own());
  float sums[2] = {};
  absl::Status status;
  for (int step = 0; step < 2; ++step) {
    GiveToHostStream(stream, [=] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      *in = static_cast<float>(10 * step + 1);
    });
    status.Update(plan.Enqueue(stream));
    GiveToHostStream(stream, [=, &sums] { sums[step] = *out; });
  }
  status.Update(plan.Wait());
  HostDriver().StreamSynchronize(stream);
  HostDriver().StreamDestroy(stream);
  EXPECT_THAT(sums, ElementsAre(rank.size(), 11 * rank.size()));
  return status;
}

TEST(GreenContext, StepsInACallersStreamRunThereTooAndInItsOrder) {
  SetHostDevices({.multiprocessors = 132});
  for (bool as_graph : {false, true}) {
    TakeHostGreen();
    EXPECT_EQ(OnHost(2, true, [&](Rank& rank) { return SumInAStreamOfTheCallers(rank, as_graph); }),
              absl::OkStatus());
    // A graph's kernels run in the contexts of the streams that it was captured from.
    EXPECT_EQ(TakeHostGreen().launches, as_graph ? 2 : 4);
  }
}

TEST(GreenContext, BlocksMustBeResidentOnTheRanksOwnMultiprocessors) {
  SetHostDevices({.multiprocessors = 20});  // two blocks per multiprocessor
  const auto bind = [](bool green, int blocks, int beside) {
    return OnHost(2, green, [&](Rank& rank) { return BindSumAndProduct(rank, blocks, beside); });
  };
  EXPECT_EQ(bind(true, 16, 7), absl::OkStatus())
      << "all of them: products of the other rank are elsewhere";
  EXPECT_THAT(std::string(bind(true, 17, 7).message()),
              HasSubstr("want at most 16 blocks of 1 threads at once on the 8 multiprocessors that "
                        "a rank has of GPU 0, have 17 of each of 2 ranks"));
  EXPECT_THAT(
      std::string(bind(true, 16, 8).message()),
      HasSubstr(
          "Bind: MM: want fewer than the rank's 8 multiprocessors for concurrent kernels, have 8"));
  EXPECT_EQ(bind(false, 17, 9), absl::OkStatus());
  EXPECT_THAT(std::string(bind(false, 18, 9).message()),
              HasSubstr("the rest for matrix products, have 18 of each of 2 ranks"));
  EXPECT_THAT(std::string(bind(false, 17, 10).message()),
              HasSubstr("want fewer than the rank's 10 multiprocessors"));
}

/// Binds a kernel of `blocks` blocks that wait for other ranks' blocks and for those of a kernel of
/// `awaited` blocks on the other lane.
absl::Status BindSumBeside(Rank& rank, int blocks, int awaited) {
  Plan plan = OneShotSum(rank.mesh(), 10, blocks);
  KernelStep sum = std::get<KernelStep>(plan.steps[0]);
  sum.lane = 1;
  sum.awaits = 0;
  plan.steps = {
      KernelStep{.symbol = "nothing", .args = {}, .blocks = awaited, .label = "MM", .threads = 256},
      sum};
  Bound bound;
  return BindPlan(rank, plan, bound);
}

TEST(GreenContext, BlocksThatKernelsAwaitMustFitBesideThem) {
  SetHostDevices({.multiprocessors = 20});  // two blocks per multiprocessor, 8 of these per rank
  const auto bind = [](bool green, int blocks, int awaited) {
    return OnHost(2, green, [&](Rank& rank) { return BindSumBeside(rank, blocks, awaited); });
  };
  EXPECT_EQ(bind(true, 3, 10), absl::OkStatus());
  EXPECT_THAT(
      std::string(bind(true, 3, 11).message()),
      HasSubstr("Bind: MM: want at most 10 blocks of 256 threads at once on the 8 multiprocessors "
                "that a rank has of GPU 0, have 11 of each of 2 ranks, which wait "
                "for each other; a concurrent collective takes 3 multiprocessors"));
  EXPECT_EQ(bind(false, 3, 14), absl::OkStatus());
  EXPECT_THAT(std::string(bind(false, 3, 15).message()),
              HasSubstr("Bind: MM: want at most 28 blocks of 256 threads at once on GPU 0, have 15 "
                        "of each of 2 ranks, which wait for each other; a concurrent collective "
                        "takes 6 multiprocessors"));
}

TEST(GreenContext, ProductsAreToldWhatTheyHave) {
  const auto told = [](int ranks, bool green, int beside) {
    SetHostDevices({.multiprocessors = 132});
    TakeHostProducts();
    EXPECT_EQ(OnHost(ranks, green, [&](Rank& rank) { return BindSumAndProduct(rank, 1, beside); }),
              absl::OkStatus());
    std::set<int> all;
    for (const HostProduct& product : TakeHostProducts()) all.insert(product.multiprocessors);
    return all;
  };
  EXPECT_THAT(told(1, true, 0), ElementsAre(0));
  EXPECT_THAT(told(1, true, 16), ElementsAre(116));
  EXPECT_THAT(told(2, true, 0), ElementsAre(64));
  EXPECT_THAT(told(2, true, 16), ElementsAre(48));
  EXPECT_THAT(told(2, false, 0), ElementsAre(66));
  EXPECT_THAT(told(2, false, 16), ElementsAre(50));
}

}  // namespace
}  // namespace coconet
