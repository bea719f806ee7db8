// The kernels of every schedule of every workload through NVRTC, for each architecture. Needs no GPU.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule.h"
#include "coconet/workloads.h"
#include "gtest/gtest.h"
#include "jit/compiler.h"
#include "jit/cubin.h"
#include "tests/dialect_kernels.h"
#include "tests/kernel_set.h"

namespace coconet {
namespace {

/// A workload's type and world. Each architecture takes another one for each workload, which bounds the time.
struct Case {
  DType dtype;
  int ranks;
  Streaming streaming;
  OneShot one_shot;
};
constexpr Case kCases[] = {
    {DType::kF32, 2, Streaming::kNone, OneShot::kPull},
    {DType::kF16, 8, Streaming::kShared, OneShot::kLL},
    {DType::kBF16, 3, Streaming::kAll, OneShot::kStaged},
};
constexpr int kVec = 4;  // f32 values of 16 bytes, what a GPU's thread loads at once
/// A called function (pow's slow path) may save some registers there; more is a spill in the loop.
constexpr uint32_t kMostStackBytes = 64;
constexpr absl::string_view kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

/// Those of one schedule in `one_in` without overlap, and of one in kOverlapsOneIn of the others: their kernels differ by the chunk alone.
struct Sample {
  size_t first = 0;
  size_t one_in = 1;
};
constexpr size_t kOverlapsOneIn = 15;
/// Of so many schedules, or more, half as many.
constexpr size_t kManySchedules = 512;
/// Each schedule's kernels for one architecture, others for each, which bounds the time.
constexpr size_t kArchitectureCount = std::size(kArchitectures);

/// Of `nodes` nodes with the case's ranks each.
absl::Status AddKernels(const WorkloadInfo& workload, const Case& c, const Sizes& sizes, const Sample& sample, KernelSet& kernels, int nodes = 1) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload.name, {.dtype = c.dtype}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {.by_node = nodes > 1}));
  const Target target = {c.ranks * nodes, nodes, /*stages=*/2};
  for (size_t i = 0; i < schedules.size(); ++i) {
    const Schedule& schedule = schedules[i];
    const size_t one_in_all = sample.one_in * (schedules.size() < kManySchedules ? 1 : 2);
    const size_t one_in = schedule.overlaps.empty() ? one_in_all : std::max(one_in_all, kOverlapsOneIn);
    if ((i + sample.first) % one_in != 0) continue;
    for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
      Config config = {.protocol = protocol, .vec = kVec, .streaming = c.streaming, .one_shot = c.one_shot};
      if (!schedule.overlaps.empty()) config.pieces = 2, config.one_shot = OneShot::kPull;
      if (!Validate(config, schedule, {.ranks = target.ranks, .nodes = nodes}).ok()) continue;
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, target));
      kernels.Add(lowered);
    }
  }
  return absl::OkStatus();
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
    absl::StatusOr<std::unique_ptr<Compiler>> made =
        MakeNvrtcCompiler(architecture, {.cache_dir = absl::StrCat(testing::TempDir(), "/cache")});
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.ok()) << made.status();
    compiler_ = *std::move(made);
  }

  std::unique_ptr<Compiler> compiler_;
};

class NvrtcArchitectureTest : public NvrtcTest, public testing::WithParamInterface<int> {  // index of the architecture
 protected:
  void SetUp() override { MakeCompiler(kArchitectures[GetParam()]); }
};

TEST_P(NvrtcArchitectureTest, CompilesEveryKernelOfEveryWorkload) {
  KernelSet kernels;
  const size_t architecture = GetParam();
  size_t next = architecture;
  for (const WorkloadInfo& workload : Workloads()) {
    const Case& c = kCases[next++ % std::size(kCases)];
    const bool few_new_kernels = !workload.varies.empty();
    const Sizes sizes = workload.optimizer ? Sizes{{"N", 1 << 20}} : workload.presets[0].sizes;
    absl::Status added = AddKernels(workload, c, sizes, {architecture, few_new_kernels ? 24u : kArchitectureCount}, kernels);
    if (workload.optimizer) added.Update(AddKernels(workload, c, {{"N", {1 << 20, 1000}}}, {architecture, 24}, kernels));
    added.Update(AddKernels(workload, c, sizes, {architecture, 24}, kernels, /*nodes=*/2));
    ASSERT_TRUE(added.ok()) << workload.name << ": " << added;
  }
  const absl::StatusOr<std::vector<std::string>> binaries = kernels.Compile(*compiler_);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  std::set<std::string> compiled;
  std::string spilling;
  for (const std::string& path : *binaries) {
    for (const KernelResources& kernel : ReadCubin(path)) {
      compiled.insert(kernel.kernel);
      if (kernel.stack_bytes > kMostStackBytes) absl::StrAppend(&spilling, kernel.kernel, ": ", kernel.stack_bytes, " bytes\n");
    }
  }
  for (const auto& [symbol, text] : kernels.kernels()) EXPECT_EQ(compiled.count(symbol), 1u) << symbol << "\n" << text;
  EXPECT_EQ(spilling, "") << "of " << compiled.size() << " kernels";
  std::cout << compiled.size() << " kernels\n";
}

// Where a switch adds up, and before there was one.
TEST_P(NvrtcArchitectureTest, CompilesKernelsThatMulticast) {
  KernelSet kernels;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Graph program = BindSizes(MakeWorkload("momentum", {.dtype = dtype}).value(), {{"N", 1 << 20}}).value();
    const std::vector<Schedule> schedules = Derive(program).value();
    for (const Schedule& schedule : schedules) {
      for (int vec : {1, 4, 8}) {
        const Config config{.protocol = Protocol::kGenerated, .vec = vec, .multicast = true};
        if (Validate(config, schedule, {.ranks = 8}).ok()) kernels.Add(Lower(schedule, config, 8).value());
      }
    }
  }
  int multicast = 0;
  for (const auto& [symbol, text] : kernels.kernels()) multicast += absl::StrContains(text, "Multicast<");
  EXPECT_GT(multicast, 6);
  const absl::StatusOr<std::vector<std::string>> binaries = kernels.Compile(*compiler_);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  for (const std::string& path : *binaries) {
    for (const KernelResources& kernel : ReadCubin(path)) EXPECT_LE(kernel.stack_bytes, kMostStackBytes) << kernel.kernel;
  }
}

// The functions' text is the same for all architectures.
TEST_F(NvrtcTest, CompilesEveryElementwiseFunctionOfEveryType) {
  MakeCompiler("sm_90a");
  if (compiler_ == nullptr) return;
  std::string text = "#include \"coconet/kernel.h\"\n";
  std::set<std::string> wanted;
  for (const auto& kernels : {PointwiseKernels(), CastKernels()}) {
    for (const ElementwiseKernel& kernel : kernels) {
      text += KernelText(kernel);
      wanted.insert(kernel.name);
    }
  }
  const absl::StatusOr<Binary> binary = compiler_->Compile(text);
  ASSERT_TRUE(binary.ok()) << binary.status();
  std::set<std::string> compiled;
  for (const KernelResources& kernel : ReadCubin(binary->path)) compiled.insert(kernel.kernel);
  EXPECT_TRUE(std::includes(compiled.begin(), compiled.end(), wanted.begin(), wanted.end()));
}

INSTANTIATE_TEST_SUITE_P(, NvrtcArchitectureTest, testing::Range(0, static_cast<int>(std::size(kArchitectures))),
                         [](const auto& info) { return std::string(kArchitectures[info.param]); });

}  // namespace
}  // namespace coconet
