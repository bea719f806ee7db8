#ifndef COCONET_JIT_COMPILE_COMPILER_H_
#define COCONET_JIT_COMPILE_COMPILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// A compiled translation unit on disk: a shared object (host, simulated threads) or a cubin
/// (CUDA). The file stays while the process runs.
struct Binary {
  std::string path;
  bool from_cache = false;  // this call ran no compiler
  /// Empty, or, once a compiler object, what its user should be told: the cache directory cannot be
  /// written.
  std::string note;
};

enum class Optimize : uint8_t {
  kFast,  // -O1: only answers matter (tests)
  kFull,  // what is timed and dispatched
};

/// Kernel source (see lower.h) to binaries, through the binary cache. Thread-safe; several
/// processes may share the cache directory.
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Names compiler, version, flags, target features and the hash of the embedded device headers:
  /// part of every key.
  virtual const std::string& identity() const = 0;
  /// InvalidArgument with the compiler's own words when the source does not compile,
  /// DeadlineExceeded past the time limit, ResourceExhausted when the machine is short of memory or
  /// disk (the same source may compile later), Unavailable when the compiler is missing. With
  /// COCONET_ASSERT_CACHED a miss is FailedPrecondition.
  virtual absl::StatusOr<Binary> Compile(const std::string& source) = 0;
};

struct CompilerOptions {
  std::string cache_dir;  // binaries go to <cache_dir>/objects
  Optimize optimize = Optimize::kFull;
  double time_limit_s = 120;  // one compile
  int driver =
      0;  // of the GPUs' that load what NVRTC makes: its version of CUDA, 13000 for 13.0; 0: any
};

/// The system's C++ compiler: COCONET_CXX, else c++, g++ or clang++ on PATH. It is run for a miss,
/// and once after it was installed or changed, to ask for its version; the answer is kept in the
/// cache. So a warm cache needs no compiler: without one, the identity is that of the compiler last
/// used on this kind of processor. Compile is Unavailable, with what to install, when a compiler is
/// needed and there is none. PermissionDenied when others can write to `cache_dir`.
absl::StatusOr<std::unique_ptr<Compiler>> MakeHostCompiler(const CompilerOptions& options);

/// The same compiler for the text that GPUs get, each of whose threads is then simulated
/// (Backend::kSimt). Optimises little, and nothing differently by `options.optimize`: such kernels
/// are checked, never timed.
absl::StatusOr<std::unique_ptr<Compiler>> MakeSimtCompiler(const CompilerOptions& options);

/// NVRTC, opened at run time; no GPU needed. `arch` is an exact architecture, "sm_80", "sm_90a",
/// "sm_100"; InvalidArgument for another. Unavailable, with what to do, when libnvrtc cannot be
/// opened, FailedPrecondition when it is of a later major version of CUDA than the driver, which
/// would not load what it makes.
absl::StatusOr<std::unique_ptr<Compiler>> MakeNvrtcCompiler(absl::string_view arch,
                                                            const CompilerOptions& options);

/// For ranks of this Topology::arch and Topology::simulated: a GPU's compiler where there is an
/// architecture, else the host's, for simulated GPUs or for the host.
absl::StatusOr<std::unique_ptr<Compiler>> MakeCompilerFor(absl::string_view arch, bool simulated,
                                                          const CompilerOptions& options);

/// Number of compiler runs (host and NVRTC) in this process so far; for "a warm start compiles
/// nothing" tests.
int64_t CompilerRuns();

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_COMPILER_H_
