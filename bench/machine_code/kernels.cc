#include "bench/machine_code/kernels.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/harness/workload.h"
#include "bench/machine_code/listing.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/disassembler.h"
#include "jit/compile/embedded_headers.h"
#include "jit/compile/nvrtc_compiler.h"
#include "jit/config/beside.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet::bench {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
constexpr int kRanks[] = {2, 8};
constexpr int64_t kElements = 1 << 28;  // of an optimizer's vector
constexpr int kMultiprocessors = 132;
constexpr size_t kKernelsOfUnit = 6;

/// What schedules of optimizers that have won begin with, the plainest last.
constexpr absl::string_view kWinners[] = {"fuse(RS, C, AG)", "fuse(RS, C); AG", "fuse(AR, C)",
                                          "AR; fuse(C)"};

size_t LargestKernel(const Schedule& s) {
  size_t most = 0;
  for (const std::vector<NodeId>& kernel : s.kernels()) most = std::max(most, kernel.size());
  return most;
}

std::vector<Schedule> Chosen(const WorkloadInfo& info, const std::vector<Schedule>& all,
                             bool every) {
  if (every) return all;
  std::map<absl::string_view, const Schedule*> by_words;  // the last, whose states are sliced
  const Schedule* fullest = nullptr;
  for (const Schedule& s : all) {
    if (!s.overlaps().empty() || MultipliesInKernels(s)) continue;  // products.h counts the latter
    if (fullest == nullptr || LargestKernel(s) > LargestKernel(*fullest)) fullest = &s;
    for (absl::string_view words : kWinners) {
      if (info.varies.empty() && absl::StartsWith(Describe(s), words)) by_words[words] = &s;
    }
  }
  std::set<const Schedule*> chosen;
  if (fullest != nullptr) chosen.insert(fullest);
  for (const auto& [words, s] : by_words) chosen.insert(s);
  std::vector<Schedule> copies;
  for (const Schedule* s : chosen) copies.push_back(*s);
  return copies;
}

/// A config without the numbers on which a kernel's text does not depend.
Config TextOnly(Config config) {
  config.chunk = config.vec;
  config.blocks = config.threads = 1;
  return config;
}
/// Whether a config differs from the plainest only in the sizes of its packs or by bulk copies.
bool IsPlain(const Config& config) {
  return config.streaming == Streaming::kNone && config.one_shot == OneShot::kPull &&
         !config.multicast && !config.ring && config.batch == 0 && config.beside == 0 &&
         config.tiles == 0 && config.gemm == 0 && !config.remote_first && !config.concurrent;
}

std::vector<Config> ConfigsOf(const Schedule& s, int ranks, bool every) {
  const ConfigSpace space = {.ranks = ranks,
                             .multiprocessors = kMultiprocessors,
                             .library = false,
                             .multicast = true,
                             .bulk = true,
                             .ring = true};
  std::set<std::string> known;
  std::vector<Config> configs;
  for (const Config& config : Configs(s, space)) {
    if ((every || IsPlain(config)) && known.insert(Text(TextOnly(config))).second)
      configs.push_back(config);
  }
  return configs;
}

/// "vec=4 bulk=1": the size of packs, and words that the plainest config does not have.
std::string ShortText(const Config& config) {
  const Config plain = TextOnly(Config{.vec = config.vec});
  const std::vector<std::string> usual = absl::StrSplit(Text(plain), ' ');
  std::vector<std::string> words = {absl::StrCat("vec=", config.vec)};
  for (absl::string_view word : absl::StrSplit(Text(TextOnly(config)), ' ')) {
    const bool said = word == "generated" || absl::StartsWith(word, "vec=");
    if (!said && !absl::c_linear_search(usual, word)) words.emplace_back(word);
  }
  return absl::StrJoin(words, " ");
}

absl::Status AddSchedule(const Schedule& schedule, const KernelOrigin& of, bool every,
                         CollectedKernels& all) {
  const Target target(of.ranks, /*nodes=*/1, /*stages=*/2);
  for (const Config& config : ConfigsOf(schedule, of.ranks, every)) {
    ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedule, config, target));
    all.set.Add(lowered);
    std::set<std::string> once;
    for (const Step& step : lowered.plan.steps) {
      const auto* kernel = std::get_if<KernelStep>(&step);
      if (kernel == nullptr || !once.insert(kernel->symbol).second) continue;
      KernelOrigin origin = of;
      origin.symbol = kernel->symbol;
      origin.schedule = Describe(schedule);
      origin.label = kernel->label;
      origin.config = ShortText(config);
      origin.threads = kernel->threads;
      origin.bulk = config.bulk;
      all.origins.push_back(std::move(origin));
    }
  }
  return absl::OkStatus();
}

