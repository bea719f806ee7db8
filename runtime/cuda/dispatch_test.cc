// The calls of the driver that binding a plan and dispatching it make, counted, and what Wait and
// Run wait for.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

using Calls = std::map<std::string, int>;

absl::Status OnHost(int ranks, const RankBody& body) {
  SetHostDevices({.multiprocessors = 132});
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks}, body);
}

/// A plan of kernels that do nothing, one for each of `lanes`.
absl::StatusOr<std::unique_ptr<BoundPlan>> BindNothing(Rank& rank, const std::vector<int>& lanes) {
  Plan plan = {.ranks = rank.size(), .buffers = {}, .steps = {}};
  for (int lane : lanes)
    plan.steps.push_back(
        KernelStep{.symbol = "nothing", .args = {}, .label = "nothing", .lane = lane});
  return rank.Bind(plan, HandWritten(), {}, 0);
}

/// A stream of the caller's.
class Stream {
 public:
  Stream() {
    EXPECT_EQ(HostDriver().StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
              CUDA_SUCCESS);
  }
  ~Stream() { HostDriver().StreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

/// Runs `body` on rank 0 while the others do nothing.
absl::Status Alone(Rank& rank, const std::function<absl::Status()>& body) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  const absl::Status status = rank.rank() == 0 ? body() : absl::OkStatus();
  return rank.exchange().Agree(status);
}

Calls CallsOf(const std::function<absl::Status()>& body) {
  return HostCallsOf([&] { EXPECT_EQ(body(), absl::OkStatus()); });
}

/// What each kind of dispatch of a plan calls.
struct Counts {
  Calls run, enqueue, own;
};
absl::Status ExpectCounts(Rank& rank, const std::vector<int>& lanes, const Counts& want) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan, BindNothing(rank, lanes));
  return Alone(rank, [&]() -> absl::Status {
    Stream stream;
    EXPECT_EQ(CallsOf([&] { return plan->Run(); }), want.run);
    EXPECT_EQ(CallsOf([&] { return plan->Enqueue(stream.get()); }), want.enqueue);
    EXPECT_EQ(CallsOf([&] { return plan->Wait(); }),
              (Calls{{"cuCtxGetCurrent", 1}, {"cuEventQuery", 1}}));
    EXPECT_EQ(CallsOf([&] { return plan->Enqueue(rank.stream()); }), want.own);
    EXPECT_EQ(CallsOf([&] { return plan->Wait(); }),
              (Calls{{"cuCtxGetCurrent", 1}, {"cuStreamQuery", 1}}));
    EXPECT_EQ(CallsOf([&] { return plan->Wait(); }), (Calls{{"cuCtxGetCurrent", 1}}));
    return absl::OkStatus();
  });
}

TEST(Dispatch, OfOneKernelTakesThreeCallsAndOneMoreInACallersStream) {
  const Counts want = {
      .run = {{"cuCtxGetCurrent", 1}, {"cuLaunchKernelEx", 1}, {"cuStreamQuery", 1}},
      .enqueue = {{"cuCtxGetCurrent", 1},
                  {"cuEventRecord", 1},
                  {"cuLaunchKernelEx", 1},
                  {"cuStreamIsCapturing", 1}},
      .own = {{"cuCtxGetCurrent", 1}, {"cuLaunchKernelEx", 1}, {"cuStreamIsCapturing", 1}}};
  EXPECT_EQ(OnHost(1, [&](Rank& rank) { return ExpectCounts(rank, {0}, want); }), absl::OkStatus());
}

TEST(Dispatch, OnMultiprocessorsOfItsOwnTakesSevenInACallersStreamAndThreeInTheRanks) {
  const Counts want = {
      .run = {{"cuCtxGetCurrent", 1}, {"cuLaunchKernelEx", 1}, {"cuStreamQuery", 1}},
      .enqueue = {{"cuCtxGetCurrent", 1},
                  {"cuEventRecord", 2},
                  {"cuLaunchKernelEx", 1},
                  {"cuStreamIsCapturing", 1},
                  {"cuStreamWaitEvent", 2}},
      .own = {{"cuCtxGetCurrent", 1}, {"cuLaunchKernelEx", 1}, {"cuStreamIsCapturing", 1}}};
  EXPECT_EQ(OnHost(2, [&](Rank& rank) { return ExpectCounts(rank, {0}, want); }), absl::OkStatus());
}

