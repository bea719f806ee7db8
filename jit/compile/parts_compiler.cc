#include "jit/compile/parts_compiler.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/bundle.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

size_t Cores() { return std::max(1u, std::thread::hardware_concurrency()); }

/// How many parts `kernels` kernels make: of `most` kernels at most, but as many as can be compiled
/// at once where each has a quarter of that.
size_t PartCount(size_t kernels, size_t most) {
  const size_t quarter = most / 4;
  return std::max((kernels + most - 1) / most,
                  quarter == 0 ? 0 : std::min(Cores(), kernels / quarter));
}

/// Calls `work(i)` for 0 <= i < count, on this thread and on helper threads. All concurrent calls
/// in this process together start at most one helper thread per core but one.
void OnFreeCores(size_t count, absl::FunctionRef<void(size_t i)> work) {
  static std::atomic<int> free_cores{static_cast<int>(Cores()) - 1};
  std::atomic<size_t> next{0};
  const auto do_all = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < count; ++i) {
    if (--free_cores < 0) {
      ++free_cores;
      break;
    }
    helpers.emplace_back([&] {
      do_all();
      ++free_cores;
    });
  }
  do_all();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

std::string PartsCompiler::Part::Name() const {
  return absl::StrJoin(kernels.kernels(), ",",
                       [](std::string* out, const KernelSource::Kernel& kernel) {
                         absl::StrAppend(out, kernel.symbol);
                       });
}

absl::StatusOr<Binary> PartsCompiler::Compile(const KernelSource& source) {
  const std::vector<KernelSource::Kernel> kernels = source.kernels();
  if (kernels.size() <= 1) return whole_->Compile(source);
  const std::string name =
      absl::StrCat(Fingerprint(absl::StrCat(identity(), "\n", source.text())), ".bundle");
  if (std::optional<std::string> path = cache_->Find(name); path.has_value())
    return Binary{*std::move(path), /*from_cache=*/true, ""};
  const auto [all, mine] = PartsOf(kernels);
  OnFreeCores(mine.size(), [&, &mine = mine](size_t i) { Finish(*mine[i]); });
  AwaitAll(all);
  Binary bundle{"", /*from_cache=*/true, ""};
  std::vector<std::pair<std::string, std::string>> contents;
  for (const std::shared_ptr<Part>& part : all) {
    RETURN_IF_ERROR(part->binary.status());
    const Binary& binary = *part->binary;
    std::optional<std::string> content = BinaryCache::ReadAt(binary.path);
    if (!content.has_value()) {  // the cached file is missing or its digest is wrong
      Forget(*part);
      return whole_->Compile(source);
    }
    bundle.from_cache = bundle.from_cache && binary.from_cache;
    if (!binary.note.empty()) bundle.note = binary.note;
    contents.emplace_back(part->Name(), *std::move(content));
  }
  ASSIGN_OR_RETURN(bundle.path,
                   cache_->Store(name, PackBundle(contents), BinaryCache::Existing::kKeep));
  return bundle;
}

std::pair<PartsCompiler::Parts, PartsCompiler::Parts> PartsCompiler::PartsOf(
    const std::vector<KernelSource::Kernel>& kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<const KernelSource::Kernel*> made;
  for (const KernelSource::Kernel& kernel : kernels) {
    if (part_of_.try_emplace(std::string(kernel.symbol)).second) made.push_back(&kernel);
  }
  Parts mine(PartCount(made.size(), part_kernels_));
  for (std::shared_ptr<Part>& part : mine) part = std::make_shared<Part>();
  for (size_t i = 0; i < made.size(); ++i) {
    const std::shared_ptr<Part>& part = mine[i * mine.size() / made.size()];
    part->kernels.Add(made[i]->symbol, made[i]->definition);
    part_of_[std::string(made[i]->symbol)] = part;
  }
  Parts all;
  std::set<const Part*> seen;
  for (const KernelSource::Kernel& kernel : kernels) {
    const std::shared_ptr<Part>& part = part_of_[std::string(kernel.symbol)];
    if (seen.insert(part.get()).second) all.push_back(part);
  }
  return {std::move(all), std::move(mine)};
}

void PartsCompiler::Finish(Part& part) {
  absl::StatusOr<Binary> binary = whole_->Compile(part.kernels);
  if (!binary.ok()) Forget(part);
  const std::lock_guard lock(mutex_);
  part.binary = std::move(binary);
  part.done = true;
  part_done_.notify_all();
}

void PartsCompiler::AwaitAll(const Parts& parts) {
  std::unique_lock lock(mutex_);
  part_done_.wait(lock, [&] {
    return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->done; });
  });
}

void PartsCompiler::Forget(const Part& part) {
  const std::lock_guard lock(mutex_);
  for (const KernelSource::Kernel& kernel : part.kernels.kernels())
    part_of_.erase(std::string(kernel.symbol));
}

}  // namespace coconet
