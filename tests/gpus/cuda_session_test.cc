// Sessions on GPUs, on a driver that runs kernels of the host dialect: tune, remember, bind, run,
// save.

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/reference.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "tests/gpus/cuda_session.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
        EXPECT_TRUE(ran || absl::StrContains(v.reason, "want at most 8 blocks of"))
            << Text(v.config) << ": " << v.reason;
        if (ran) ran_with.insert(v.config.blocks);
        all_fit = all_fit && ran;
      }
      EXPECT_EQ(all_fit, again) << "blocks that wait for each other were not counted";
      if (!again) {
        EXPECT_THAT(ran_with, ElementsAre(2, 4)) << "8 of each of 2 ranks do not fit";
      }
      return StepAndCheck(tuned, session, 7 + again);
    });
    EXPECT_EQ(status, absl::OkStatus());
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CudaSession, TriesMulticastWhereMemoryHasSuchAddresses) {
  SetHostDevices({.count = 3, .multiprocessors = 4, .multicast = true});
  for (bool there : {true, false}) {
    const absl::Status status = OnGpu(
        3,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 5000}}));
          EXPECT_FALSE(tuned.from_cache()) << "what is best without is another question";
          int ran = 0;
          for (const VariantResult& v : tuned.variants()) {
            ran += v.config.multicast &&
                           (v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned)
                       ? 1
                       : 0;
          }
          EXPECT_EQ(ran > 0, there);
          return StepAndCheck(tuned, session, 3);
        },
        {.multicast = there, .admits = [](const Schedule& s, const Config&) {
           return absl::StrContains(Describe(s), "fuse(RS");
         }});
    EXPECT_EQ(status, absl::OkStatus());
  }
}

/// The failures among a search's variants, in order, with their reasons.
std::vector<std::string> FailuresOf(const TunedProgram& tuned) {
  std::vector<std::string> failures;
  for (const VariantResult& v : tuned.variants()) {
    if (FailsForGood(v.verdict) || MayPass(v.verdict))
      failures.push_back(absl::StrCat(Name(v.verdict), " ", v.trace, " ", Text(v.config)));
  }
  return failures;
}

/// A search in which GPU 1's context ends at a call.
struct Loss {
  CUresult result;
  const char* name;
  const char* call;
  int at;  // the number of the call that fails, from 1
};

TEST_F(CudaSession, LongResultsAreComparedOnTheGpu) {
  const absl::StatusOr<Graph> accumulate = Parse(kAccumulate);
  ASSERT_TRUE(accumulate.ok()) << accumulate.status();
  const auto checks_of = [&](int64_t n) {
    std::string checks;
    const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(*accumulate, {{"N", n}}));
      if (session.rank() == 0) checks = tuned.record().trust.back().checks;
      return StepAndCheck(tuned, session, 7);
    });
    EXPECT_EQ(status, absl::OkStatus());
    return checks;
  };
  const auto has_kernel = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      if (absl::StrContains(bytes, "compare_results")) return true;
    }
    return false;
  };
  EXPECT_THAT(checks_of(1000), Not(HasSubstr("compared in full")));
  EXPECT_FALSE(has_kernel());
  EXPECT_THAT(checks_of(Reference::kFullElements + 77),
              HasSubstr("compared in full with the plain"));
  EXPECT_TRUE(has_kernel());
}

