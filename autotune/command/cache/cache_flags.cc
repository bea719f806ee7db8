#include "autotune/command/cache/cache_flags.h"

#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "autotune/command/commands.h"
#include "autotune/command/paths.h"
#include "autotune/command/sizes.h"
#include "coconet/base/env.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr char kHelp[] = R"(coconet cache: what the tuning cache remembers, and what is done with it

  cache list [WHICH]       a line per tuned program, the newest first, with its layer
  cache show WHICH         what a record depends on, all its variants, what was verified of the best
  cache why WHICH          one line per schedule: how fast its fastest variant is, why it lost; what
                           the best fuses, and what it gained over the plain schedule
  cache why PROGRAM --N=16Mi --ranks=4 ...
                           the same of a program as sweep takes it, with sweep's flags, here and
                           now; without a record, in which fields of the key the nearest differs
  cache verify WHICH       the next job verifies the best variant again before it runs it
  cache retune WHICH       the next job tunes again, and times the best of now among the others
  cache forget WHICH       deletes records, and what is known of their variants
  cache pin WHICH VARIANT  jobs run this variant instead of the best: the words of a schedule, as
                           show prints them, or its trace, and behind a slash words of its config;
                           of several the fastest
  cache unpin WHICH        jobs run the best again
  cache quarantine WHICH   the variants that are left out because of earlier runs, and why;
                           with --lift the next tuning tries them again
  cache predictions        one line per calibration: how far what was predicted by it was from what
                           was measured; then the predictions that were farthest off
  cache stats              how many records, variants and bytes each layer has
  cache export [WHICH] FILE
                           writes records as lines of JSON
  cache import FILE        takes records from such a file, where they are better than those here;
                           with --dry-run it only says what it would take
  cache merge FILE.db      the same from another tuning cache
  cache diff A.db B.db     the records of two caches: winners, speed-ups, what a flip costs
  cache prune              deletes records that were not used for the longest time, until what is
                           left has at most --size bytes (default: COCONET_CACHE_LIMIT), and those
                           not used for --older; with --dry-run it only says which

WHICH: the beginning of a key, a program's name, or all.

  --json           of list, show, why, quarantine, predictions, stats, import, merge, diff, prune:
                   for other programs
  --cache=FILE     the user's tuning cache (COCONET_CACHE_DIR/tuning.db, else
                   XDG_CACHE_HOME/coconet/tuning.db)
  --lift           of quarantine: the next tuning tries the variants again
  --size=64Mi      of prune: the most bytes that are left
  --older=90d      of prune: what was not used for so long goes
  --dry-run        of import, merge, prune: only says what would be done

  cache list                        cache why adam
  cache retune 61762d988984         cache quarantine all --lift
  cache pin 61762d "RS; fuse(C); AG p/vec=8"
  cache export all records.jsonl    cache import records.jsonl --dry-run

Exit code: 0; 2 bad input, also if one of the records to import is rejected, or a cache that cannot
be read or written.
)";

/// A command: how many words follow it, whether the first of them says which records it is for, and
/// whether it writes.
struct Command {
  absl::string_view name;
  size_t least, most;
  bool which = false, writes = false;
  absl::string_view wanted = {};  // the words, for messages
  absl::string_view flags = {};   // that it heeds besides --cache and --help
};
constexpr absl::string_view kWhich = "the beginning of a key, a program's name, or all";
constexpr Command kCommands[] = {
    {"list", 0, 1, true, false, kWhich, "--json"},
    {"show", 1, 1, true, false, kWhich, "--json"},
    {"why", 1, 1, true, false, kWhich, "--json"},
    {"verify", 1, 1, true, true, kWhich, ""},
    {"retune", 1, 1, true, true, kWhich, ""},
    {"forget", 1, 1, true, true, kWhich, ""},
    {"quarantine", 1, 1, true, false, kWhich, "--json --lift"},
    {"predictions", 0, 0, false, false, "no word", "--json"},
    {"pin", 2, 2, true, true, "the beginning of a key, and SCHEDULE/CONFIG", ""},
    {"unpin", 1, 1, true, true, "the beginning of a key", ""},
    {"stats", 0, 0, false, false, "no word", "--json"},
    {"export", 1, 2, true, false, "which records, and the file to write", ""},
    {"import", 1, 1, false, true, "the file to read", "--json --dry-run"},
    {"merge", 1, 1, false, true, "the tuning cache to read", "--json --dry-run"},
    {"diff", 2, 2, false, false, "two tuning caches", "--json"},
    {"prune", 0, 0, false, true, "no word", "--json --dry-run --size --older"},
};

