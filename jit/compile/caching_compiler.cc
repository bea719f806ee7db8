#include "jit/compile/caching_compiler.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/env.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/host_compiler.h"
#include "jit/compile/parts_compiler.h"

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

class CachingCompiler : public Compiler {
 public:
  CachingCompiler(std::unique_ptr<Translator> translator, std::shared_ptr<BinaryCache> cache)
      : translator_(std::move(translator)), cache_(std::move(cache)) {}

  const std::string& identity() const override { return translator_->identity(); }

  absl::StatusOr<Binary> Compile(const KernelSource& source) override {
    // The identity stands for the headers, so that a hit need not write the source out.
    const std::string key = Fingerprint(absl::StrCat(identity(), "\n", source.text()));
    const std::string name = absl::StrCat(key, ".", translator_->extension());
    absl::StatusOr<Binary> binary = Look(name);
    if (!binary.ok() || GetEnv().Dumps("source")) {
      ASSIGN_OR_RETURN(const std::string unit,
                       ExpandIncludes(source.text(), DeviceHeaders(translator_->dialect())));
      MaybeDump("source", absl::StrCat(key.substr(0, 12), ".cc"), unit);
      if (!binary.ok()) binary = Miss(name, unit);
    }
    if (binary.ok()) binary->note = cache_->TakeNote();
    return binary;
  }

 private:
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
  const std::shared_ptr<BinaryCache> cache_;
};

}  // namespace

std::unique_ptr<Compiler> MakeCachingCompiler(std::unique_ptr<Translator> translator,
                                              std::shared_ptr<BinaryCache> cache,
                                              size_t part_kernels) {
  auto whole = std::make_unique<CachingCompiler>(std::move(translator), cache);
  if (part_kernels == 0) return whole;
  return std::make_unique<PartsCompiler>(std::move(whole), std::move(cache), part_kernels);
}

absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options) {
  // NVRTC starts quickly. A start of the host's compiler takes as long as a small kernel.
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
