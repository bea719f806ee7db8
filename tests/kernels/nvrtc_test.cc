// The kernels of every schedule of every workload through NVRTC, for each architecture. Needs no
// GPU.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "autotune/measure/result_kernels.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "jit/compile/testing/cubin.h"
#include "jit/config/beside.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/dialect_kernels.h"
#include "tests/kernels/kernel_set.h"

ABSL_FLAG(bool, every_kernel, false,
          "compile the kernels of all schedules in all ways, for each architecture");

namespace coconet {
namespace {

/// The kernels of one in so many schedules are compiled, in one way.
constexpr uint64_t kOneIn = 150;
/// Workloads that differ little from another one try fewer schedules by this factor.
constexpr unsigned kFewerOfVariations = 8;
constexpr int kVec = 4;  // f32 values of 16 bytes, what a GPU's thread loads at once
/// The stack of a kernel with many loops, whose rarer values do not fit in 96 or 128 registers.
/// More is a spill in a loop.
constexpr uint32_t kMostStackBytes = 128;
constexpr double kCompileLimit = 600;  // seconds for a unit of many kernels, on a busy machine
constexpr absl::string_view kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

/// A workload's type and world, and how its kernels store.
struct Case {
  DType dtype;
  int ranks;
  Streaming streaming;
};
constexpr Case kCases[] = {{DType::kF32, 2, Streaming::kNone},
                           {DType::kF16, 8, Streaming::kShared},
                           {DType::kBF16, 3, Streaming::kAll}};

/// How a schedule's collectives are done.
constexpr Config kWays[] = {
    {.protocol = Protocol::kLibrary},
    {.protocol = Protocol::kGenerated},
    {.protocol = Protocol::kGenerated, .one_shot = OneShot::kStaged},
    {.protocol = Protocol::kGenerated, .one_shot = OneShot::kLL},
    {.protocol = Protocol::kGenerated, .multicast = true},
    {.protocol = Protocol::kGenerated, .ring = true},
    {.protocol = Protocol::kGenerated, .bulk = true},
};

/// Which schedules have their kernels compiled: drawn anew in each run, one in so many, each done
/// in one way; or all in all ways.
class Sample {
 public:
  static Sample All() { return Sample(nullptr, 1); }
  Sample(std::mt19937_64* random, unsigned one_in) : random_(random), one_in_(one_in) {}

  /// Takes fewer of very many schedules; the kernels of overlaps differ by the chunk alone.
  bool Takes(const Schedule& schedule, size_t count) const {
    if (random_ == nullptr) return true;
    const unsigned one_in = one_in_ * (count < kManySchedules ? 1 : 4);
    return (*random_)() %
               (schedule.overlaps().empty() ? one_in : std::max(one_in, kOverlapsOneIn)) ==
           0;
  }
  bool TakesWay(size_t way, size_t drawn) const { return random_ == nullptr || way == drawn; }
  size_t DrawWay() const { return random_ == nullptr ? 0 : (*random_)() % std::size(kWays); }

 private:
  static constexpr unsigned kOverlapsOneIn = 60;
  static constexpr size_t kManySchedules = 512;

  std::mt19937_64* random_;
  unsigned one_in_;
};

/// Adds the kernels of schedules on `nodes` nodes with the case's ranks each.
absl::Status AddKernels(const Graph& symbolic, const Case& c, const Sizes& sizes,
                        const Sample& sample, KernelSet& kernels, int nodes = 1) {
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {.by_node = nodes > 1}));
  const Target target = {c.ranks * nodes, nodes, /*stages=*/2};
  for (const Schedule& schedule : schedules) {
    if (!sample.Takes(schedule, schedules.size())) continue;
    const size_t drawn = sample.DrawWay();
    for (size_t way = 0; way < std::size(kWays); ++way) {
      Config config = kWays[way];
      config.vec = kVec;
      config.streaming = c.streaming;
      if (!schedule.overlaps().empty()) config.pieces = 2;
      if (!sample.TakesWay(way, drawn) ||
          !Validate(config, schedule, {.ranks = target.ranks, .nodes = nodes}).ok())
        continue;
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, target));
      kernels.Add(lowered);
    }
  }
  return absl::OkStatus();
}

