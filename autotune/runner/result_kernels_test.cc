// The kernel of ResultKernels in the host's dialect, which takes a compiler: against what the host
// computes of random elements, with mistakes planted in its text, and in the verifier.
#include "autotune/measure/result_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/verifier.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/reference/rounding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<ResultKernels>> KernelsOf(Rank& rank, const std::string& source) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = absl::StrCat(testing::TempDir(), "/objects"),
                                     .optimize = Optimize::kFast}));
  ASSIGN_OR_RETURN(const Binary binary, compiler->Compile(source));
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, rank.Load(binary.path));
  return ResultKernels::Make(rank, std::move(module));
}

uint64_t Seed() { return GetEnv().seed.value_or(std::random_device()()); }

constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI8,
                            DType::kU16, DType::kI32, DType::kI64, DType::kBool};
/// One tensor that a rank has a strided part of, and what the kernel says of it.
class Case {
 public:
  Case(Rank& rank, ResultKernels& kernels, DType dtype, std::mt19937_64& random)
      : rank_(rank), kernels_(kernels), dtype_(dtype), random_(random) {}

  /// What is wrong; "" if nothing is.
  absl::StatusOr<std::string> Check() {
    const int64_t run = 1 + Draw(6000), runs = 1 + Draw(4);
    const Part part{.runs = runs,
                    .run = run,
                    .begin = Draw(50),
                    .global_stride = run + Draw(90),
                    .storage_stride = run + Draw(7)};
    const StorageOfShare share(part, Draw(2) == 0);
    const auto size = static_cast<int64_t>(SizeOf(dtype_));
    ASSIGN_OR_RETURN(memory_, rank_.Allocate(share.StorageElements() * size, false));
    for (int64_t i = 0; i < share.StorageElements(); ++i)
      StoreElement(dtype_, memory_->own(), i, static_cast<double>(Draw(100)));
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> kept, kernels_.Keep(*memory_, dtype_, share));
    std::vector<int64_t> places;
    for (int64_t p = 0; p < share.elements; ++p) {
      if (std::memcmp(At(share.At(p)), static_cast<char*>(kept->own()) + p * size, size) != 0)
        return absl::StrCat("kept position ", p);
      if (Draw(3) == 0) places.push_back(share.At(p));
    }
    std::vector<char> taken(places.size() * size);
    RETURN_IF_ERROR(kernels_.Gather(*memory_, dtype_, places, taken.data()));
    for (size_t i = 0; i < places.size(); ++i) {
      if (std::memcmp(taken.data() + i * size, At(places[i]), size) != 0)
        return absl::StrCat("gathered place ", places[i]);
    }
    // Differences at the first and the last element, and at some others.
    std::vector<int64_t> positions = {0, share.elements - 1};
    for (int i = 0; i < 3; ++i) positions.push_back(Draw(share.elements));
    for (const int64_t position : positions) {
      for (const double limit : {0.0, 0.25}) {
        ASSIGN_OR_RETURN(std::string wrong, CheckChanged(share, *kept, position, limit));
        if (!wrong.empty()) return wrong;
      }
    }
    return std::string();
  }

 private:
  int64_t Draw(int64_t below) { return static_cast<int64_t>(random_() % below); }
  char* At(int64_t place) {
    return static_cast<char*>(memory_->own()) + place * static_cast<int64_t>(SizeOf(dtype_));
  }

  absl::StatusOr<std::string> CheckChanged(const StorageOfShare& share, const Memory& kept,
                                           int64_t position, double limit) {
    const int64_t place = share.At(position);
    const auto size = static_cast<int64_t>(SizeOf(dtype_));
    const double want = LoadElement(dtype_, At(place), 0).real();
    std::vector<double> values = {want + 1};
    if (IsFloat(dtype_)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      values = {want + 0.25, want - 0.25, want + 0.5, std::nan(""), kInfinity, -kInfinity};
      if (want == 0) values.push_back(-0.0);
    } else if (dtype_ == DType::kBool) {
      values = {want == 0 ? 1.0 : 0.0};
    }
    ASSIGN_OR_RETURN(const uint64_t before, DigestOf(share));
    for (const double value : values) {
      const std::string kept_bits(At(place), size);
      StoreElement(dtype_, At(place), 0, value);
      const bool same_bits = kept_bits == std::string(At(place), size);
      ASSIGN_OR_RETURN(const std::vector<int64_t> found,
                       kernels_.Differing(*memory_, kept, dtype_, share, limit));
      ASSIGN_OR_RETURN(const uint64_t after, DigestOf(share));
      const bool apart =
          IsFloat(dtype_) ? Distance(LoadElement(dtype_, At(place), 0), want) > limit : !same_bits;
      std::memcpy(At(place), kept_bits.data(), size);
      const std::vector<int64_t> expected =
          apart ? std::vector<int64_t>{position / ResultKernels::kBlock} : std::vector<int64_t>();
      const std::string at = absl::StrCat(Name(dtype_), " position ", position, " of ",
                                          share.elements, ": ", want, " and ", value);
      if (found != expected) return absl::StrCat(at, ": ", found.size(), " blocks differ");
      if ((before == after) != same_bits) return absl::StrCat(at, ": digests");
    }
    if (IsFloat(dtype_)) return CheckNaNs(share, place);
    return std::string();
  }

  /// Two NaNs with other bits: no digest but one to the bit tells them apart.
  absl::StatusOr<std::string> CheckNaNs(const StorageOfShare& share, int64_t place) {
    const auto size = static_cast<int64_t>(SizeOf(dtype_));
    const std::string kept_bits(At(place), size);
    StoreElement(dtype_, At(place), 0, std::nan(""));
    ASSIGN_OR_RETURN(const uint64_t one, DigestOf(share));
    ASSIGN_OR_RETURN(const uint64_t one_bits, DigestOf(share, true));
    StoreElement(dtype_, At(place), 0, std::numeric_limits<double>::infinity());
    ASSIGN_OR_RETURN(const uint64_t infinity, DigestOf(share));
    StoreElement(dtype_, At(place), 0, std::nan(""));
    At(place)[0] = static_cast<char>(At(place)[0] ^ 1);
    At(place)[size - 1] = static_cast<char>(At(place)[size - 1] ^ 0x80);  // the sign
    ASSIGN_OR_RETURN(const uint64_t other, DigestOf(share));
    ASSIGN_OR_RETURN(const uint64_t other_bits, DigestOf(share, true));
    std::memcpy(At(place), kept_bits.data(), size);
    if (one != other) return std::string("NaNs have digests of their own");
    if (one == infinity) return std::string("infinity has a NaN's digest");
    return std::string(one_bits == other_bits ? "NaNs have one digest of bits" : "");
  }

  absl::StatusOr<uint64_t> DigestOf(const StorageOfShare& share, bool to_the_bit = false) {
    return kernels_.Digest(*memory_, dtype_, share.StorageElements(), to_the_bit);
  }

  Rank& rank_;
  ResultKernels& kernels_;
  const DType dtype_;
  std::mt19937_64& random_;
  std::unique_ptr<Memory> memory_;
};