TEST(Dispatch, OfASecondLaneTakesFourMoreBesideItsKernels) {
  const Counts want = {.run = {{"cuCtxGetCurrent", 1},
                               {"cuEventRecord", 2},
                               {"cuLaunchKernelEx", 2},
                               {"cuStreamQuery", 1},
                               {"cuStreamWaitEvent", 2}},
                       .enqueue = {{"cuCtxGetCurrent", 1},
                                   {"cuEventRecord", 3},
                                   {"cuLaunchKernelEx", 2},
                                   {"cuStreamIsCapturing", 1},
                                   {"cuStreamWaitEvent", 2}},
                       .own = {{"cuCtxGetCurrent", 1},
                               {"cuEventRecord", 2},
                               {"cuLaunchKernelEx", 2},
                               {"cuStreamIsCapturing", 1},
                               {"cuStreamWaitEvent", 2}}};
  EXPECT_EQ(OnHost(1, [&](Rank& rank) { return ExpectCounts(rank, {0, 1}, want); }),
            absl::OkStatus());
}

TEST(Dispatch, OfAGraphTakesOneLaunchWhateverItHolds) {
  for (int ranks : {1, 2}) {
    const auto body = [](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const auto plan, BindNothing(rank, {0, 1, 0}));
      ASSIGN_OR_RETURN(const auto graph, plan->Capture(4));
      return Alone(rank, [&]() -> absl::Status {
        Stream stream;
        const Calls run = {{"cuCtxGetCurrent", 1}, {"cuGraphLaunch", 1}, {"cuStreamQuery", 1}};
        EXPECT_EQ(CallsOf([&] { return graph->Run(); }), run);
        EXPECT_EQ(CallsOf([&] { return graph->Enqueue(stream.get()); }),
                  (Calls{{"cuCtxGetCurrent", 1},
                         {"cuEventRecord", 1},
                         {"cuGraphLaunch", 1},
                         {"cuStreamIsCapturing", 1}}));
        EXPECT_EQ(
            CallsOf([&] { return graph->Enqueue(rank.stream()); }),
            (Calls{{"cuCtxGetCurrent", 1}, {"cuGraphLaunch", 1}, {"cuStreamIsCapturing", 1}}));
        RETURN_IF_ERROR(graph->Wait());
        // A plan of three calls goes on as a graph.
        for (int i = 0; i < 9; ++i) RETURN_IF_ERROR(plan->Run());
        EXPECT_EQ(CallsOf([&] { return plan->Run(); }), run);
        return absl::OkStatus();
      });
    };
    EXPECT_EQ(OnHost(ranks, body), absl::OkStatus());
  }
}

/// Gives `stream` work of 20 ms that sets `done`.
void GiveLongWork(void* stream, bool& done) {
  done = false;
  GiveToHostStream(static_cast<CUstream>(stream), [&done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
}

TEST(Dispatch, OfOneGraphInTwoStreamsFollowOneAnother) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const auto plan, BindNothing(rank, {0, 1, 0}));
    ASSIGN_OR_RETURN(const auto graph, plan->Capture(2));
    bool done = true;
    Stream stream;
    GiveLongWork(stream.get(), done);
    RETURN_IF_ERROR(graph->Enqueue(stream.get()));
    RETURN_IF_ERROR(graph->Enqueue(rank.stream()));
    RETURN_IF_ERROR(graph->Wait());
    EXPECT_TRUE(done);
    return absl::OkStatus();
  };
  EXPECT_EQ(OnHost(1, body), absl::OkStatus());
}

