#include "runtime/node/cpu.h"

#include <sched.h>

#include <fstream>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/env.h"

namespace coconet {
namespace {

constexpr size_t kMaxCores = 8192;  // the kernel's limit

/// cpu_set_t holds 1024 cores; larger machines need a set of their own size.
class CoreSet {
 public:
  CoreSet() : set_(CPU_ALLOC(kMaxCores)) { CPU_ZERO_S(bytes(), set_); }
  ~CoreSet() { CPU_FREE(set_); }
  CoreSet(const CoreSet&) = delete;
  CoreSet& operator=(const CoreSet&) = delete;
  cpu_set_t* get() { return set_; }
  static size_t bytes() { return CPU_ALLOC_SIZE(kMaxCores); }

 private:
  cpu_set_t* set_;
};

/// True for features that change the generated code or its speed.
bool DecidesCode(absl::string_view feature) {
  constexpr absl::string_view kFamilies[] = {"amx", "asimd", "avx", "sve"};
  constexpr absl::string_view kSingle[] = {"bf16", "bmi2", "f16c", "fma",
                                           "fphp", "sme",  "sme2", "sse4_2"};
  return absl::c_linear_search(kSingle, feature) ||
         absl::c_any_of(kFamilies, [&](absl::string_view family) {
           return feature.substr(0, family.size()) == family;
         });
}

/// The features that DecidesCode knows and a level of x86-64 has. Each level has those of the lower
/// ones.
std::vector<absl::string_view> FeaturesOf(absl::string_view arch) {
  std::vector<absl::string_view> features;
  const auto has = [&](absl::string_view level, std::vector<absl::string_view> more) {
    if (arch >= level) absl::c_copy(more, std::back_inserter(features));
  };
  has("x86-64-v2", {"sse4_2"});
  has("x86-64-v3", {"avx", "avx2", "bmi2", "f16c", "fma"});
  has("x86-64-v4", {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"});
  return features;
}

}  // namespace

std::vector<int> AllowedCores() {
  CoreSet set;
  std::vector<int> cores;
  if (sched_getaffinity(0, CoreSet::bytes(), set.get()) == 0) {
    for (size_t i = 0; i < kMaxCores; ++i) {
      if (CPU_ISSET_S(i, CoreSet::bytes(), set.get())) cores.push_back(static_cast<int>(i));
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

void RunOn(const std::vector<int>& cores) {
  CoreSet set;
  for (int core : cores) CPU_SET_S(core, CoreSet::bytes(), set.get());
  sched_setaffinity(0, CoreSet::bytes(), set.get());
}

const Cpu& ThisCpu() {
  static const Cpu& cpu = *new Cpu([] {
    // The lines of the first processor only: on large machines the kernel takes milliseconds for
    // the whole file.
    std::ifstream file("/proc/cpuinfo");
    std::string text;
    for (std::string line; std::getline(file, line) && !line.empty();)
      absl::StrAppend(&text, line, "\n");
    return CpuFrom(text, GetEnv().host_arch);
  }());
  return cpu;
}

Cpu CpuFrom(absl::string_view cpuinfo, absl::string_view arch) {
  const bool native = arch == "native";
  Cpu cpu{.name = "unknown CPU"};
  std::vector<std::string> features;
  for (absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (line.empty()) break;  // the end of the first core
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    if (key == "model name" || key == "CPU part")
      cpu.name = std::string(value);  // CPU part: what ARM has
    if (key != "flags" && key != "Features") continue;
    for (absl::string_view feature : absl::StrSplit(value, ' ', absl::SkipEmpty())) {
      if (native ? DecidesCode(feature) : absl::c_linear_search(FeaturesOf(arch), feature))
        features.push_back(std::string(feature));
    }
  }
  if (!native) absl::StrAppend(&cpu.name, " as ", arch);
  absl::c_sort(features);
  if (!features.empty()) absl::StrAppend(&cpu.name, " ", absl::StrJoin(features, " "));
  if (absl::c_linear_search(features, "avx")) cpu.vector_bytes = 32;
  if (absl::c_linear_search(features, "avx512f")) cpu.vector_bytes = 64;
  return cpu;
}

}  // namespace coconet
