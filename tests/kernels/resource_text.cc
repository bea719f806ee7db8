#include "tests/kernels/resource_text.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/compiler.h"
#include "jit/compile/testing/cubin.h"
#include "jit/config/beside.h"
#include "jit/lower/lower.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {
namespace {

constexpr absl::string_view kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};
constexpr int kRanks[] = {2, 8};
constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
constexpr int kVec = 4, kUnroll = 16;  // as tried first

/// A kernel of a plan, and where it comes from.
struct Origin {
  std::string symbol;
  std::string words;  // "adam f32 2 ranks: fuse(RS, C, AG)"
};

size_t LargestKernel(const Schedule& s) {
  size_t most = 0;
  for (const std::vector<NodeId>& kernel : s.kernels()) most = std::max(most, kernel.size());
  return most;
}

absl::Status AddWorkload(const WorkloadInfo& info, DType dtype, KernelSet& kernels,
                         std::vector<Origin>& origins) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(info.name, {.dtype = dtype}));
  ASSIGN_OR_RETURN(
      const Graph program,
      BindSizes(symbolic, info.optimizer ? Sizes{{"N", 1 << 20}} : info.presets[0].sizes));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  // The schedules with the largest kernels, without a product in tiles and with one.
  const Schedule* fullest[2] = {};
  for (const Schedule& s : schedules) {
    const Schedule*& most = fullest[MultipliesInKernels(s) ? 1 : 0];
    if (s.overlaps().empty() && (most == nullptr || LargestKernel(s) > LargestKernel(*most)))
      most = &s;
  }
  for (const Schedule* s : fullest) {
    for (int ranks : kRanks) {
      if (s == nullptr) continue;
      const Target target(ranks, /*nodes=*/1, /*stages=*/2);
      const Config config = {
          .protocol = Protocol::kGenerated, .vec = kVec, .threads = 256, .unroll = kUnroll};
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(*s, config, target));
      kernels.Add(lowered);
      for (const Step& step : lowered.plan.steps) {
        const auto* kernel = std::get_if<KernelStep>(&step);
        if (kernel == nullptr || (s == fullest[1] && !absl::StrContains(kernel->label, "MM")))
          continue;
        origins.push_back({kernel->symbol, absl::StrCat(info.name, " ", Name(dtype), " ", ranks,
                                                        " ranks: ", kernel->label)});
      }
    }
  }
  return absl::OkStatus();
}

/// Products that tell of their tiles.
absl::Status AddTiled(absl::string_view workload, DType dtype, KernelSet& kernels,
                      std::vector<Origin>& origins) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload, {.dtype = dtype}));
  ASSIGN_OR_RETURN(const Graph program,
                   BindSizes(symbolic, {{"B", 8}, {"S", 512}, {"H", 1024}, {"K", 256}}));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  for (int side : {64, 128}) {
    const Config config = {.protocol = Protocol::kGenerated,
                           .vec = kVec,
                           .threads = 256,
                           .beside = 8,
                           .tiles = side,
                           .unroll = kUnroll};
    const auto takes = [&](const Schedule& s) { return Validate(config, s, {.ranks = 2}).ok(); };
    const auto schedule = std::find_if(schedules.begin(), schedules.end(), takes);
    if (schedule == schedules.end())
      return absl::NotFoundError(absl::StrCat(workload, ": no schedule takes tiles"));
    ASSIGN_OR_RETURN(const Lowered lowered, Lower(*schedule, config, 2));
    kernels.Add(lowered);
    for (const Step& step : lowered.plan.steps) {
      const auto* kernel = std::get_if<KernelStep>(&step);
      if (kernel == nullptr || kernel->label != "MM") continue;
      origins.push_back({kernel->symbol, absl::StrCat(workload, " ", Name(dtype),
                                                      " 2 ranks: MM in tiles of ", side)});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, KernelResources>> CompileFor(absl::string_view architecture,
                                                                  const KernelSet& kernels,
                                                                  const std::string& cache_dir,
                                                                  std::string& version) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeNvrtcCompiler(architecture, {.cache_dir = cache_dir}));
  const std::vector<std::string> words =
      absl::StrSplit(compiler->identity(), ' ');  // "nvrtc 13.0 ..."
  version = absl::StrCat(words[0], " ", words[1]);
  ASSIGN_OR_RETURN(const std::vector<std::string> binaries, kernels.Compile(*compiler));
  std::map<std::string, KernelResources> of;
  for (const std::string& path : binaries) {
    std::ifstream file(path, std::ios::binary);
    const std::string cubin(std::istreambuf_iterator<char>(file), {});
    ASSIGN_OR_RETURN(std::vector<KernelResources> resources, ResourcesOf(cubin));
    for (KernelResources& kernel : resources) of.emplace(kernel.kernel, std::move(kernel));
  }
  return of;
}

}  // namespace

absl::StatusOr<std::string> MakeResourceText(
    const std::string& cache_dir,
    const std::function<bool(absl::string_view workload, DType dtype)>& takes) {
  KernelSet kernels;
  std::vector<Origin> origins;
  for (const WorkloadInfo& info : Workloads()) {
    for (DType dtype : kTypes) {
      if (takes(info.name, dtype)) RETURN_IF_ERROR(AddWorkload(info, dtype, kernels, origins));
    }
  }
  for (DType dtype : kTypes) {
    if (takes("mlp", dtype)) RETURN_IF_ERROR(AddTiled("mlp", dtype, kernels, origins));
  }
  std::map<absl::string_view, std::map<std::string, KernelResources>> compiled;
  std::string version;
  for (absl::string_view architecture : kArchitectures) {
    ASSIGN_OR_RETURN(compiled[architecture], CompileFor(architecture, kernels, cache_dir, version));
  }
  std::string text = absl::StrCat(
      "# ", version,
      "; registers, bytes of stack, bytes of shared memory, for each of sm_80, sm_90a, sm_100\n");
  for (const Origin& origin : origins) {
    absl::StrAppendFormat(&text, "%-60s", origin.words);
    for (absl::string_view architecture : kArchitectures) {
      const KernelResources& r = compiled[architecture].at(origin.symbol);
      absl::StrAppendFormat(&text, "  %3d %3d %5d", r.registers, r.stack_bytes, r.shared_bytes);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace coconet