/// What is wrong with kernels of this text; "" if nothing is.
std::string WhatIsWrongWith(const std::string& source, uint64_t seed) {
  std::string wrong;
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<ResultKernels> kernels, KernelsOf(rank, source));
    std::mt19937_64 random(seed);
    for (int round = 0; round < 4 && wrong.empty(); ++round) {
      for (const DType dtype : kTypes) {
        ASSIGN_OR_RETURN(wrong, Case(rank, *kernels, dtype, random).Check());
        if (!wrong.empty()) break;
      }
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  return wrong;
}

TEST(ResultKernels, SayWhatTheHostSays) {
  const uint64_t seed = Seed();
  EXPECT_EQ(WhatIsWrongWith(ResultKernels::Source(), seed), "") << "COCONET_SEED=" << seed;
}

TEST(ResultKernels, WithMistakesAreFound) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"return !(distance <= limit);", "return distance > limit;"},  // NaNs
      {"return !(distance <= limit);", "return !(distance < limit);"},
      {"x < y ? y - x : x - y", "x - y"},
      {"if (*a == *b) return false;", ""},
      {"return Do<unsigned short, f16>", "return Do<unsigned short, bf16>"},
      {"return Do<unsigned, void>", "return Do<unsigned, f32>"},
      {"> work.infinity ?", ">= work.infinity ?"},
      {"(bits & work.magnitude) > work.infinity ? work.magnitude : bits", "bits"},
      {"sum += Mixed", "sum ^= Mixed(bits, 0) + 0 * Mixed"},
      {"position / work.run * work.stride", "position / work.run * work.run"},
      {"return work.begin + position", "return position"},
      {"found[i] = results[places[i]]", "found[i] = results[i]"},
      {"if (grid.ThreadId() == 0) found[block] = 0;", ""},
      {"if (apart) found[block] = 1;", "found[block] = apart && block == 0;"},
      {"i = block * kBlock + grid", "i = block * kBlock + 1 + grid"},
  };
  const uint64_t seed = Seed();
  for (const auto& [right, mistake] : kMistakes) {
    const std::string source = absl::StrReplaceAll(ResultKernels::Source(), {{right, mistake}});
    ASSERT_NE(source, ResultKernels::Source()) << right;
    EXPECT_NE(WhatIsWrongWith(source, seed), "") << mistake << " COCONET_SEED=" << seed;
  }
}