TEST_F(CudaSession, ASearchEndsWithTheGpuAndBlamesNoVariant) {
  SetHostDevices({.count = 2, .multiprocessors = 4});
  std::vector<std::string> usual;  // failures
  const auto tune = [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    EXPECT_FALSE(tuned.from_cache());
    if (session.rank() == 0) usual = FailuresOf(tuned);
    return absl::OkStatus();
  };
  EXPECT_EQ(OnGpu(2, tune), absl::OkStatus());
  const std::vector<std::string> before = usual;
  std::filesystem::remove(File("tuning.db"));
  const Loss losses[] = {
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuLaunchKernelEx", 5},
      {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "cuStreamQuery", 90},
      {CUDA_ERROR_NVLINK_UNCORRECTABLE, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "cuMemcpyAsync", 100},
      {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE", "cuMemAlloc", 30},
      {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "cuLibraryLoadData", 3},
      {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cuFuncLoad", 4},
  };
  for (const Loss& loss : losses) {
    EndContextAt(loss.at, loss.result, 1, loss.call);
    absl::Status first[2];
    OnGpu(2, [&](Session& session) -> absl::Status {
      first[session.rank()] = session.Compile(program_, {{"N", 1000}}).status();
      // The session has ended, too.
      const absl::Status again = session.Compile(program_, {{"N", 2000}}).status();
      EXPECT_THAT(again.ToString(), HasSubstr(loss.name));
      return again;
    }).IgnoreError();
    EXPECT_EQ(FailedCall(), loss.call);
    EXPECT_TRUE(absl::IsDataLoss(first[1])) << first[1];
    for (const absl::Status& status : first) {
      // Aborted where rank 1 has left because a plan with a library's collectives failed.
      EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsAborted(status)) << status;
      EXPECT_THAT(status.ToString(), AllOf(HasSubstr("rank 1"), HasSubstr(loss.name)));
    }
    FailCall(0, CUDA_SUCCESS);
  }
  EXPECT_EQ(OnGpu(2, tune), absl::OkStatus());
  EXPECT_EQ(usual, before) << "something was stored against variants";
}

TEST_F(CudaSession, ReadsAndWritesWhatTheHostDoesNotReach) {
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    ASSIGN_OR_RETURN(DeviceBuffer g, session.Allocate(DType::kF32, 1000));
    ASSIGN_OR_RETURN(const DeviceBuffer p, tuned.Allocate("p"));
    EXPECT_THAT(g.span<float>(), IsEmpty());
    const std::vector<float> ones(1000, static_cast<float>(session.rank() + 1));
    RETURN_IF_ERROR(g.Write(DType::kF32, ones.data(), 1000));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", g}, {"p", p}}));
    ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
    float want = 0, m = 0;
    for (int step = 1; step <= 4; ++step) {
      RETURN_IF_ERROR(bound.Set(lr, 0.25 * step));
      RETURN_IF_ERROR(bound.Run());
      m = 0.5f * m + 3;
      want -= 0.25f * static_cast<float>(step) * m;
      std::vector<float> read(1000);
      RETURN_IF_ERROR(p.Read(DType::kF32, read.data(), 1000));
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

TEST_F(CudaSession, TriesProductsInTilesWithWhatAwaitsThem) {
  SetHostDevices({.count = 1, .multiprocessors = 16});
  const uint64_t seed = FreshSeed();
  constexpr uint64_t kOneIn = 3;  // variants
  const auto admits = [&](const Schedule& schedule, const Config& config) {
    const std::string variant = absl::StrCat(Describe(schedule), Text(config));
    return config.tiles > 0 && TakesName(kOneIn, seed, variant);
  };
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program epilogue
input x : f32[70, 40] local
input w : f32[40, 65] local
output y = abs(all_reduce(sum, matmul(x, w)))
)");
  const absl::Status status = OnGpu(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program, {}));
        int right = 0;
        for (const VariantResult& v : tuned.variants()) {
          const bool was_tried = v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned ||
                                 v.verdict == Verdict::kNotMeasured;
          EXPECT_TRUE(was_tried || absl::StrContains(v.reason, "want at most"))
              << Text(v.config) << ": " << v.reason << ", COCONET_SEED=" << seed;
          right += was_tried && v.timing.samples > 0;
        }
        EXPECT_GT(right, 0) << "COCONET_SEED=" << seed;
        return absl::OkStatus();
      },
      {.admits = admits});
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
      if (v.verdict == Verdict::kPruned && v.timing.samples == 0)
        continue;  // its schedule was slower by far, with another way
      const bool ran = v.verdict == Verdict::kMeasured || v.verdict == Verdict::kPruned;
      if (ran) ran_with.insert(v.config.gemm);
      const bool there_is =
          v.config.gemm < kHostWays || absl::StrContains(v.reason, "MM: want a candidate below 3");
      EXPECT_TRUE(there_is) << Text(v.config) << ": " << v.reason;
    }
    EXPECT_THAT(ran_with, ElementsAre(0, 1, 2));
    EXPECT_TRUE(absl::StrContains(tuned.record().key_text, "\nproducts from rank 0: cublaslt "))
        << tuned.record().key_text;
    ASSIGN_OR_RETURN(const TunedProgram without, session.Compile(program_, {{"N", 1000}}));
    EXPECT_FALSE(absl::StrContains(without.record().key_text, "cublaslt"));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_, IsEmpty());
}