using BySymbol = std::map<std::string, CountedKernel>;

/// Compiles kernels of the set together and reads their machine code. Leaves out their origins.
absl::StatusOr<BySymbol> ReadUnit(Compiler& compiler, const KernelSet& kernels,
                                  const KernelSource& unit) {
  ASSIGN_OR_RETURN(const Binary binary, compiler.Compile(unit));
  const std::string cubin = BinaryCache::ReadAt(binary.path).value();
  SourceTexts texts;
  for (const DeviceHeader& header : DeviceHeaders(Dialect::kCuda))
    texts.Add(header.name, header.text);
  texts.Add("kernel.cc", unit.text());
  ASSIGN_OR_RETURN(const std::string listing, DisassembleWithLines(cubin));
  ASSIGN_OR_RETURN(const std::vector<MachineFunction> functions, ReadListing(listing));
  ASSIGN_OR_RETURN(const std::vector<KernelResources> resources, ResourcesOf(cubin));
  BySymbol counted;
  for (const KernelResources& kernel : resources) {
    const auto function = absl::c_find_if(
        functions, [&](const MachineFunction& f) { return f.name == kernel.kernel; });
    const auto text = kernels.kernels().find(kernel.kernel);
    if (function == functions.end() || text == kernels.kernels().end())
      return absl::InternalError(
          absl::StrCat("machine code: want the listing of ", kernel.kernel, ", found none"));
    counted[kernel.kernel] = {.resources = kernel,
                              .loops = FactsOf(*function, texts, text->second)};
  }
  return counted;
}

}  // namespace

absl::StatusOr<CollectedKernels> CollectKernels(const Selection& selection) {
  const auto wants = [](const auto& list, const auto& one) {
    return list.empty() || absl::c_linear_search(list, one);
  };
  for (const std::string& name : selection.workloads) RETURN_IF_ERROR(MakeWorkload(name).status());
  CollectedKernels all;
  for (const WorkloadInfo& info : Workloads()) {
    if (!wants(selection.workloads, info.name)) continue;
    for (DType dtype : kTypes) {
      if (!wants(selection.dtypes, dtype)) continue;
      const Sizes sizes = info.optimizer ? Sizes{{"N", kElements}} : info.presets[0].sizes;
      ASSIGN_OR_RETURN(const Graph program, BoundWorkload(info.name, dtype, sizes));
      ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
      for (const Schedule& s : Chosen(info, schedules, selection.every)) {
        for (int ranks : kRanks) {
          if (!wants(selection.ranks, ranks)) continue;
          const KernelOrigin of = {
              .workload = std::string(info.name), .dtype = dtype, .ranks = ranks};
          RETURN_IF_ERROR(AddSchedule(s, of, selection.every, all));
        }
      }
    }
  }
  return all;
}

absl::StatusOr<std::vector<CountedKernel>> ReadMachineCode(const CollectedKernels& kernels,
                                                           absl::string_view architecture,
                                                           const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const NvrtcApi* nvrtc, OpenNvrtc());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      MakeNvrtcCompilerOver(*nvrtc, architecture, {.cache_dir = cache_dir}, Lines::kKept));
  const std::vector<KernelSource> units = kernels.set.Units(kKernelsOfUnit);
  std::vector<absl::StatusOr<BySymbol>> read(units.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (size_t unit = next++; unit < units.size(); unit = next++)
        read[unit] = ReadUnit(*compiler, kernels.set, units[unit]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  BySymbol by_symbol;
  for (absl::StatusOr<BySymbol>& of_unit : read) {
    RETURN_IF_ERROR(of_unit.status());
    by_symbol.merge(*of_unit);
  }
  if (by_symbol.size() != kernels.set.size())
    return absl::InternalError(absl::StrCat("machine code: want ", kernels.set.size(),
                                            " kernels, found ", by_symbol.size()));
  std::vector<CountedKernel> counted;
  for (const KernelOrigin& origin : kernels.origins) {
    CountedKernel& kernel = counted.emplace_back(by_symbol.at(origin.symbol));
    kernel.origin = origin;
    kernel.architecture = std::string(architecture);
  }
  return counted;
}

}  // namespace coconet::bench
