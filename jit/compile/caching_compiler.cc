#include "jit/compile/caching_compiler.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
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

/// Calls `work(i)` for 0 <= i < count, on this thread and on others for cores that no such call of
/// this process uses.
void OnFreeCores(size_t count, absl::FunctionRef<void(size_t i)> work) {
  static std::atomic<int> free{static_cast<int>(std::thread::hardware_concurrency()) - 1};
  std::atomic<size_t> next{0};
  const auto do_all = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < count; ++i) {
    if (--free < 0) {
      ++free;
      break;
    }
    helpers.emplace_back([&] {
      do_all();
      ++free;
    });
  }
  do_all();
  for (std::thread& helper : helpers) helper.join();
}

/// Cancelled only where there is no other error.
absl::Status FirstError(absl::Span<const absl::StatusOr<Binary>> binaries) {
  absl::Status first;
  for (const absl::StatusOr<Binary>& binary : binaries) {
    if (first.ok() || absl::IsCancelled(first)) first = binary.ok() ? first : binary.status();
  }
  return first;
}

class CachingCompiler : public Compiler {
 public:
  CachingCompiler(std::unique_ptr<Translator> translator, std::unique_ptr<BinaryCache> cache,
                  bool apart)
      : translator_(std::move(translator)), cache_(std::move(cache)), apart_(apart) {}

  const std::string& identity() const override { return translator_->identity(); }

  absl::StatusOr<Binary> Compile(const std::string& source) override {
    if (apart_) {
      if (const std::vector<KernelSource> kernels = KernelsOf(source); kernels.size() > 1)
        return CompileApart(source, kernels);
    }
    return CompileWhole(source);
  }

 private:
  absl::StatusOr<Binary> CompileApart(const std::string& source,
                                      const std::vector<KernelSource>& kernels) {
    const std::string name =
        absl::StrCat(Fingerprint(absl::StrCat(identity(), "\n", source)), ".bundle");
    if (absl::StatusOr<Binary> binary = Look(name); binary.ok()) return binary;
    std::vector<absl::StatusOr<Binary>> binaries(kernels.size(),
                                                 absl::CancelledError("another kernel failed"));
    std::atomic<bool> failed{false};
    OnFreeCores(kernels.size(), [&](size_t i) {
      if (failed) return;
      binaries[i] = CompileWhole(absl::StrCat(kKernelInclude, kernels[i].text));
      if (!binaries[i].ok()) failed = true;
    });
    RETURN_IF_ERROR(FirstError(binaries));
    Binary bundle{"", /*from_cache=*/true, ""};
    std::vector<std::pair<std::string, std::string>> parts;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const Binary& binary = *binaries[i];
      std::optional<std::string> content = BinaryCache::ReadAt(binary.path);
      if (!content.has_value()) {
        return absl::UnavailableError(
            absl::StrCat("want ", binary.path, " as it was compiled, have it gone or damaged"));
      }
      bundle.from_cache = bundle.from_cache && binary.from_cache;
      if (!binary.note.empty()) bundle.note = binary.note;
      parts.emplace_back(kernels[i].symbol, *std::move(content));
    }
    ASSIGN_OR_RETURN(bundle.path,
                     cache_->Store(name, PackBundle(parts), BinaryCache::Existing::kKeep));
    return bundle;
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
  const bool apart_;
};

}  // namespace

std::unique_ptr<Compiler> MakeCachingCompiler(std::unique_ptr<Translator> translator,
                                              std::unique_ptr<BinaryCache> cache, bool apart) {
  return std::make_unique<CachingCompiler>(std::move(translator), std::move(cache), apart);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options) {
  if (!arch.empty()) {
    CompilerOptions apart = options;
    apart.apart = true;
    return MakeNvrtcCompiler(arch, apart);
  }
  return simulated ? MakeSimtCompiler(options) : MakeHostCompiler(options);
}

std::string BinaryTarget(absl::string_view arch, int driver) {
  if (arch.empty()) return HostBinaryTarget();
  constexpr int kMajor = 1000;  // 13000 is 13.0
  return absl::StrCat(arch, " CUDA ", driver / kMajor);
}

void CountCompilerRun() { ++compiler_runs; }

int64_t CompilerRuns() { return compiler_runs; }

}  // namespace coconet