TEST(Dispatch, WaitsForTheStreamThatTheStepsAreIn) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const auto plan, BindNothing(rank, {0, 0, 0}));
    bool done = true;
    {
      Stream stream;
      GiveLongWork(stream.get(), done);
      RETURN_IF_ERROR(plan->Enqueue(stream.get()));
      RETURN_IF_ERROR(plan->Enqueue(rank.stream()));
      RETURN_IF_ERROR(plan->Wait());
      EXPECT_TRUE(done) << "the caller's stream";
      GiveLongWork(rank.stream(), done);
      RETURN_IF_ERROR(plan->Enqueue(rank.stream()));
      RETURN_IF_ERROR(plan->Wait());
      EXPECT_TRUE(done) << "the rank's own stream";
      for (int i = 0; i < 9; ++i) RETURN_IF_ERROR(plan->Run());
      RETURN_IF_ERROR(plan->Enqueue(stream.get()));
      RETURN_IF_ERROR(plan->Wait());
    }
    // The caller's stream is gone, and the plan runs as a graph in the rank's own.
    GiveLongWork(rank.stream(), done);
    RETURN_IF_ERROR(plan->Run());
    EXPECT_TRUE(done) << "a run after a step in the caller's stream";
    return absl::OkStatus();
  };
  for (int ranks : {1, 2}) EXPECT_EQ(OnHost(ranks, body), absl::OkStatus());
}

TEST(Dispatch, IsWaitedForWhateverIsCapturedMeanwhile) {
  const DriverApi& driver = HostDriver();
  const auto body = [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const auto plan, BindNothing(rank, {0}));
    Stream stream, captured;
    bool done = true;
    GiveLongWork(stream.get(), done);
    RETURN_IF_ERROR(plan->Enqueue(stream.get()));
    CUgraph graph = nullptr;
    EXPECT_EQ(driver.StreamBeginCapture(captured.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    RETURN_IF_ERROR(plan->Enqueue(captured.get()));
    EXPECT_EQ(driver.StreamEndCapture(captured.get(), &graph), CUDA_SUCCESS);
    RETURN_IF_ERROR(plan->Wait());
    EXPECT_TRUE(done);
    EXPECT_EQ(driver.GraphDestroy(graph), CUDA_SUCCESS);
    return absl::OkStatus();
  };
  for (int ranks : {1, 2}) EXPECT_EQ(OnHost(ranks, body), absl::OkStatus());
}

// ---- Binding

constexpr int64_t kCount = 100;

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
absl::StatusOr<Calls> CallsOfEach(Rank& rank, const std::function<absl::Status()>& body) {
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

TEST(Binding, AllocateNothingAfterAPlanThatNeededAsMuch) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(rank));
    const auto bind = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const auto plan, buffers.Bind(rank, /*blocks=*/3));
      RETURN_IF_ERROR(plan->Run());
      return plan->CheckSyncGuards();
    };
    ASSIGN_OR_RETURN(const Calls first, CallsOfEach(rank, bind));
    EXPECT_GT(first.at("cuMemAlloc"), 0);
    std::unique_ptr<BoundPlan> plan;
    ASSIGN_OR_RETURN(const Calls second, CallsOfEach(rank, [&]() -> absl::Status {
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

TEST(Binding, AllocateAgainAfterAPlanThatFailed) {
  const auto body = [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Buffers buffers, MakeBuffers(rank));
    {
      ASSIGN_OR_RETURN(const auto plan, buffers.Bind(rank, /*blocks=*/1, /*timeout_s=*/0.2));
      const absl::Status ran = rank.rank() == 0 ? plan->Run() : absl::OkStatus();
      EXPECT_EQ(absl::IsDeadlineExceeded(ran), rank.rank() == 0) << ran;
      RETURN_IF_ERROR(rank.exchange().Barrier());
    }
    std::unique_ptr<BoundPlan> plan;
    ASSIGN_OR_RETURN(const Calls calls, CallsOfEach(rank, [&]() -> absl::Status {
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
