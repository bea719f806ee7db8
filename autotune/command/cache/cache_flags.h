#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/layers/layers.h"

namespace coconet {

/// The exit code of `cache` for bad input.
inline constexpr int kBadInput = 2;

/// The command line of `cache`.
struct CacheFlags {
  std::string command;
  std::string which = "all";       // records: the beginning of a key, a program's name, or all
  std::vector<std::string> words;  // what else the command takes: files; of pin, a variant
  std::string file;                // --cache; "": the environment's
  std::vector<std::string> sweep;  // of why: flags of a program, as sweep has them
  std::optional<int64_t> size;     // --size, bytes
  std::optional<int64_t> older_s;  // --older, seconds
  bool json = false, lift = false, dry_run = false, help = false;

  /// Whether the command changes the user's file, and whether it makes a missing one.
  bool Writes() const;
  bool Creates() const { return command == "import" || command == "merge"; }
};

/// InvalidArgument says what is wrong, in a line. Paths are resolved against UserFolder (paths.h).
absl::StatusOr<CacheFlags> ParseCacheFlags(const std::vector<std::string>& args);

/// The layers that a command looks into, whatever COCONET_CACHE_MODE says of jobs.
CacheLayers LayersOfCommand(const CacheFlags& flags);

/// Prints "coconet cache: ..." to stderr, and returns kBadInput.
int Complain(absl::string_view what);

}  // namespace coconet