/// Adds the kernels of one tensor and of a list, on one node and on two.
absl::Status AddWorkload(const WorkloadInfo& workload, const Case& c, const Sample& sample,
                         const Sample& of_variations, KernelSet& kernels) {
  const Sizes sizes = workload.optimizer ? Sizes{{"N", 1 << 20}} : workload.presets[0].sizes;
  const bool few_new_kernels = !workload.varies.empty();
  ASSIGN_OR_RETURN(const Graph program, MakeWorkload(workload.name, {.dtype = c.dtype}));
  RETURN_IF_ERROR(AddKernels(program, c, sizes, few_new_kernels ? of_variations : sample, kernels));
  if (workload.optimizer)
    RETURN_IF_ERROR(AddKernels(program, c, {{"N", {1 << 20, 1000}}}, of_variations, kernels));
  return AddKernels(program, c, sizes, of_variations, kernels, /*nodes=*/2);
}

/// Whether more than the usual sample is asked for.
bool IsLong() { return absl::GetFlag(FLAGS_every_kernel) || OneInFlag(kOneIn) < kOneIn; }

constexpr unsigned kOtherOneIn = 18, kOtherOneInOfLong = 6;  // schedules
/// Operations that no workload has; $0 is the case's type.
constexpr char kOtherProgram[] = R"(coconet 1
program others
input t : $0[T, V, D] sliced(0)
input i : i32[T, B, L] sliced(0)
input w : f32[T, B, L] sliced(0)
input u : $0[V, D] sliced(1)
input ragged : i32[M] replicated
input offsets : i32[B] replicated
x = embedding_bag(t, i, w, sum)
output a = abs(all_to_all(x + 1, 1))
output b = softmax(all_to_all(x, 1))
output c = embedding_bag(u, ragged, offsets, mean)
)";

/// Over a list.
constexpr char kTensorsProgram[] = R"(coconet 1
program tensors
input a : $0[B, N] sliced(0)
input b : $0[B, 5] replicated
input u : $0[N, 4, D] local
input i : i32[N, 4] local
output x = all_to_all(concat(a, b, a * 2, 1), 1)
output y = all_reduce(sum, scatter_add(u, i, [N, D]))
)";

/// Integers of all widths, and functions that no workload has.
constexpr char kFunctionsProgram[] = R"(coconet 1
program functions
input x : $0[B, D] local
input a : i8[B, D] local
input b : i16[D] replicated
input c : u16[B, D] sliced(0)
input d : u32[D] local
input e : u64[B, D] local
y = all_reduce(sum, x)
output f = floor(y) + ceil(y) * round(y) - rem(y, 0.5)
output g = log1p(y) + expm1(y) * sin(y) - cos(y)
output h = reverse(expand(all_reduce(sum, x[0:1]), [B, D]), 0, 1)
output i = all_reduce(sum, bit_not(a) / cast(i8, b))
output j = shift_left(c, 3) + shift_right(c, 2)
output m = shift_right_logical(b, 5)
output k = all_reduce(max, bit_or(bit_xor(d, 7), bit_and(d, 12)))
output l = all_reduce(sum, sum(rem(e, 15), 0))
output n = all_reduce(sum, bit_cast(f32, bit_or(shift_right_logical(d, 9), 1065353216)))
output o = bit_cast(i16, c) + b
)";

absl::Status AddOtherKernels(const Case& c, const Sample& sample, KernelSet& kernels) {
  ASSIGN_OR_RETURN(const Graph tensors, Parse(absl::Substitute(kTensorsProgram, Name(c.dtype))));
  RETURN_IF_ERROR(
      AddKernels(tensors, c, {{"N", {100, 37}}, {"B", 40}, {"D", 64}}, sample, kernels));
  ASSIGN_OR_RETURN(const Graph functions,
                   Parse(absl::Substitute(kFunctionsProgram, Name(c.dtype))));
  RETURN_IF_ERROR(AddKernels(functions, c, {{"B", 40}, {"D", 64}}, sample, kernels));
  ASSIGN_OR_RETURN(const Graph program, Parse(absl::Substitute(kOtherProgram, Name(c.dtype))));
  return AddKernels(program, c, {{"T", 10}, {"V", 100}, {"D", 64}, {"B", 40}, {"L", 3}, {"M", 99}},
                    sample, kernels);
}