const Command* FindCommand(absl::string_view name) {
  const auto* found =
      absl::c_find_if(kCommands, [&](const Command& command) { return command.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

absl::StatusOr<const Command*> CommandOf(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  if (const Command* found = words.empty() ? nullptr : FindCommand(words[0]); found != nullptr)
    return found;
  return absl::InvalidArgumentError(absl::StrCat(
      "want one of ", absl::StrJoin(names, ", "),
      words.empty() ? "" : absl::StrCat(", have ", words[0], DidYouMean(words[0], names)),
      "; see --help"));
}

/// "90d", "12h", "2w": seconds.
absl::StatusOr<int64_t> ParseAge(absl::string_view text) {
  constexpr int64_t kHour = 3600, kMostHours = int64_t{24} * 365 * 1000;
  const char unit = text.empty() ? '\0' : text.back();
  const int64_t hours = unit == 'h' ? 1 : unit == 'd' ? 24 : unit == 'w' ? 7 * 24 : 0;
  int64_t count = 0;
  if (hours == 0 || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &count) || count < 0 ||
      count > kMostHours / hours) {
    return absl::InvalidArgumentError(
        absl::StrCat("--older=", text, ": want a number of hours, days or weeks, as 90d"));
  }
  return count * hours * kHour;
}

/// Whether `arg` is one of the flags of `cache`; the flag's name goes to `given`.
absl::StatusOr<bool> TakeFlag(const std::string& arg, CacheFlags& flags,
                              std::vector<std::string>& given) {
  absl::string_view rest = arg;
  const auto named = [&](absl::string_view name) {
    given.emplace_back(name);
    return true;
  };
  if (arg == "--help" || arg == "-h") return flags.help = true;
  if (arg == "--json") return flags.json = named("--json");
  if (arg == "--lift") return flags.lift = named("--lift");
  if (arg == "--dry-run") return flags.dry_run = named("--dry-run");
  if (absl::ConsumePrefix(&rest, "--size=")) {
    const absl::StatusOr<int64_t> size = ParseSize(rest);
    if (!size.ok() || *size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(arg, ": want a number of bytes from 0 on, as 64Mi"));
    }
    flags.size = *size;
    return named("--size");
  }
  if (absl::ConsumePrefix(&rest, "--older=")) {
    ASSIGN_OR_RETURN(flags.older_s, ParseAge(rest));
    return named("--older");
  }
  if (!absl::ConsumePrefix(&rest, "--cache=")) return false;
  flags.file = ResolvePath(rest, UserFolder());
  return true;
}

/// Puts the words behind the command's name where they belong.
void TakeWords(const Command& command, std::vector<std::string> words, CacheFlags& flags) {
  const bool which =
      command.which && !words.empty() && (command.name != "export" || words.size() == 2);
  if (which) {
    flags.which = words[0];
    words.erase(words.begin());
  }
  flags.words = std::move(words);
}

}  // namespace

bool CacheFlags::Writes() const {
  const Command* const found = FindCommand(command);
  return lift || (found != nullptr && found->writes && !dry_run) || Creates();
}

absl::string_view CacheHelp() { return kHelp; }

absl::StatusOr<CacheFlags> ParseCacheFlags(const std::vector<std::string>& args) {
  CacheFlags flags;
  std::vector<std::string> words, given;
  for (const std::string& arg : args) {
    ASSIGN_OR_RETURN(const bool taken, TakeFlag(arg, flags, given));
    if (taken) continue;
    if (absl::StartsWith(arg, "-") && !words.empty() && words[0] == "why") {
      flags.sweep.push_back(arg);
    } else if (absl::StartsWith(arg, "-")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", arg,
                       DidYouMean(arg, {"--help", "--json", "--lift", "--cache=FILE", "--dry-run",
                                        "--size=BYTES", "--older=90d"}),
                       "; see --help"));
    } else {
      words.push_back(arg);
    }
  }
  if (flags.help) return flags;
  ASSIGN_OR_RETURN(const Command* command, CommandOf(words));
  flags.command = words[0];
  words.erase(words.begin());
  if (words.size() < command->least || words.size() > command->most) {
    if (command->most == 1 && words.size() > 1 && command->which)
      return absl::InvalidArgumentError(absl::StrCat("want one key, have ", words.size()));
    return absl::InvalidArgumentError(
        absl::StrCat(flags.command, ": want ", command->wanted, "; see --help"));
  }
  for (const std::string& flag : given) {
    if (absl::StrContains(absl::StrCat(command->flags, " "), absl::StrCat(flag, " "))) continue;
    // `cache` has ignored it there, which users rely on.
    if (flag == "--json") continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is not for ", flags.command, "; see --help"));
  }
  TakeWords(*command, std::move(words), flags);
  return flags;
}

CacheLayers LayersOfCommand(const CacheFlags& flags) {
  Env env = GetEnv();
  env.cache_mode = CacheMode::kReadWrite;
  return LayersOf(env, flags.file);
}

int Complain(absl::string_view what) {
  std::fprintf(stderr, "coconet cache: %s\n", std::string(what).c_str());
  return kBadInput;
}

}  // namespace coconet
