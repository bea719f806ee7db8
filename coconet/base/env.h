#ifndef COCONET_BASE_ENV_H_
#define COCONET_BASE_ENV_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// Every environment variable of the library, read once.
struct Env {
  int debug =
      0;  // COCONET_DEBUG: 0 quiet, 1 a line per compile, 2 per pass, 3 per rewrite (to stderr)
  std::string dump;       // COCONET_DUMP: comma list of schedule,plan,source,ptx,sass
  std::string dump_dir;   // COCONET_DUMP_DIR: where dumps go; default: the working directory
  std::string cache_dir;  // COCONET_CACHE_DIR, else $XDG_CACHE_HOME/coconet, else
                          // $HOME/.cache/coconet, else ""
  std::optional<uint64_t>
      seed;             // COCONET_SEED: fixes the seed of verification data and of random tests
  bool verify = false;  // COCONET_VERIFY=1: verify again also on a cache hit made by this machine
  bool assert_cached =
      false;  // COCONET_ASSERT_CACHED=1: compiling or tuning is an error (CI's second run)
  double timeout_s = 60;  // COCONET_TIMEOUT: seconds that a rank waits for a peer
  bool green_contexts =
      true;  // COCONET_GREEN_CONTEXTS=0: ranks that share a GPU share its multiprocessors, too
  bool multicast =
      true;  // COCONET_MULTICAST=0: no memory has an address for all GPUs of a node at once
  std::string simt_seed;  // COCONET_SIMT_SEED: which interleaving simulated GPUs run
                          // (SimtOptions::Of); whoever runs it takes no other text than a number
  std::string
      cxx;  // COCONET_CXX: host compiler; default: c++, g++ or clang++ found on PATH, else ""
  std::string host_arch = "native";  // COCONET_HOST_ARCH: -march of kernels for the host: x86-64,
                                     // x86-64-v2, -v3 or -v4, if the processor has it

  bool Dumps(absl::string_view what) const;
};

const Env& GetEnv();

/// Parses the process environment; separate from GetEnv for tests. A value that makes no sense
/// counts as unset.
Env ReadEnv();

/// Writes `text` to <dump_dir>/<name> when COCONET_DUMP lists `what`; silently does nothing
/// otherwise, and where the folder cannot be written. Characters that do not belong in a file name
/// become '_'.
void MaybeDump(absl::string_view what, absl::string_view name, absl::string_view text);
void MaybeDump(const Env& env, absl::string_view what, absl::string_view name,
               absl::string_view text);

}  // namespace coconet

#endif  // COCONET_BASE_ENV_H_