std::vector<KernelResources> ReadCubin(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const absl::StatusOr<std::vector<KernelResources>> resources = ResourcesOf(bytes);
  EXPECT_TRUE(resources.ok()) << path << ": " << resources.status();
  return resources.value_or(std::vector<KernelResources>());
}

class NvrtcTest : public testing::Test {
 protected:
  /// Skips the test where there is no NVRTC.
  void MakeCompiler(absl::string_view architecture) {
    absl::StatusOr<std::unique_ptr<Compiler>> made = MakeNvrtcCompiler(
        architecture,
        {.cache_dir = absl::StrCat(testing::TempDir(), "/cache"), .time_limit_s = kCompileLimit});
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status();
    compiler_ = *std::move(made);
  }

  std::unique_ptr<Compiler> compiler_;
};

class NvrtcArchitectureTest
    : public NvrtcTest,
      public testing::WithParamInterface<int> {  // index of the architecture
 protected:
  void SetUp() override { MakeCompiler(kArchitectures[GetParam()]); }

  /// Compiles the kernels and checks that none keeps more than kMostStackBytes on its stack.
  void Compile(const KernelSet& kernels) {
    const absl::StatusOr<std::vector<std::string>> binaries = kernels.Compile(*compiler_);
    ASSERT_TRUE(binaries.ok()) << binaries.status();
    std::set<std::string> compiled;
    uint32_t most = 0;
    for (const std::string& path : *binaries) {
      for (const KernelResources& kernel : ReadCubin(path)) {
        compiled.insert(kernel.kernel);
        most = std::max(most, kernel.stack_bytes);
        EXPECT_LE(kernel.stack_bytes, kMostStackBytes) << kernels.kernels().at(kernel.kernel);
      }
    }
    std::cout << compiled.size() << " kernels, at most " << most << " bytes of stack\n";
    for (const auto& [symbol, text] : kernels.kernels())
      EXPECT_EQ(compiled.count(symbol), 1u) << symbol << "\n" << text;
  }
};

TEST_P(NvrtcArchitectureTest, CompilesEveryKernelOfEveryWorkload) {
  KernelSet kernels;
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(Mix(seed, static_cast<uint64_t>(GetParam())));
  auto next =
      static_cast<size_t>(GetParam());  // each architecture takes another case for each workload
  for (const WorkloadInfo& workload : Workloads()) {
    const Case& drawn = kCases[next++ % std::size(kCases)];
    const bool every = absl::GetFlag(FLAGS_every_kernel);
    for (const Case& c : kCases) {
      if (!every && &c != &drawn) continue;
      const auto one_in = static_cast<unsigned>(OneInFlag(kOneIn));
      const Sample sample = every ? Sample::All() : Sample(&random, one_in),
                   of_variations =
                       every ? Sample::All() : Sample(&random, one_in * kFewerOfVariations);
      const absl::Status added = AddWorkload(workload, c, sample, of_variations, kernels);
      ASSERT_TRUE(added.ok()) << workload.name << ": " << added;
    }
  }
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  Compile(kernels);
}

TEST_P(NvrtcArchitectureTest, CompilesWhatComparesResults) {
  if (compiler_ == nullptr) return;
  const absl::StatusOr<Binary> binary = compiler_->Compile(ResultKernels::Source());
  ASSERT_TRUE(binary.ok()) << binary.status();
  for (const KernelResources& kernel : ReadCubin(binary->path)) {
    EXPECT_EQ(kernel.kernel, "compare_results");
    EXPECT_EQ(kernel.stack_bytes, 0u);
  }
}

