// Prints how long whole commands `sweep PROGRAM --budget=0` take with an empty cache: a chain of
// 10,000 operations, on 64Ki elements and on 1Mi, an imported LSTM and a training step of GPT.

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::string, case, "", "chain, chain-1Mi, lstm or gpt (default: all)");
ABSL_FLAG(std::string, sweep, "autotune/sweep", "the command");
ABSL_FLAG(std::string, hlo, "tests/hlo/rnnlm.hlo", "the HLO of the LSTM");
ABSL_FLAG(int, operations, 10'000, "of the chain");

namespace coconet::bench {
namespace {

constexpr double kLimitSeconds = 600;

/// A chain of elementwise operations with a sum over ranks in its midst.
std::string Chain(int operations) {
  constexpr const char* kSteps[] = {" * 0.999", " + 0.001", " - 0.002", " * 1.001"};
  std::string text =
      "coconet 1\nprogram chain\ninput g : f32[N] local\nstate p : f32[N] replicated\n";
  std::string last = "g";
  for (int i = 0; i < operations; ++i) {
    const std::string next = absl::StrCat("x", i);
    absl::StrAppend(&text, next, " = ",
                    i == operations / 2 ? absl::StrCat("all_reduce(sum, ", last, ")")
                                        : absl::StrCat(last, kSteps[i % 4]),
                    "\n");
    last = next;
  }
  return absl::StrCat(text, "update(p, p + ", last, ")\n");
}

absl::StatusOr<Row> Measure(const std::string& name, const std::vector<std::string>& program) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> cache, TempDir::Make());
  ProcessCommand command{.argv = {absl::GetFlag(FLAGS_sweep)},
                         .environment = {absl::StrCat("COCONET_CACHE_DIR=", cache->path())},
                         .time_limit_s = kLimitSeconds};
  command.argv.insert(command.argv.end(), program.begin(), program.end());
  command.argv.push_back("--budget=0");
  const double start_s = SecondsNow();
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  const double seconds = SecondsNow() - start_s;
  const bool is_stored = finished.how == Finished::How::kExited && finished.code == 0 &&
                         absl::StrContains(finished.output, "verified:") &&
                         absl::StrContains(finished.output, "stored as");
  if (!is_stored)
    return absl::InternalError(absl::StrCat("sweep of ", name,
                                            ": want a verified result that is stored, have after ",
                                            seconds, " s:\n", finished.output));
  Row row;
  row.Set("case", name).Set("ranks", int64_t{2}).Set("seconds", seconds);
  return row.SetBars(BarsOf("seconds <= 15"));
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string chain = absl::StrCat(folder->path(), "/chain.coco");
  std::ofstream(chain) << Chain(absl::GetFlag(FLAGS_operations));
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"chain", {chain, "--N=64Ki"}},
      {"chain-1Mi", {chain, "--N=1Mi"}},
      {"lstm", {absl::GetFlag(FLAGS_hlo)}},
      {"gpt", {"gpt_step", "--layers=4"}}};
  const std::string chosen = absl::GetFlag(FLAGS_case);
  std::vector<Row> rows;
  for (const auto& [name, program] : cases) {
    if (!chosen.empty() && chosen != name) continue;
    ASSIGN_OR_RETURN(rows.emplace_back(), Measure(name, program));
  }
  return Show(rows, ColumnsOf("case, ranks|%.0f, took|%.1f s|seconds, met"));
}

const Registered kBenchmark({.name = "budget",
                             .purpose = "measures whole commands that have no budget",
                             .heeds = {},
                             .positive = {"operations"},
                             .words = {{"case", "chain, chain-1Mi, lstm, gpt"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
