#include "autotune/measure/verifier.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/poison.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kN = 500;
constexpr int kRanks = 2;

constexpr char kProgram[] =
    "coconet 1\nprogram p\ninput g : f32[500] local\ninput r : f32[500] replicated\nstate m : "
    "f32[500]\n"
    "m1 = update(m, m + all_reduce(sum, g))\noutput o = m1 + r\n";

/// A plan whose step is a function of the test's.
class FakePlan final : public BoundPlan {
 public:
  explicit FakePlan(std::function<absl::Status()> step, absl::Status guards = absl::OkStatus())
      : step_(std::move(step)), guards_(std::move(guards)) {}
  absl::Status Run() override { return step_(); }
  absl::Status CheckSyncGuards() const override { return guards_; }

 private:
  std::function<absl::Status()> step_;
  absl::Status guards_;
};

/// Memory for the buffers of the instance's plan, of 4-byte elements, with guards.
absl::StatusOr<std::vector<std::unique_ptr<Memory>>> AllocateBuffers(Rank& rank,
                                                                     Instance& instance) {
  std::vector<std::unique_ptr<Memory>> memory;
  for (const Buffer& buffer : instance.plan->buffers) {
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> m,
                     rank.Allocate(buffer.elements * 4 + kGuardBytes, buffer.symmetric));
    instance.buffers.push_back(m.get());
    memory.push_back(std::move(m));
  }
  return memory;
}

/// Counts the bytes that are copied, by where they begin.
class CountedSpace final : public FarSpace {
 public:
  int gpu() const override { return 0; }
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    copied_[from] += bytes;
    given_[to] += bytes;
    return absl::OkStatus();
  }
  int64_t CopiedFrom(const void* at) const { return copied_[at]; }
  int64_t CopiedTo(const void* at) const { return given_[at]; }
  void Forget() { copied_.clear(); }

 private:
  mutable std::map<const void*, int64_t> copied_, given_;
};

/// Memory of a rank that is said to be far from the host.
class CountedMemory final : public Memory {
 public:
  CountedMemory(std::unique_ptr<Memory> memory, std::shared_ptr<const FarSpace> space)
      : Memory(0, memory->bytes(), false, {memory->own()}, std::move(space)),
        memory_(std::move(memory)) {}

 private:
  std::unique_ptr<Memory> memory_;
};

/// What a wrong implementation does after a right step.
using Bug = std::function<void(int rank, int step, float* g, float* r, float* m, float* o)>;
void NoBug(int, int, float*, float*, float*, float*) {}

/// VerifyStep, then VerifyRepeat, on thread ranks that talk through their library; the failure's
/// words, or the error's. `statuses`: by rank, of its step; `guards`: what rank 1's guards say.
std::string Verify(const Bug& bug, const std::vector<absl::Status>& statuses = {{}, {}},
                   const absl::Status& guards = absl::OkStatus()) {
  const Graph program = *Parse(kProgram);
  std::string reasons[kRanks];
  const absl::Status world =
      RunWorld({.ranks = kRanks, .timeout_s = 20, .pin = false}, [&](Rank& rank) -> absl::Status {
        Plan plan;
        plan.ranks = kRanks;
        for (const char* name : {"g", "r", "m", "o", "t"}) {
          const BufferRole role = *name == 'm'   ? BufferRole::kState
                                  : *name == 'o' ? BufferRole::kOutput
                                  : *name == 't' ? BufferRole::kTemp
                                                 : BufferRole::kInput;
          plan.buffers.push_back({name, role, DType::kF32, 512, false});
        }
        Instance instance;
        instance.plan = &plan;
        instance.tensors = PlaceTensors(*TypedGraph::Of(program), plan);
        ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Memory>> memory,
                         AllocateBuffers(rank, instance));
        std::vector<float*> at;
        for (Memory* m : instance.buffers) at.push_back(static_cast<float*>(m->own()));
        int step = 0;
        const auto run = [&]() -> absl::Status {
          RETURN_IF_ERROR(
              rank.library().AllReduce(at[0], at[4], kN, DType::kF32, ReduceKind::kSum));
          for (int64_t i = 0; i < kN; ++i) {
            at[2][i] += at[4][i];
            at[3][i] = at[2][i] + at[1][i];
          }
          bug(rank.rank(), ++step, at[0], at[1], at[2], at[3]);
          return statuses[rank.rank()];
        };
        instance.bound =
            std::make_unique<FakePlan>(run, rank.rank() == 1 ? guards : absl::OkStatus());
        ASSIGN_OR_RETURN(Reference reference,
                         Reference::Create(program, {.ranks = kRanks}, rank.rank(), 21));
        PlainResults plain({}, kRanks);
        ASSIGN_OR_RETURN(std::optional<Failure> failure,
                         VerifyStep(rank, instance, reference, plain));
        if (!failure.has_value()) {
          ASSIGN_OR_RETURN(failure, VerifyRepeat(rank, instance, reference));
        }
        if (failure.has_value())
          reasons[rank.rank()] = absl::StrCat(Name(failure->verdict), ": ", failure->reason);
        return absl::OkStatus();
      });
  if (!world.ok()) return world.ToString();
  EXPECT_EQ(reasons[0], reasons[1]) << "the ranks agree";
  return reasons[0];
}

