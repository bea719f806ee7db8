#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/compile/kernel_source.h"

namespace coconet {

/// A compiled translation unit on disk: a shared object (host, simulated threads), a cubin (CUDA)
/// or a bundle of cubins, named by their kernels (coconet/base/bundle.h). The file stays at least
/// as long as the process runs.
struct Binary {
  std::string path;
  bool from_cache = false;  // no compiler ran in this call
  /// "", or, once per compiler object, a message for the user: the cache directory cannot be
  /// written.
  std::string note;
};

enum class Optimize : uint8_t {
  kFast,  // -O1: for tests of results only
  kFull,  // for kernels that are timed or dispatched
};

/// Compiles kernels to binaries, through the binary cache. Thread-safe;
/// processes may share the cache directory.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Compiler, version, flags, target features and the digest of the embedded device headers; part
  /// of every key.
  virtual const std::string& identity() const = 0;
  /// InvalidArgument with the compiler's messages when the source does not compile;
  /// DeadlineExceeded after the time limit; ResourceExhausted when memory or disk is short (the
  /// same source may compile later); Cancelled by CompilerOptions::stop; Unavailable when the
  /// compiler is missing; FailedPrecondition for a cache miss when COCONET_ASSERT_CACHED is set.
  virtual absl::StatusOr<Binary> Compile(const KernelSource& source) = 0;
};

struct CompilerOptions {
  std::string cache_dir;  // binaries go to <cache_dir>/objects
  Optimize optimize = Optimize::kFull;
  double time_limit_s = 120;  // of one compile
  /// A source of several kernels is compiled in parts, in parallel, and its binary is a bundle of
  /// the parts' binaries. A compiler object compiles each kernel once and reuses its part for later
  /// sources. A part has at most `part_kernels` kernels, which no source had before; it may have as
  /// few as a quarter of that if cores can compile more parts at once. 0: sources are never split.
  size_t part_kernels = 0;
  /// While it is true, all compiles, also running ones, end as Cancelled. May be null.
  std::shared_ptr<const std::atomic<bool>> stop = nullptr;
  /// CUDA version of the driver that loads NVRTC's cubins, 13000 for 13.0; 0: any.
  int driver = 0;
};

/// The system's C++ compiler: COCONET_CXX, else c++, g++ or clang++ on PATH. It runs on a cache
/// miss, and once after it was installed or changed, to ask for its version; the cache keeps the
/// answer. So a warm cache needs no compiler: without one, the identity is that of the compiler
/// last used on this kind of processor. Compile is Unavailable, naming what to install, when a
/// compiler is needed and missing. PermissionDenied when others can write to `cache_dir`.
absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompiler(const CompilerOptions& options);

/// The same compiler for the source that GPUs get, with simulated threads (Backend::kSimt).
/// Optimises little, whatever `options.optimize`: such kernels are checked, never timed.
absl::StatusOr<std::unique_ptr<Compiler>> MakeSimtCompiler(const CompilerOptions& options);

/// NVRTC, opened at run time; needs no GPU. `arch`: an exact architecture, "sm_80", "sm_90a",
/// "sm_100"; InvalidArgument for another. Unavailable, saying what to do, when libnvrtc cannot be
/// opened; FailedPrecondition when its major version of CUDA is later than the driver's, which then
/// could not load its cubins.
absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompiler(absl::string_view arch,
                                                            const CompilerOptions& options);

/// The compiler for ranks of this Topology::arch and Topology::simulated: a GPU's if there is an
/// architecture, else the host's, for simulated GPUs or for the host.
absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options);

/// Names what processes must share to run each other's binaries: for GPUs the architecture and the
/// major version of `driver` (CompilerOptions); for "" this machine's processor, or the instruction
/// set that COCONET_HOST_ARCH names, and its C library.
std::string BinaryTarget(absl::string_view arch, int driver);

/// Number of compiler runs (host and NVRTC) in this process so far; tests check with it that a warm
/// start compiles nothing.
int64_t CompilerRuns();

}  // namespace coconet