// ---- In the verifier

/// Memory that counts what is copied to and from the host.
class CountedSpace final : public FarSpace {
 public:
  int gpu() const override { return 0; }
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override {
    std::memcpy(to, from, bytes);
    if (!Has(from) || !Has(to)) copied += bytes;
    return absl::OkStatus();
  }
  bool Has(const void* at) const {
    return std::any_of(memory.begin(), memory.end(), [&](const Memory* one) {
      const char* const begin = static_cast<const char*>(one->own());
      return begin <= at && at < begin + one->bytes();
    });
  }
  std::vector<const Memory*> memory;
  mutable int64_t copied = 0;
};
class FarMemory final : public Memory {
 public:
  FarMemory(std::unique_ptr<Memory> memory, std::shared_ptr<const FarSpace> space)
      : Memory(memory->rank(), memory->bytes(), false, {memory->own()}, std::move(space)),
        memory_(std::move(memory)) {}

 private:
  std::unique_ptr<Memory> memory_;
};
class FakePlan final : public BoundPlan {
 public:
  explicit FakePlan(std::function<void()> run) : run_(std::move(run)) {}
  absl::Status Run() override {
    run_();
    return absl::OkStatus();
  }

 private:
  std::function<void()> run_;
};

constexpr int64_t kN = Reference::kFullElements + 12345;