TEST(Verifier, AcceptsTheRight) { EXPECT_EQ(Verify(NoBug), ""); }

TEST(Verifier, SeesAWrongElementOfOneRank) {
  EXPECT_THAT(Verify([](int rank, int, float*, float*, float* m, float*) {
                if (rank == 0) m[3] += 1;
              }),
              HasSubstr("wrong answer: rank 0: m[3]: want "));
  // The rank that does not answer for the element sees its replica differ.
  EXPECT_EQ(Verify([](int rank, int, float*, float*, float* m, float*) {
              if (rank == 1) m[3] += 1;
            }),
            "wrong answer: m: the replicas of ranks 0 and 1 differ");
}

TEST(Verifier, SeesReplicasThatDifferWithinTheTolerance) {
  EXPECT_EQ(Verify([](int rank, int, float*, float*, float*, float* o) {
              if (rank == 1) o[400] = std::nextafter(o[400], 100.f);
            }),
            "wrong answer: o: the replicas of ranks 0 and 1 differ");
}

TEST(Verifier, SeesWhatWasNotWritten) {
  EXPECT_THAT(
      Verify([](int, int, float*, float*, float*, float* o) { std::memset(o + 490, 0xFF, 40); }),
      HasSubstr("o[490]: want "));
}

TEST(Verifier, SeesASecondStepThatDiffers) {
  EXPECT_EQ(Verify([](int rank, int step, float*, float*, float* m, float*) {
              if (step == 2 && rank == 1) m[9] = 0;
            }),
            "wrong answer: m: the replicas of ranks 0 and 1 differ");
}

TEST(Verifier, SeesInputsThatWereWritten) {
  EXPECT_THAT(Verify([](int rank, int, float* g, float*, float*, float*) {
                if (rank == 1) g[17] = 0;
              }),
              HasSubstr("g[17] was changed; it is only read"));
}

TEST(Verifier, SeesWhatIsWrittenBehindABuffer) {
  for (int step : {1, 2}) {
    EXPECT_EQ(Verify([step](int rank, int at, float*, float*, float*, float* o) {
                if (rank == 1 && at == step) o[515] = 0;
              }),
              "wrong answer: rank 1: o: byte 60 behind its 2000 was written");
  }
  EXPECT_EQ(Verify([](int, int, float*, float*, float*, float* o) { o[501] = 0; }),
            "wrong answer: rank 0: o: byte 4 behind its 2000 was written");
  EXPECT_EQ(Verify([](int, int, float*, float*, float*, float* o) { o[502] += 0.25f; }),
            "wrong answer: rank 0: o: byte 10 behind its 2000 was written");
  EXPECT_EQ(Verify([](int, int, float* g, float*, float*, float*) { g[512 + 1023] = 0; }),
            "wrong answer: rank 0: g: byte 4140 behind its 2000 was written");
}

/// VerifySteps on two ranks whose step adds the ranks' inputs through memory that both see.
/// `waits`: the step ends when both ranks have read.
std::string VerifyMeeting(bool waits) {
  const Graph program =
      *Parse("coconet 1\nprogram p\ninput g : f32[500] local\noutput o = all_reduce(sum, g)\n");
  std::string reasons[kRanks];
  const absl::Status world =
      RunWorld({.ranks = kRanks, .timeout_s = 20, .pin = false}, [&](Rank& rank) -> absl::Status {
        Plan plan;
        plan.ranks = kRanks;
        plan.buffers = {{"g", BufferRole::kInput, DType::kF32, 512, true},
                        {"o", BufferRole::kOutput, DType::kF32, 512, false}};
        Instance instance;
        instance.plan = &plan;
        instance.tensors = PlaceTensors(*TypedGraph::Of(program), plan);
        ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Memory>> memory,
                         AllocateBuffers(rank, instance));
        float none = 0, sum = 0;
        const auto meet = [&] {
          return rank.library().AllReduce(&none, &sum, 1, DType::kF32, ReduceKind::kSum);
        };
        instance.bound = std::make_unique<FakePlan>([&]() -> absl::Status {
          RETURN_IF_ERROR(meet());
          // The second rank is slow.
          if (rank.rank() == 1) absl::SleepFor(absl::Milliseconds(2));
          auto* const out = static_cast<float*>(instance.buffers[1]->own());
          for (int64_t i = 0; i < kN; ++i) {
            out[i] = static_cast<float*>(instance.buffers[0]->peer(0))[i] +
                     static_cast<float*>(instance.buffers[0]->peer(1))[i];
          }
          return waits ? meet() : absl::OkStatus();
        });
        std::vector<Reference> references;
        for (const DataKind kind : {DataKind::kOrdinary, DataKind::kSpecial}) {
          ASSIGN_OR_RETURN(Reference reference,
                           Reference::Create(program, {.ranks = kRanks}, rank.rank(), 21, kind));
          references.push_back(std::move(reference));
        }
        ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                         VerifySteps(rank, instance, absl::MakeSpan(references)));
        if (failure.has_value())
          reasons[rank.rank()] = absl::StrCat(Name(failure->verdict), ": ", failure->reason);
        return absl::OkStatus();
      });
  if (!world.ok()) return world.ToString();
  EXPECT_EQ(reasons[0], reasons[1]) << "the ranks agree";
  return reasons[0];
}

