#include "jit/compile/caching_compiler.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/bundle.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/host_compiler.h"
#include "jit/compile/kernel_sources.h"

namespace coconet {
namespace {

std::atomic<int64_t> compiler_runs{0};

/// How long to wait for another process that compiles the same source, before it is taken for
/// stuck: the time of dozens of compiles.
constexpr absl::Duration kPatience = absl::Seconds(10);

/// Merges concurrent calls for the same binary within this process: the first one computes, the
/// others get its result.
class Flights {
 public:
  template <class Compute>
  absl::StatusOr<Binary> Join(const std::string& name, Compute compute) {
    std::unique_lock lock(mutex_);
    auto [entry, first] = flights_.try_emplace(name, std::make_shared<Flight>());
    const std::shared_ptr<Flight> flight = entry->second;
    if (!first) {
      landed_.wait(lock, [&] { return flight->done; });
      absl::StatusOr<Binary> result = flight->result;
      if (result.ok()) result->from_cache = true;
      return result;
    }
    lock.unlock();
    absl::StatusOr<Binary> result = compute();
    lock.lock();
    flight->result = result;
    flight->done = true;
    flights_.erase(name);
    landed_.notify_all();
    return result;
  }

 private:
  struct Flight {
    bool done = false;
    absl::StatusOr<Binary> result;
  };
  std::mutex mutex_;
  std::condition_variable landed_;
  std::map<std::string, std::shared_ptr<Flight>> flights_;  // guarded by mutex_
};

/// Calls `work(i)` for 0 <= i < count, on this thread and on helper threads. All concurrent calls
/// in this process together start at most one helper thread per core but one.
void OnFreeCores(size_t count, absl::FunctionRef<void(size_t i)> work) {
  static std::atomic<int> free_cores{static_cast<int>(std::thread::hardware_concurrency()) - 1};
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

class CachingCompiler : public Compiler {
 public:
  CachingCompiler(std::unique_ptr<Translator> translator, std::unique_ptr<BinaryCache> cache,
                  size_t part_kernels)
      : translator_(std::move(translator)), cache_(std::move(cache)), part_kernels_(part_kernels) {}

  const std::string& identity() const override { return translator_->identity(); }

  absl::StatusOr<Binary> Compile(const std::string& source) override {
    if (part_kernels_ > 0) {
      if (const std::vector<KernelSource> kernels = KernelsOf(source);
          kernels.size() > part_kernels_)
        return CompileInParts(source, kernels);
    }
    return CompileWhole(source);
  }

 private:
  /// Kernels that are compiled together, once in the compiler's life.
  struct Part {
    std::vector<KernelSource> kernels;  // texts are valid until it is done
    absl::StatusOr<Binary> binary;
    bool done = false;

    std::string Source() const {
      std::string source(kKernelInclude);
      for (const KernelSource& kernel : kernels) absl::StrAppend(&source, kernel.text);
      return source;
    }
    std::string Name() const {
      return absl::StrJoin(kernels, ",", [](std::string* out, const KernelSource& kernel) {
        out->append(kernel.symbol);
      });
    }
  };
  using Parts = std::vector<std::shared_ptr<Part>>;

  absl::StatusOr<Binary> CompileInParts(const std::string& source,
                                        const std::vector<KernelSource>& kernels) {
    const std::string name =
        absl::StrCat(Fingerprint(absl::StrCat(identity(), "\n", source)), ".bundle");
    if (absl::StatusOr<Binary> binary = Look(name); binary.ok()) return binary;
    const auto [all, mine] = PartsOf(kernels);
    OnFreeCores(mine.size(), [&, &mine = mine](size_t i) { Finish(mine[i]); });
    AwaitAll(all);
    Binary bundle{"", /*from_cache=*/true, ""};
    std::vector<std::pair<std::string, std::string>> contents;
    for (const std::shared_ptr<Part>& part : all) {
      RETURN_IF_ERROR(part->binary.status());
      const Binary& binary = *part->binary;
      std::optional<std::string> content = BinaryCache::ReadAt(binary.path);
      if (!content.has_value()) {  // the cached file is missing or its digest is wrong
        Forget(*part);
        return CompileWhole(source);
      }
      bundle.from_cache = bundle.from_cache && binary.from_cache;
      if (!binary.note.empty()) bundle.note = binary.note;
      contents.emplace_back(part->Name(), *std::move(content));
    }
    ASSIGN_OR_RETURN(bundle.path,
                     cache_->Store(name, PackBundle(contents), BinaryCache::Existing::kKeep));
    return bundle;
  }

  /// The parts that contain the kernels; second, the new ones among them, for which the caller must
  /// call Finish.
  std::pair<Parts, Parts> PartsOf(const std::vector<KernelSource>& kernels) {
    const std::lock_guard lock(mutex_);
    Parts all, mine;
    std::set<const Part*> seen;
    for (const KernelSource& kernel : kernels) {
      const auto [at, is_new] = part_of_.try_emplace(kernel.symbol);
      if (is_new) {
        if (mine.empty() || mine.back()->kernels.size() == part_kernels_)
          mine.push_back(std::make_shared<Part>());
        mine.back()->kernels.push_back(kernel);
        at->second = mine.back();
      }
      if (seen.insert(at->second.get()).second) all.push_back(at->second);
    }
    return {std::move(all), std::move(mine)};
  }

  void Finish(const std::shared_ptr<Part>& part) {
    absl::StatusOr<Binary> binary = CompileWhole(part->Source());
    if (!binary.ok()) Forget(*part);
    const std::lock_guard lock(mutex_);
    part->binary = std::move(binary);
    part->done = true;
    part_done_.notify_all();
  }

  void AwaitAll(const Parts& parts) {
    std::unique_lock lock(mutex_);
    part_done_.wait(lock, [&] {
      return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part->done; });
    });
  }