// At most sizes where variants are verified cuBLASLt would take no rows of such a product.
TEST_F(CudaSession, TunesProductsOf8BitFloats) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program bytes
input x : f8e4m3[80, 32] local
input w : f8e5m2[48, 32] replicated
output y = cast(bf16, all_reduce(sum, matmul(x, w, transpose_b)))
)");
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program, {}));
    int ran = 0;
    for (const VariantResult& v : tuned.variants()) ran += v.timing.samples > 0;
    EXPECT_GT(ran, 0);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(warnings_, IsEmpty());
}

/// A stream of the caller's.
class Stream {
 public:
  Stream() { HostDriver().StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0); }
  ~Stream() { HostDriver().StreamDestroy(stream_); }
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

/// Momentum by schedules whose steps streams do, after so many steps with gradients of 3 and lr
/// = 1.
class CudaSessionStreams : public CudaSession {
 protected:
  absl::Status OnPlainSteps(const std::function<absl::Status(BoundProgram&)>& body) {
    return RunCudaWorldOver(
        {.driver = HostDriver(),
         .open_cublaslt = OpenHostCublasLt,
         .control = ControlOfHostKernels()},
        {2, {}, kCudaSessionTimeout}, [&](Rank& rank) -> absl::Status {
          SessionOptions options = Options();
          options.admits = [](const Schedule& s, const Config&) {
            return absl::StrContains(Describe(s), "fuse(RS, C, AG)");
          };
          Session session(rank, options);
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
          ASSIGN_OR_RETURN(DeviceBuffer g, session.Allocate(DType::kF32, 1000));
          RETURN_IF_ERROR(
              g.Write(DType::kF32,
                      std::vector<float>(1000, static_cast<float>(rank.rank() + 1)).data(), 1000));
          ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({{"g", g}}));
          ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
          RETURN_IF_ERROR(bound.Set(lr, 1));
          return body(bound);
        });
  }
  static absl::Status ExpectSteps(BoundProgram& bound, int steps) {
    float want = 0, m = 0;
    for (int step = 0; step < steps; ++step) want -= (m = 0.5f * m + 3);
    std::vector<float> read(1000);
    RETURN_IF_ERROR(bound.Read("p", read.data(), 1000));
    EXPECT_THAT(read, Each(want)) << steps << " steps";
    return absl::OkStatus();
  }
};

