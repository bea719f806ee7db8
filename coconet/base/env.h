#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// What a job does with its user's tuning cache.
enum class CacheMode : uint8_t {
  kReadWrite,
  kReadOnly,  // takes records, and stores nothing
  kOff,       // neither takes records from any layer nor stores any
  kUnknown,   // COCONET_CACHE_MODE has another value: as kReadWrite, with a warning
};

/// Every environment variable of the library.
struct Env {
  /// COCONET_DEBUG: 0 quiet, 1 a line per compile, 2 per pass, 3 per rewrite; on stderr.
  int debug = 0;
  std::string dump;      // COCONET_DUMP: comma list of schedule,plan,source,ptx,sass
  std::string dump_dir;  // COCONET_DUMP_DIR: where dumps go; default: the working directory
  /// COCONET_CACHE_DIR, else $XDG_CACHE_HOME/coconet, else $HOME/.cache/coconet, else "".
  std::string cache_dir;
  /// COCONET_JOB_CACHE, COCONET_SITE_CACHE: tuning caches that are only read, whose records are
  /// taken before, and after, those of the user's; "": none.
  std::string job_cache, site_cache;
  CacheMode cache_mode{};  // COCONET_CACHE_MODE: readwrite, readonly or off
  /// COCONET_CACHE_LIMIT: bytes of the tuning cache, "256Mi" say, beyond which a tuning that stores
  /// deletes the records that were not used for the longest time; 0: any number.
  int64_t cache_limit = int64_t{256} << 20;
  std::optional<uint64_t> seed;  // COCONET_SEED: of verification data and of random tests
  bool verify = false;  // COCONET_VERIFY=1: verify also on a cache hit made by this machine
  /// COCONET_ASSERT_CACHED=1: compiling or tuning is an error (CI's second run).
  bool assert_cached = false;
  double timeout_s = 60;  // COCONET_TIMEOUT: seconds that a rank waits for a peer
  /// COCONET_GREEN_CONTEXTS=0: ranks that share a GPU also share its multiprocessors.
  bool green_contexts = true;
  bool multicast = true;  // COCONET_MULTICAST=0: memory has no multicast addresses
  /// COCONET_NCCL_SHARED_GPU=1: NCCL also between processes that share a GPU, for tests.
  bool nccl_shared_gpu = false;
  /// COCONET_SIMT_SEED: the interleaving of simulated GPUs (SimtOptions::Of). Kept as text; opening
  /// a simulated world fails unless it is a number.
  std::string simt_seed;
  /// COCONET_CXX: the host compiler; default: c++, g++ or clang++ on PATH, else "".
  std::string cxx;
  /// COCONET_HOST_ARCH: -march of host kernels: x86-64, x86-64-v2, -v3 or -v4, if the processor
  /// runs such code; else "native".
  std::string host_arch = "native";
  /// COCONET_TRACE: the file that a trace of a Session's first steps goes to; "": none is made.
  std::string trace;

  bool Dumps(absl::string_view what) const;
};

/// The process environment, read on the first call. Thread-safe.
const Env& GetEnv();

/// Parses the process environment anew; for tests. An invalid value counts as unset.
Env ReadEnv();

/// The executable file that `name` denotes: itself if it contains a slash, else the first on PATH;
/// "" if there is none.
std::string FindProgram(absl::string_view name);

/// Writes `text` to <dump_dir>/<name> if COCONET_DUMP lists `what`. Reports on stderr the first
/// dump of a process that cannot be written. Characters that do not belong in a file name become
/// '_'.
void MaybeDump(absl::string_view what, absl::string_view name, absl::string_view text);
void MaybeDump(const Env& env, absl::string_view what, absl::string_view name,
               absl::string_view text);

}  // namespace coconet