  /// Removes the part's kernels from part_of_: the next source that has one compiles it again.
  void Forget(const Part& part) {
    const std::lock_guard lock(mutex_);
    for (const KernelSource& kernel : part.kernels) part_of_.erase(kernel.symbol);
  }

  absl::StatusOr<Binary> CompileWhole(const std::string& source) {
    // The identity stands for the headers, so that a hit need not write the source out.
    const std::string key = Fingerprint(absl::StrCat(identity(), "\n", source));
    const std::string name = absl::StrCat(key, ".", translator_->extension());
    absl::StatusOr<Binary> binary = Look(name);
    if (!binary.ok() || GetEnv().Dumps("source")) {
      ASSIGN_OR_RETURN(const std::string unit,
                       ExpandIncludes(source, DeviceHeaders(translator_->dialect())));
      MaybeDump("source", absl::StrCat(key.substr(0, 12), ".cc"), unit);
      if (!binary.ok()) binary = Miss(name, unit);
    }
    if (binary.ok()) binary->note = cache_->TakeNote();
    return binary;
  }

  absl::StatusOr<Binary> Look(const std::string& name) const {
    std::optional<std::string> path = cache_->Find(name);
    if (!path.has_value()) return absl::NotFoundError(name);
    return Binary{*std::move(path), true, ""};
  }

  absl::StatusOr<Binary> Miss(const std::string& name, const std::string& unit) {
    if (GetEnv().assert_cached) {
      return absl::FailedPreconditionError(absl::StrCat(
          "compile ", name, ": COCONET_ASSERT_CACHED is set: want it in the cache, have a miss"));
    }
    // One table per process, because ranks that are threads have a compiler each. The cache
    // directory is part of the key: another compiler's cache may be unreadable for this one.
    static auto* flights = new Flights;
    return flights->Join(absl::StrCat(cache_->dir(), "/", name), [&]() -> absl::StatusOr<Binary> {
      const BinaryCache::Lock lock = cache_->Acquire(name, kPatience);
      if (absl::StatusOr<Binary> binary = Look(name); binary.ok()) return binary;
      const absl::Time begin = absl::Now();
      ASSIGN_OR_RETURN(const std::string content, translator_->Translate(unit));
      Report(name, content.size(), absl::Now() - begin);
      ASSIGN_OR_RETURN(std::string path,
                       cache_->Store(name, content, BinaryCache::Existing::kKeep));
      return Binary{std::move(path), false, ""};
    });
  }

  void Report(const std::string& name, size_t bytes, absl::Duration time) const {
    if (GetEnv().debug < 1) return;
    const std::string line =
        absl::StrCat("coconet: compiled ", name, " in ", absl::ToInt64Milliseconds(time), " ms, ",
                     bytes, " bytes (", identity(), ")\n");
    std::fputs(line.c_str(), stderr);
  }

  const std::unique_ptr<Translator> translator_;
  const std::unique_ptr<BinaryCache> cache_;
  const size_t part_kernels_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable part_done_;
  std::map<std::string, std::shared_ptr<Part>> part_of_;  // by kernel
};

}  // namespace

std::unique_ptr<Compiler> MakeCachingCompiler(std::unique_ptr<Translator> translator,
                                              std::unique_ptr<BinaryCache> cache,
                                              size_t part_kernels) {
  return std::make_unique<CachingCompiler>(std::move(translator), std::move(cache), part_kernels);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options) {
  // NVRTC starts quickly; of the host's compiler a start takes as long as some kernels.
  constexpr size_t kOfNvrtc = 1, kOfHost = 12;
  CompilerOptions in_parts = options;
  in_parts.part_kernels = arch.empty() ? kOfHost : kOfNvrtc;
  if (!arch.empty()) return MakeNvrtcCompiler(arch, in_parts);
  return simulated ? MakeSimtCompiler(options) : MakeHostCompiler(in_parts);
}

std::string BinaryTarget(absl::string_view arch, int driver) {
  if (arch.empty()) return HostBinaryTarget();
  constexpr int kMajor = 1000;  // 13000 is 13.0
  return absl::StrCat(arch, " CUDA ", driver / kMajor);
}

void CountCompilerRun() { ++compiler_runs; }

int64_t CompilerRuns() { return compiler_runs; }

}  // namespace coconet