constexpr char kWideKernel[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { float* a; Index n; };
CC_KERNEL_OF(wide, 256) {
  CC_DYNAMIC_SHARED(shared);
  float* const values = reinterpret_cast<float*>(shared);
  float sums[160];
  for (int i = 0; i < 160; ++i) sums[i] = p.a[i * grid.BlockSize() + grid.ThreadId()];
  for (Index k = 0; k < p.n; ++k) {
    values[grid.ThreadId()] = p.a[k];
    grid.Sync();
    CC_UNROLL for (int i = 0; i < 160; ++i) sums[i] += sums[i] * values[i];
    grid.Sync();
  }
  CC_UNROLL for (int i = 0; i < 160; ++i) p.a[i * grid.BlockSize() + grid.ThreadId()] = sums[i];
}
)";

TEST_P(NvrtcArchitectureTest, CompilesBlocksOfABoundOfTheirOwnWithDynamicSharedMemory) {
  if (compiler_ == nullptr) return;
  const absl::StatusOr<Binary> binary = compiler_->Compile(kWideKernel);
  ASSERT_TRUE(binary.ok()) << binary.status();
  const std::vector<KernelResources> kernels = ReadCubin(binary->path);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].kernel, "wide");
  EXPECT_EQ(kernels[0].stack_bytes, 0u);
  EXPECT_GT(kernels[0].registers, 160u) << "more than 512 threads could have";
  EXPECT_LE(kernels[0].shared_bytes, 1024u) << "what CUDA keeps of a block";
}

constexpr char kMapKernel[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { TensorMap a; TensorMap b; float* c; };
static_assert(alignof(Params) == 64 && sizeof(Params) == 320);
CC_KERNEL(maps) { p.c[0] = float(p.a.words[0] + p.b.words[15]); }
)";

TEST_P(NvrtcArchitectureTest, CompilesTensorMapsAsParameters) {
  if (compiler_ == nullptr) return;
  const absl::StatusOr<Binary> binary = compiler_->Compile(kMapKernel);
  ASSERT_TRUE(binary.ok()) << binary.status();
  const std::vector<KernelResources> kernels = ReadCubin(binary->path);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].stack_bytes, 0u) << "they stay where parameters are";
}

TEST_P(NvrtcArchitectureTest, CompilesExchangesAndBags) {
  KernelSet kernels;
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(Mix(seed, static_cast<uint64_t>(GetParam())));
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  ASSERT_EQ(AddOtherKernels(kCases[GetParam()],
                            Sample(&random, IsLong() ? kOtherOneInOfLong : kOtherOneIn), kernels),
            absl::OkStatus());
  EXPECT_FALSE(kernels.kernels().empty());
  Compile(kernels);
}

constexpr size_t kMulticastOneIn = 12, kMulticastOneInOfLong = 6;  // schedules

// Where a switch adds up, and before there was one.
TEST_P(NvrtcArchitectureTest, CompilesKernelsThatMulticast) {
  KernelSet kernels;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Graph program =
        BindSizes(MakeWorkload("momentum", {.dtype = dtype}).value(), {{"N", 1 << 20}}).value();
    const std::vector<Schedule> schedules = Derive(program).value();
    const size_t step = absl::GetFlag(FLAGS_every_kernel) ? 1
                        : IsLong()                        ? kMulticastOneInOfLong
                                                          : kMulticastOneIn;
    for (size_t i = FreshSeed() % step; i < schedules.size(); i += step) {
      const Schedule& schedule = schedules[i];
      for (int vec : {1, 8}) {
        const Config config{.protocol = Protocol::kGenerated, .vec = vec, .multicast = true};
        if (Validate(config, schedule, {.ranks = 8}).ok())
          kernels.Add(Lower(schedule, config, 8).value());
      }
    }
  }
  int multicast = 0;
  for (const auto& [symbol, text] : kernels.kernels())
    multicast += absl::StrContains(text, "Multicast<");
  EXPECT_GT(multicast, 6);
  Compile(kernels);
}