/// Verifies a plan with a step for each of `runs`, which write o of g; returns the reasons.
std::vector<std::string> Verify(bool with_kernels,
                                const std::vector<std::function<void(float* g, float* o)>>& runs,
                                int64_t* copied = nullptr) {
  const Graph program = *Parse(absl::StrCat("coconet 1\nprogram p\ninput g : f32[", kN,
                                            "] local\noutput o = all_reduce(sum, g) * 0.5\n"));
  std::vector<std::string> reasons;
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<ResultKernels> kernels,
                     KernelsOf(rank, ResultKernels::Source()));
    Plan plan;
    plan.buffers = {{"g", BufferRole::kInput, DType::kF32, kN, false},
                    {"o", BufferRole::kOutput, DType::kF32, kN, false}};
    const auto space = std::make_shared<CountedSpace>();
    ASSIGN_OR_RETURN(Reference reference, Reference::Create(program, {.ranks = 1}, 0, 21));
    PlainResults plain({}, 1);
    for (const auto& run : runs) {
      Instance instance;
      instance.plan = &plan;
      instance.tensors = PlaceTensors(*TypedGraph::Of(program), plan);
      std::vector<std::unique_ptr<Memory>> memory;
      for (int b = 0; b < 2; ++b) {
        ASSIGN_OR_RETURN(std::unique_ptr<Memory> own, rank.Allocate(kN * 4 + kGuardBytes, false));
        memory.push_back(std::make_unique<FarMemory>(std::move(own), space));
        instance.buffers.push_back(memory.back().get());
      }
      space->memory.assign(instance.buffers.begin(), instance.buffers.end());
      instance.bound = std::make_unique<FakePlan>([&]() {
        run(static_cast<float*>(memory[0]->own()), static_cast<float*>(memory[1]->own()));
      });
      space->copied = 0;
      ResultKernels* const used = with_kernels ? kernels.get() : nullptr;
      ASSIGN_OR_RETURN(std::optional<Failure> failure,
                       VerifyStep(rank, instance, reference, plain, used));
      if (!failure.has_value()) {
        ASSIGN_OR_RETURN(failure, VerifyRepeat(rank, instance, reference, used));
      }
      reasons.push_back(failure.has_value() ? failure->reason : "");
      if (copied != nullptr) *copied = space->copied;
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
  return reasons;
}

TEST(ResultKernels, GiveTheVerifiersVerdictsWithFewCopies) {
  const auto right = [](const float* g, float* o) {
    for (int64_t i = 0; i < kN; ++i) o[i] = g[i] * 0.5F;
  };
  const auto with = [&](int64_t at, float value) {
    return [=](float* g, float* o) {
      right(g, o);
      o[at] += value;
    };
  };
  // No sample has the element in the middle, which differs from the kept results.
  const int64_t middle = kN / 2 + 3;
  const auto changes_input = [&](float* g, float* o) {
    right(g, o);
    g[middle] += 1;
  };
  const std::vector<std::function<void(float*, float*)>> runs = {
      right, right, with(middle, 1), with(0, 1), with(kN - 1, NAN), changes_input, right};
  const std::vector<std::string> on_host = Verify(false, runs), on_gpu = Verify(true, runs);
  EXPECT_EQ(on_gpu, on_host);
  EXPECT_EQ(on_gpu[0], "");
  EXPECT_EQ(on_gpu[1], "");
  EXPECT_THAT(on_gpu[2], HasSubstr(absl::StrCat("o[", middle, "]: want")));
  EXPECT_THAT(on_gpu[3], HasSubstr("o[0]: want"));
  EXPECT_THAT(on_gpu[4], HasSubstr(absl::StrCat("o[", kN - 1, "]: want")));
  EXPECT_THAT(on_gpu[5], HasSubstr(absl::StrCat("g[", middle, "] was changed")));
  EXPECT_EQ(on_gpu[6], "");
  // What was kept first is wrong: who is verified next is not blamed for it.
  const std::vector<std::function<void(float*, float*)>> wrong_first = {with(middle, 1), right,
                                                                        with(middle, 1)};
  const std::vector<std::string> later = Verify(true, wrong_first);
  EXPECT_EQ(later, Verify(false, wrong_first));
  EXPECT_EQ(later[1], "");
  EXPECT_NE(later[2], "");
  int64_t host = 0, gpu = 0;
  Verify(false, {right, right}, &host);
  Verify(true, {right, right}, &gpu);
  // The input is written, which no kernel does.
  EXPECT_GE(host, 4 * kN * 4);
  EXPECT_LT(gpu, kN * 4 + kN * 4 / 4);
}

}  // namespace
}  // namespace coconet
