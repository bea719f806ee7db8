#include "tests/kernels/kernel_set.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Kernels per unit: starting the compiler and reading the prelude should count little, and one
/// unit of many kernels takes long.
constexpr size_t kLeastKernels = 4, kMostKernels = 40;

class ModuleList final : public Module {
 public:
  explicit ModuleList(std::vector<std::unique_ptr<Module>> modules)
      : modules_(std::move(modules)) {}
  absl::StatusOr<void*> Symbol(absl::string_view name) const override {
    for (const std::unique_ptr<Module>& module : modules_) {
      if (absl::StatusOr<void*> symbol = module->Symbol(name); symbol.ok()) return symbol;
    }
    return absl::NotFoundError(
        absl::StrCat("no kernel ", name, " in ", modules_.size(), " modules"));
  }

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace

bool KernelSet::Add(const Lowered& lowered) {
  const size_t before = kernels_.size();
  for (const auto& [symbol, definition] : lowered.kernels.kernels())
    kernels_.emplace(symbol, definition);
  return kernels_.size() > before;
}

std::vector<KernelSource> KernelSet::Units(size_t kernels) const {
  std::vector<KernelSource> units;
  size_t in_unit = kernels;
  for (const auto& [symbol, definition] : kernels_) {
    if (in_unit++ == kernels) {
      units.emplace_back();
      in_unit = 1;
    }
    units.back().Add(symbol, definition);
  }
  return units;
}

absl::StatusOr<std::vector<std::string>> KernelSet::Compile(Compiler& compiler) const {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::vector<KernelSource> units =
      Units(std::clamp(size() / cores + 1, kLeastKernels, kMostKernels));
  std::vector<absl::StatusOr<Binary>> binaries(units.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores; ++i) {
    threads.emplace_back([&] {
      for (size_t unit = next++; unit < units.size(); unit = next++)
        binaries[unit] = compiler.Compile(units[unit]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> paths;
  for (const absl::StatusOr<Binary>& binary : binaries) {
    RETURN_IF_ERROR(binary.status());
    paths.push_back(binary->path);
  }
  return paths;
}

absl::StatusOr<std::unique_ptr<Module>> LoadAll(Rank& rank,
                                                const std::vector<std::string>& binaries) {
  std::vector<std::unique_ptr<Module>> modules;
  for (const std::string& path : binaries) {
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, rank.Load(path));
    modules.push_back(std::move(module));
  }
  return std::make_unique<ModuleList>(std::move(modules));
}

}  // namespace coconet