constexpr absl::string_view kRows = R"(coconet 1
program rows
input table : @type@[5000, 96] sliced(0)
input columns : @type@[5000, 96] sliced(1)
input all : @type@[5000, 96] replicated
input i : i32[7, 300] replicated
input j : i32[7, 300] sliced(1)
state y : @type@[7, 300, 96]
update(y, sign(y) * all_reduce(sum, gather(table, i - iota(i32, i, 1), 0)))
output x = all_gather(gather(columns, i, 0))
output z = all_gather(gather(all, j, 0) * y)
output n = gather(i, iota(i32, i, 1), 1)
)";

// Another type on each architecture.
TEST_P(NvrtcArchitectureTest, CompilesRowsByIndex) {
  static constexpr DType kTypes[] = {DType::kBF16, DType::kI32, DType::kF16};
  KernelSet kernels;
  const Graph program =
      Parse(absl::StrReplaceAll(kRows, {{"@type@", Name(kTypes[GetParam()])}})).value();
  const std::vector<Schedule> schedules = Derive(program).value();
  for (size_t i = 0; i < schedules.size(); i += 1 + schedules.size() / 2) {
    for (int vec : {1, 8}) {
      const Config config{.protocol = Protocol::kGenerated, .vec = vec};
      if (Validate(config, schedules[i], {.ranks = 4}).ok())
        kernels.Add(Lower(schedules[i], config, 4).value());
    }
  }
  Compile(kernels);
}

// By instructions from sm_89 on, by integer arithmetic before.
TEST_P(NvrtcArchitectureTest, CompilesConversionsOf8BitFloats) {
  KernelSet kernels;
  const Graph program = Parse(R"(coconet 1
program bytes
input g : f8e4m3[4000] local
input h : f8e5m2[4000] local
state p : f8e4m3[4000] replicated
G = cast(f32, all_reduce(sum, g)) + cast(f32, all_reduce(max, h))
update(p, cast(f8e4m3, G))
output q = cast(f8e5m2, 0.5 * G)
)")
                            .value();
  const std::vector<Schedule> schedules = Derive(program).value();
  for (size_t i = 0; i < schedules.size(); i += 1 + schedules.size() / 3) {
    for (int vec : {1, 16}) {
      const Config config{.protocol = Protocol::kGenerated, .vec = vec};
      if (Validate(config, schedules[i], {.ranks = 4}).ok())
        kernels.Add(Lower(schedules[i], config, 4).value());
    }
  }
  Compile(kernels);
}

constexpr absl::string_view kEpilogue = R"(coconet 1
program epilogue
input a : @type@[@a@] local
input b : @type@[@b@] local
input r : @type@[1000, 600] replicated
output c = all_reduce(sum, matmul(a, b@how@)@end@) + r
)";

// Half of them go on with the product's elements.
TEST_P(NvrtcArchitectureTest, CompilesProductsThatTellOfTheirTiles) {
  KernelSet kernels;
  size_t number = 0;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        const std::string how =
            absl::StrCat(transpose_a ? ", transpose_a" : "", transpose_b ? ", transpose_b" : "");
        for (int side : {64, 128}) {
          if (++number % std::size(kArchitectures) != static_cast<size_t>(GetParam()))
            continue;  // others for each
          const std::string text =
              absl::StrReplaceAll(kEpilogue, {{"@type@", Name(dtype)},
                                              {"@a@", transpose_a ? "80, 1000" : "1000, 80"},
                                              {"@b@", transpose_b ? "600, 80" : "80, 600"},
                                              {"@how@", how},
                                              {"@end@", number / 6 % 2 == 1 ? " * r" : ""}});
          const std::vector<Schedule> schedules =
              Derive(Canonicalize(Parse(text).value()).graph).value();
          const auto takes = [](const Schedule& s) {
            return TakesTiles(s, Protocol::kGenerated, 1);
          };
          const auto schedule = std::find_if(schedules.begin(), schedules.end(), takes);
          ASSERT_NE(schedule, schedules.end());
          const Config config{.protocol = Protocol::kGenerated,
                              .vec = kVec,
                              .blocks = 132,
                              .threads = 256,
                              .beside = 8,
                              .tiles = side};
          kernels.Add(Lower(*schedule, config, 2).value());
        }
      }
    }
  }
  const absl::StatusOr<std::vector<std::string>> binaries = kernels.Compile(*compiler_);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  int products = 0;
  for (const std::string& path : *binaries) {
    for (const KernelResources& kernel : ReadCubin(path)) {
      EXPECT_LE(kernel.stack_bytes, kMostStackBytes) << kernel.kernel;
      EXPECT_LE(kernel.registers, 128u) << kernel.kernel;  // two blocks a multiprocessor
      products += kernel.shared_bytes > 0;
    }
  }
  EXPECT_EQ(products, 8);
}

