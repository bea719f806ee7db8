#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/command/console/flag_help.h"
#include "autotune/session/session.h"
#include "autotune/store/families/size_ranges.h"

namespace coconet {

/// The ranks of a job that gives no number: threads, or the ranks that a plan is for.
inline constexpr int kDefaultRanks = 2;

/// The commands that take a program.
enum class SweepCommand : uint8_t {
  kSweep,
  kPlan,  // as kSweep with --plan-only
};

/// The command line of `sweep` or `plan`.
struct SweepFlags {
  std::string program;  // a workload's name, or a file's path, resolved
  bool is_file = false;
  DType dtype = DType::kF32;  // of a workload
  Sizes sizes;                // by symbol
  /// If a symbol is given a range: the ranges of all symbols (LoadSweepProgram), and `sizes` is
  /// empty.
  SizeRanges ranges;
  Sizes built_with;    // of a training step, which has no symbols
  std::string preset;  // name of a workload's sizes; "": its first
  int ranks = 0;       // of all stages; 0: not given
  int stages = 1;
  int nodes = 0;  // of all stages; 0: those of the machine
  Backend backend = Backend::kHost;
  std::string cache;  // "": the default file
  std::string json;   // "": none
  double budget_s = 60;
  double job_steps = 1e5;
  std::vector<std::string> only;  // texts, of which a schedule's words contain one; empty: any
  Choice choice;                  // the variants to try; empty: all
  SumOrder sum_order = SumOrder::kAny;
  SumRounding sum_rounding = SumRounding::kOnce;
  Nans nans = Nans::kPossible;
  SearchKind search = SearchKind::kAuto;
  std::optional<int64_t> memory_limit;  // bytes a rank
  bool all = false;                     // shows every variant
  bool retune = false;                  // tunes what is tuned
  bool list = false, help = false;

  bool plan_only = false;       // plans and simulates; runs nothing
  std::string device = "h100";  // NominalRatesOf
  double link_gbits = 100;      // 10^9 bits per second that a rank sends
  std::string trace;            // a file for the timeline of a plan; "": none
  std::string report;           // a file for a page with the timeline of a plan; "": none
  /// What was imported from a module in HLO, one line; else empty.
  std::string imported;

  const Sizes& shown_sizes() const { return built_with.empty() ? sizes : built_with; }
};

std::string SweepHelp(SweepCommand command = SweepCommand::kSweep);
/// The flags that a command heeds, as its help shows them.
std::vector<FlagHelp> SweepFlagHelp(SweepCommand command = SweepCommand::kSweep);
/// Without the dashes; "N" is the symbol that most programs have.
std::vector<std::string> SweepFlagNames();
/// Whether --NAME is a flag, with any value, rather than the size of a program's symbol.
bool IsSweepFlag(absl::string_view name);

/// Parses `args`, without the program's name. Relative paths are relative to `folder`, the user's
/// working directory. InvalidArgument with a message of one line.
absl::StatusOr<SweepFlags> ParseSweepFlags(const std::vector<std::string>& args,
                                           const std::string& folder,
                                           SweepCommand command = SweepCommand::kSweep);

}  // namespace coconet