TEST(Verifier, SeesAStepThatEndsBeforeItsPeersHaveReadItsInputs) {
  EXPECT_EQ(VerifyMeeting(true), "");
  EXPECT_THAT(VerifyMeeting(false), HasSubstr(" in step "));
}

TEST(Verifier, SeesAStepThatFails) {
  EXPECT_EQ(Verify(NoBug, {{}, absl::DeadlineExceededError("waited 10 s for rank 0")}),
            "timed out: rank 1: waited 10 s for rank 0");
  EXPECT_EQ(Verify(NoBug, {absl::AbortedError("rank 1 gave up"), absl::InternalError("why")}),
            "run error: rank 1: why");
  EXPECT_EQ(Verify(NoBug, {absl::InternalError("one"), absl::InternalError("another")}),
            "run error: rank 0: one");
}

TEST(Verifier, EndsWithAGpu) {
  const absl::Status lost = absl::DataLossError("cuStreamQuery: data race");
  EXPECT_EQ(Verify(NoBug, {{}, lost}), "DATA_LOSS: rank 1: cuStreamQuery: data race");
  EXPECT_EQ(Verify(NoBug, {absl::DeadlineExceededError("waited 10 s for rank 1"), lost}),
            "DATA_LOSS: rank 1: cuStreamQuery: data race")
      << "another rank's error is no reason to go on";
}

TEST(Verifier, EndsWithAGpuWhoseMemoryCannotBeRead) {
  const Bug wrong_on_rank_0 = [](int rank, int, float*, float*, float* m, float*) {
    if (rank == 0) m[3] += 1;
  };
  for (const Bug& bug : {Bug(NoBug), wrong_on_rank_0}) {
    EXPECT_EQ(Verify(bug, {{}, {}}, absl::DataLossError("cuMemcpyAsync: an illegal address")),
              "DATA_LOSS: rank 1: cuMemcpyAsync: an illegal address");
  }
}

TEST(Verifier, CopiesLittleToAGpuAndOfASecondStepOnlyReplicas) {
  const Graph program = *Parse(
      "coconet 1\nprogram p\ninput g : f32[500] local\noutput l = g + g\n"
      "output o = all_reduce(sum, g)\n");
  const auto body = [&](Rank& rank) -> absl::Status {
    Plan plan;
    plan.ranks = 1;
    for (const char* name : {"g", "l", "o"}) {
      const BufferRole role = *name == 'g' ? BufferRole::kInput : BufferRole::kOutput;
      plan.buffers.push_back({name, role, DType::kF32, 512, false});
    }
    constexpr int64_t kLong = (int64_t{5} << 20) / 4 + 77;
    plan.buffers.push_back({"t", BufferRole::kTemp, DType::kF16, kLong, false});
    Instance instance;
    instance.plan = &plan;
    instance.tensors = PlaceTensors(*TypedGraph::Of(program), plan);
    const auto space = std::make_shared<CountedSpace>();
    ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Memory>> memory, AllocateBuffers(rank, instance));
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = std::make_unique<CountedMemory>(std::move(memory[i]), space);
      instance.buffers[i] = memory[i].get();
    }
    const auto at = [&](int buffer) { return static_cast<float*>(memory[buffer]->own()); };
    instance.bound = std::make_unique<FakePlan>([&]() -> absl::Status {
      for (int64_t i = 0; i < kN; ++i) {
        at(1)[i] = at(0)[i] + at(0)[i];
        at(2)[i] = at(0)[i];
      }
      return absl::OkStatus();
    });
    ASSIGN_OR_RETURN(Reference reference, Reference::Create(program, {.ranks = 1}, 0, 21));
    PlainResults plain({}, 1);
    ASSIGN_OR_RETURN(std::optional<Failure> failure, VerifyStep(rank, instance, reference, plain));
    EXPECT_FALSE(failure.has_value()) << failure->reason;
    EXPECT_GE(space->CopiedFrom(at(1)), kN * 4);
    EXPECT_EQ(space->CopiedTo(at(3)), int64_t{1} << 20) << "the rest is repeated there";
    std::vector<char> want(kLong * 2 + kGuardBytes), have(want.size());
    Poison(DType::kF16, 0, absl::MakeSpan(want));
    std::memcpy(have.data(), at(3), have.size());
    EXPECT_EQ(have, want);
    space->Forget();
    ASSIGN_OR_RETURN(failure, VerifyRepeat(rank, instance, reference));
    EXPECT_FALSE(failure.has_value()) << failure->reason;
    EXPECT_EQ(space->CopiedFrom(at(1)), 0);
    EXPECT_GE(space->CopiedFrom(at(2)), kN * 4);
    return absl::OkStatus();
  };
  EXPECT_EQ(RunWorld({.ranks = 1, .timeout_s = 20, .pin = false}, body), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