// The products of f16; //bench/machine_code:machine_code_test counts those of bf16.
TEST_F(NvrtcTest, CompilesProductsByWarpGroupsWithoutAStack) {
  MakeCompiler("sm_90a");
  if (compiler_ == nullptr) return;
  KernelSet kernels;
  for (bool tma : {false, true}) {
    for (bool transpose : {false, true}) {
      const std::string text =
          absl::StrReplaceAll(kEpilogue, {{"@type@", "f16"},
                                          {"@a@", transpose ? "80, 1000" : "1000, 80"},
                                          {"@b@", transpose ? "600, 80" : "80, 600"},
                                          {"@how@", transpose ? ", transpose_a, transpose_b" : ""},
                                          {"@end@", ""}});
      const std::vector<Schedule> schedules =
          Derive(Canonicalize(Parse(text).value()).graph).value();
      const auto takes = [](const Schedule& s) { return TakesTiles(s, Protocol::kGenerated, 1); };
      const auto schedule = std::find_if(schedules.begin(), schedules.end(), takes);
      ASSERT_NE(schedule, schedules.end());
      for (int columns : {64, 192}) {
        const Config config{.protocol = Protocol::kGenerated,
                            .vec = kVec,
                            .threads = 256,
                            .beside = 8,
                            .tiles = 128,
                            .tile_columns = columns,
                            .stages = 5,
                            .tma = tma};
        kernels.Add(Lower(*schedule, config, 2).value());
      }
    }
  }
  const absl::StatusOr<std::vector<std::string>> binaries = kernels.Compile(*compiler_);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  for (const std::string& path : *binaries) {
    for (const KernelResources& kernel : ReadCubin(path))
      EXPECT_EQ(kernel.stack_bytes, 0u) << kernel.kernel;
  }
}

constexpr uint64_t kElementwiseOneIn = 4;  // in a sample; long tests take all

// The functions' text is the same for all architectures.
TEST_F(NvrtcTest, CompilesElementwiseFunctionsOfEveryType) {
  MakeCompiler("sm_90a");
  if (compiler_ == nullptr) return;
  std::string text = "#include \"coconet/kernel.h\"\n";
  std::set<std::string> wanted;
  const uint64_t one_in = IsLong() ? 1 : kElementwiseOneIn, seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  uint64_t number = seed;
  for (const auto& kernels : {PointwiseKernels(), CastKernels()}) {
    for (const ElementwiseKernel& kernel : kernels) {
      if (number++ % one_in != 0) continue;
      text += KernelText(kernel);
      wanted.insert(kernel.name);
    }
  }
  const absl::StatusOr<Binary> binary = compiler_->Compile(text);
  ASSERT_TRUE(binary.ok()) << binary.status();
  std::set<std::string> compiled;
  for (const KernelResources& kernel : ReadCubin(binary->path)) compiled.insert(kernel.kernel);
  EXPECT_FALSE(wanted.empty());
  EXPECT_TRUE(std::includes(compiled.begin(), compiled.end(), wanted.begin(), wanted.end()));
}

INSTANTIATE_TEST_SUITE_P(, NvrtcArchitectureTest,
                         testing::Range(0, static_cast<int>(std::size(kArchitectures))),
                         [](const auto& info) { return std::string(kArchitectures[info.param]); });

}  // namespace
}  // namespace coconet