TEST_F(CudaSessionStreams, RunManyStepsAtOnce) {
  const absl::Status status = OnPlainSteps([](BoundProgram& bound) -> absl::Status {
    RETURN_IF_ERROR(bound.RunSteps(5));
    RETURN_IF_ERROR(ExpectSteps(bound, 5));
    RETURN_IF_ERROR(bound.RunSteps(0));
    return ExpectSteps(bound, 5);
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSessionStreams, StepsGoBehindWhatTheCallersStreamHolds) {
  const absl::Status status = OnPlainSteps([](BoundProgram& bound) -> absl::Status {
    Stream stream;
    for (int step = 0; step < 3; ++step) RETURN_IF_ERROR(bound.Enqueue(stream.get()));
    RETURN_IF_ERROR(bound.Wait());
    RETURN_IF_ERROR(ExpectSteps(bound, 3));
    RETURN_IF_ERROR(bound.Run());
    return ExpectSteps(bound, 4);
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSessionStreams, AStepSaysWhenItsPartsWereUnderWay) {
  const absl::Status status = OnPlainSteps([](BoundProgram& bound) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<StepSpan> spans, bound.Trace());
    RETURN_IF_ERROR(ExpectSteps(bound, 1));
    EXPECT_FALSE(spans.empty());
    double last = 0;  // they are of one lane
    for (const StepSpan& span : spans) {
      EXPECT_FALSE(span.label.empty());
      EXPECT_EQ(span.lane, 0);
      EXPECT_LE(last, span.begin_us);
      EXPECT_LT(span.begin_us, span.end_us);
      last = span.end_us;
    }
    RETURN_IF_ERROR(bound.Run());
    return ExpectSteps(bound, 2);
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSessionStreams, StepsBecomeGraphsThatReadScalarsWhenTheyRun) {
  const absl::Status status = OnPlainSteps([](BoundProgram& bound) -> absl::Status {
    Stream stream;
    ASSIGN_OR_RETURN(CapturedSteps four, bound.Capture(4));
    RETURN_IF_ERROR(ExpectSteps(bound, 0));
    RETURN_IF_ERROR(four.Run());
    RETURN_IF_ERROR(ExpectSteps(bound, 4));
    RETURN_IF_ERROR(four.Enqueue(stream.get()));
    RETURN_IF_ERROR(four.Wait());
    RETURN_IF_ERROR(ExpectSteps(bound, 8));
    ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
    RETURN_IF_ERROR(bound.Set(lr, 0));
    RETURN_IF_ERROR(four.Run());
    RETURN_IF_ERROR(ExpectSteps(bound, 8));  // without a learning rate the weights stay
    EXPECT_EQ(bound.Capture(0).status(),
              absl::InvalidArgumentError("Capture: want 1 step or more, have 0"));
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSessionStreams, BecomePartOfGraphsOfTheCaller) {
  const DriverApi& driver = HostDriver();
  const absl::Status status = OnPlainSteps([&](BoundProgram& bound) -> absl::Status {
    Stream stream;
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    EXPECT_EQ(driver.StreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    for (int step = 0; step < 2; ++step) RETURN_IF_ERROR(bound.Enqueue(stream.get()));
    EXPECT_EQ(driver.StreamEndCapture(stream.get(), &graph), CUDA_SUCCESS);
    EXPECT_EQ(driver.GraphInstantiateWithFlags(&made, graph, 0), CUDA_SUCCESS);
    RETURN_IF_ERROR(ExpectSteps(bound, 0));
    for (int launch = 0; launch < 3; ++launch)
      EXPECT_EQ(driver.GraphLaunch(made, stream.get()), CUDA_SUCCESS);
    EXPECT_EQ(driver.StreamSynchronize(stream.get()), CUDA_SUCCESS);
    RETURN_IF_ERROR(bound.Wait());
    RETURN_IF_ERROR(ExpectSteps(bound, 6));
    EXPECT_EQ(driver.GraphExecDestroy(made), CUDA_SUCCESS);
    EXPECT_EQ(driver.GraphDestroy(graph), CUDA_SUCCESS);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(CudaSessionStreams, RefuseWhatNoStreamDoesAndGoOn) {
  const absl::Status status = OnGpu(2, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 1000}}));
    std::vector<float> g(1000, 1), p(1000);
    ASSIGN_OR_RETURN(BoundProgram bound,
                     tuned.Bind({{"g", absl::MakeSpan(g)}, {"p", absl::MakeSpan(p)}}));
    const std::string words =
        "g, p: copied at every step, which no stream does; bind memory of Session::Allocate, or "
        "call Run";
    Stream stream;
    EXPECT_EQ(bound.Enqueue(stream.get()), absl::FailedPreconditionError("Enqueue: " + words));
    EXPECT_EQ(bound.Capture(1).status(), absl::FailedPreconditionError("Capture: " + words));
    RETURN_IF_ERROR(bound.RunSteps(2));
    EXPECT_THAT(p, Each(0.f));  // lr is 0
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
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
