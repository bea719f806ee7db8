// The calls of the driver that binding a plan makes after another one, counted.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

constexpr int64_t kCount = 100;

absl::Status OnHost(int ranks, const RankBody& body) {
  SetHostDevices({.multiprocessors = 132});
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks}, body);
}

/// Memory of a rank for plans of OneShotSum.
struct Buffers {
  std::unique_ptr<Memory> in, out;

  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(Rank& rank, int blocks, double timeout_s = 0) {
    Memory* const buffers[] = {in.get(), nullptr, out.get(), nullptr};
    return rank.Bind(OneShotSum(rank.mesh(), kCount, blocks), HandWritten(), buffers, timeout_s);
  }
};
absl::StatusOr<Buffers> MakeBuffers(Rank& rank) {
  Buffers buffers;
  ASSIGN_OR_RETURN(buffers.in, rank.Allocate(kCount * 4, true));
  ASSIGN_OR_RETURN(buffers.out, rank.Allocate(kCount * 4, false));
  return buffers;
}

/// Collective. The calls of a rank while each does `body`, on average.
using Calls = std::map<std::string, int>;
absl::StatusOr<Calls> CallsOf(Rank& rank, const std::function<absl::Status()>& body) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  const Calls before = HostCalls();
  RETURN_IF_ERROR(rank.exchange().Barrier());
  RETURN_IF_ERROR(body());
  RETURN_IF_ERROR(rank.exchange().Barrier());
  Calls calls = HostCalls();
  RETURN_IF_ERROR(rank.exchange().Barrier());
  for (const auto& [call, count] : before) calls[call] -= count;
  for (auto& [call, count] : calls) count /= rank.size();
  std::erase_if(calls, [](const auto& call) { return call.second == 0; });
  return calls;
}

TEST(BindCalls, AllocateNothingAfterAPlanThatNeededAsMuch) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(rank));
    const auto bind = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const auto plan, buffers.Bind(rank, /*blocks=*/3));
      RETURN_IF_ERROR(plan->Run());
      return plan->CheckSyncGuards();
    };
    ASSIGN_OR_RETURN(const Calls first, CallsOf(rank, bind));
    EXPECT_GT(first.at("cuMemAlloc"), 0);
    std::unique_ptr<BoundPlan> plan;
    ASSIGN_OR_RETURN(const Calls second, CallsOf(rank, [&]() -> absl::Status {
                       ASSIGN_OR_RETURN(plan, buffers.Bind(rank, /*blocks=*/2));
                       return absl::OkStatus();
                     }));
    EXPECT_EQ(second, (Calls{{"cuCtxGetCurrent", 1},
                             {"cuEventCreate", rank.size() == 1 ? 1 : 3},
                             {"cuMemcpyAsync", 1},  // the Control, and the wait for all three
                             {"cuMemsetD8Async", 2},
                             {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 1},
                             {"cuStreamSynchronize", 1}}));
    RETURN_IF_ERROR(plan->Run());
    RETURN_IF_ERROR(rank.exchange().Barrier());
    return plan->CheckSyncGuards();
  };
  for (const int ranks : {1, 2}) EXPECT_EQ(OnHost(ranks, body), absl::OkStatus()) << ranks;
}

TEST(BindCalls, AllocateAgainAfterAPlanThatFailed) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(rank));
    {
      ASSIGN_OR_RETURN(const auto plan, buffers.Bind(rank, /*blocks=*/1, /*timeout_s=*/0.2));
      const absl::Status ran = rank.rank() == 0 ? plan->Run() : absl::OkStatus();
      EXPECT_EQ(absl::IsDeadlineExceeded(ran), rank.rank() == 0) << ran;
      RETURN_IF_ERROR(rank.exchange().Barrier());
    }
    std::unique_ptr<BoundPlan> plan;
    ASSIGN_OR_RETURN(const Calls calls, CallsOf(rank, [&]() -> absl::Status {
                       ASSIGN_OR_RETURN(plan, buffers.Bind(rank, /*blocks=*/1));
                       return absl::OkStatus();
                     }));
    EXPECT_GT(calls.at("cuMemAlloc"), 0);
    RETURN_IF_ERROR(plan->Run());
    RETURN_IF_ERROR(rank.exchange().Barrier());
    return plan->CheckSyncGuards();
  };
  EXPECT_EQ(OnHost(2, body), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
