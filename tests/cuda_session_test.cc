// Sessions on GPUs, on a driver that runs kernels of the host dialect: tune, remember, bind, run, save.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kTimeout = 60;

class CudaSession : public SessionTest {
 protected:
  void SetUp() override {
    own_cache_ = true;
    SetHostDevices({.count = 1, .multiprocessors = 4});
  }
  absl::Status OnGpu(int ranks, const std::function<absl::Status(Session&)>& body) {
    return RunCudaWorldOver({HostDriver(), OpenHostCublasLt}, ControlOfHostKernels(), ranks, {}, kTimeout, /*pin=*/true, [&](Rank& rank) {
      Session session(rank, Options());
      return body(session);
    });
  }
};

TEST_F(CudaSession, TunesShapesOfLaunchesAndRemembers) {
  for (bool again : {false, true}) {
    const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 100003}}));
      EXPECT_EQ(tuned.from_cache(), again);
      EXPECT_GT(tuned.record().best.config.threads, 1);
      std::set<int> ran_with;
      bool all_fit = true;
      for (const VariantResult& v : tuned.variants()) {
        const bool ran = v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned;
        EXPECT_TRUE(ran || absl::StrContains(v.reason, "want at most 8 blocks of")) << Text(v.config) << ": " << v.reason;
        if (ran) ran_with.insert(v.config.blocks);
        all_fit = all_fit && ran;
      }
      EXPECT_EQ(all_fit, again) << "blocks that wait for each other were not counted";
      if (!again) EXPECT_THAT(ran_with, ElementsAre(2, 4, 8));
      return StepAndCheck(tuned, session, 7 + again);
    });
    EXPECT_EQ(status, absl::OkStatus());
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CudaSession, ReadsAndWritesWhatTheHostDoesNotReach) {
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    ASSIGN_OR_RETURN(DeviceBuffer g, session.Allocate(DType::kF32, 1000));
    ASSIGN_OR_RETURN(const DeviceBuffer p, tuned.Allocate("p"));
    EXPECT_THAT(g.span<float>(), IsEmpty());
    const std::vector<float> ones(1000, static_cast<float>(session.rank() + 1));
    RETURN_IF_ERROR(g.Write(ones.data()));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", g}, {"p", p}}));
    ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
    float want = 0, m = 0;
    for (int step = 1; step <= 4; ++step) {
      bound.Set(lr, 0.25 * step);
      RETURN_IF_ERROR(bound.Run());
      m = 0.5f * m + 3;
      want -= 0.25f * static_cast<float>(step) * m;
      std::vector<float> read(1000);
      RETURN_IF_ERROR(p.Read(read.data()));
      EXPECT_THAT(read, Each(want));
    }
    std::vector<float> read(1000);
    RETURN_IF_ERROR(bound.Save(File("state")));
    RETURN_IF_ERROR(bound.Write("m", std::vector<float>(1000, 5).data(), 1000));
    RETURN_IF_ERROR(bound.Load(File("state")));
    RETURN_IF_ERROR(bound.Read("m", read.data(), 1000));
    EXPECT_THAT(read, Each(m));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CudaSession, ScalarsThatPeersReadAreWrittenAndReadToo) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program scaled
input s : f32[] local
state w : f32[N]
update(w, 0.5 * w + all_reduce(sum, s))
)");
  const absl::Status status = OnGpu(3, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program, {{"N", 1000}}));
    RETURN_IF_ERROR(StepAndCheck(tuned, session, 11));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    const float mine = static_cast<float>(session.rank() + 1);
    RETURN_IF_ERROR(bound.Write("s", &mine, 1));
    float read = 0;
    RETURN_IF_ERROR(bound.Read("s", &read, 1));
    EXPECT_EQ(read, mine);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSession, TunesTheWaysOfProductsAndLeavesOutThoseThatThereAreNot) {
  SetHostDevices({.count = 1, .multiprocessors = 64});
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program product
input x : bf16[33, 40] local
input w : bf16[40, 65] replicated
output y = matmul(x, w) * 0.5
)");
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program, {}));
    std::set<int> ran_with;
    for (const VariantResult& v : tuned.variants()) {
      const bool ran = v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned;
      if (ran) ran_with.insert(v.config.gemm);
      const bool there_is = v.config.gemm < kHostWays || absl::StrContains(v.reason, "MM: want a candidate below 3");
      EXPECT_TRUE(there_is) << Text(v.config) << ": " << v.reason;
    }
    EXPECT_THAT(ran_with, ElementsAre(0, 1, 2));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CudaSession, OthersMemoryIsCopied) {
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    std::vector<float> g(1000, static_cast<float>(session.rank() + 1)), p(1000, 10);
    float lr = 1;
    ASSIGN_OR_RETURN(BoundProgram bound,
                     tuned.Bind({{"g", absl::MakeSpan(g)}, {"p", absl::MakeSpan(p)}, {"lr", absl::MakeSpan(&lr, 1)}}));
    RETURN_IF_ERROR(bound.Run());
    EXPECT_THAT(p, Each(7.f));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_, ElementsAre("g, p, lr: not memory of Session::Allocate, copied at every step"));
}

TEST_F(CudaSession, RecordsOfOtherSharesOfAGpuAreOthers) {
  const auto tune = [&](bool from_cache) {
    return OnGpu(2, [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
      EXPECT_EQ(tuned.from_cache(), from_cache);
      return absl::OkStatus();
    });
  };
  EXPECT_EQ(tune(false), absl::OkStatus());
  EXPECT_EQ(tune(true), absl::OkStatus());
  SetHostDevices({.count = 2, .multiprocessors = 4});
  EXPECT_EQ(tune(false), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
