#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/command/commands.h"
#include "autotune/command/paths.h"
#include "autotune/command/records.h"
#include "autotune/report/report.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/env.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kBadInput = 2;

/// The command line.
struct ReportFlags {
  std::string which;  // "": all
  std::string cache;  // "": the default file
  std::string out;    // "": report.html, or with --json standard output
  bool json = false, help = false;
};

int Complain(absl::string_view what) {
  std::fprintf(stderr, "coconet report: %s\n", std::string(what).c_str());
  return kBadInput;
}

std::string HelpText() {
  return absl::StrCat(
      R"(coconet report: writes a page for browsers of what the tuning cache remembers

  coconet report [KEY|PROGRAM|all] [flags]

)",
      FlagsText(ReportFlagHelp()), R"(
KEY: the beginning of a key, as cache list shows them. The page is one file and needs no network.

Exit code: 0; 2 bad input, or a file that cannot be read or written.
)");
}

/// The value of --NAME=FILE, resolved, if `arg` is that. InvalidArgument if it has no value.
absl::StatusOr<bool> TakeFile(absl::string_view arg, absl::string_view name, std::string& file) {
  if (!absl::ConsumePrefix(&arg, absl::StrCat("--", name)) || (!arg.empty() && arg[0] != '='))
    return false;
  if (arg.size() < 2)
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": want --", name, "=FILE; see --help"));
  file = ResolvePath(arg.substr(1), UserFolder());
  return true;
}

absl::StatusOr<ReportFlags> ParseFlags(const std::vector<std::string>& args) {
  ReportFlags flags;
  if (!GetEnv().cache_dir.empty()) flags.cache = absl::StrCat(GetEnv().cache_dir, "/tuning.db");
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      flags.help = true;
      continue;
    }
    if (arg == "--json") {
      flags.json = true;
      continue;
    }
    ASSIGN_OR_RETURN(const bool is_cache, TakeFile(arg, "cache", flags.cache));
    ASSIGN_OR_RETURN(const bool is_out, TakeFile(arg, "out", flags.out));
    if (is_cache || is_out) continue;
    if (absl::StartsWith(arg, "-")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag ", arg,
          DidYouMean(arg.substr(0, arg.find('=')), {"--help", "--json", "--cache", "--out"}),
          "; see --help"));
    }
    if (!flags.which.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("want one key or program, have '", flags.which, "' and '", arg, "'"));
    if (arg.empty()) return absl::InvalidArgumentError("want a key, a program or all, have ''");
    flags.which = arg;
  }
  if (flags.which.empty()) flags.which = "all";
  if (flags.out.empty() && !flags.json) flags.out = ResolvePath("report.html", UserFolder());
  return flags;
}

/// Writes beside the file, and renames: a reader sees the old text or the new one.
absl::Status WriteFile(const std::string& file, const std::string& text) {
  const std::string beside = absl::StrCat(file, ".part");
  std::ofstream out(beside, std::ios::binary);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, file, error);
  if (out && !error) return absl::OkStatus();
  std::filesystem::remove(beside, error);
  return absl::FailedPreconditionError(absl::StrCat("--out: cannot write ", file));
}

/// What the page shows: predictions only of all records, since they name no record.
Report ReportOf(TuningCache& cache, const ReportFlags& flags) {
  Report report{.cache = std::filesystem::path(cache.file()).filename().string(),
                .which = flags.which,
                .made_s = absl::ToUnixSeconds(absl::Now())};
  for (TuningRecord& record : RecordsOf(cache, flags.which)) {
    std::vector<VariantResult> variants = cache.Variants(record.key);
    report.records.push_back({std::move(record), std::move(variants)});
  }
  report.predictions = cache.Predictions("");
  return report;
}

}  // namespace

std::vector<FlagHelp> ReportFlagHelp() {
  return {{"out", Takes::kFile, "out=FILE", "the page (report.html)"},
          {"json", Takes::kNothing, "json",
           "the same numbers for other programs, to standard output or to --out"},
          {"cache", Takes::kFile, "cache=FILE",
           "the tuning cache (COCONET_CACHE_DIR/tuning.db, else XDG_CACHE_HOME/coconet/tuning.db)"},
          {"help", Takes::kNothing, "help", "this text"}};
}

int RunReport(const std::vector<std::string>& args) {
  const absl::StatusOr<ReportFlags> flags = ParseFlags(args);
  if (!flags.ok()) return Complain(flags.status().message());
  if (flags->help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  std::error_code error;
  if (!flags->cache.empty() && !std::filesystem::exists(flags->cache, error)) {
    return Complain(absl::StrCat("there is no ", flags->cache,
                                 "; coconet sweep makes one, --cache names another"));
  }
  bool warned = false;
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(
      flags->cache,
      [&](absl::string_view text) {
        Complain(text);
        warned = true;
      },
      TuningCache::Use::kRead);
  const Report report = ReportOf(*cache, *flags);
  if (warned) return kBadInput;
  if (report.records.empty() && flags->which != "all") {
    return Complain(absl::StrCat("no record of ", flags->which, " in ", cache->file(),
                                 "; want the beginning of a key, a program's name, or all; see "
                                 "coconet cache list"));
  }
  const std::string text = flags->json ? ReportJson(report) : ReportHtml(report);
  if (flags->out.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  const absl::Status written = WriteFile(flags->out, text);
  if (!written.ok()) return Complain(written.message());
  const size_t count = report.records.size();
  std::printf("%s: %s\n", flags->out.c_str(),
              absl::StrCat(count, count == 1 ? " record" : " records", ", ",
                           report.predictions.size(), " predictions")
                  .c_str());
  return 0;
}

}  // namespace coconet
