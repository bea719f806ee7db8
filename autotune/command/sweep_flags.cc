#include "autotune/command/sweep_flags.h"

#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "autotune/command/paths.h"
#include "autotune/command/sizes.h"
#include "autotune/cost/nominal_cost_model.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kMostRanks = 1024;

/// Which commands heed a flag.
enum class HeededBy : uint8_t { kAll, kRuns, kPlans };  // --plan-only: kPlans

/// --NAME=VALUE.
struct GivenFlag {
  SweepFlags& flags;
  absl::string_view name, value, want;
  const std::string& folder;
};

struct FlagRow {
  absl::string_view name;
  HeededBy by;
  absl::Status (*set)(const GivenFlag& f);
  absl::string_view want;  // what it takes; empty: no value
  Takes takes;
  absl::string_view shown, does;  // FlagHelp
};

/// `known`: the words that the flag takes, if it takes words.
absl::Status Bad(const GivenFlag& f, absl::string_view want,
                 const std::vector<std::string>& known = {}) {
  return absl::InvalidArgumentError(absl::StrCat("--", f.name, ": want ", want, ", have '", f.value,
                                                 "'", DidYouMean(f.value, known)));
}

template <bool SweepFlags::* kMember>
absl::Status On(const GivenFlag& f) {
  f.flags.*kMember = true;
  return absl::OkStatus();
}

template <int SweepFlags::* kMember>
absl::Status Count(const GivenFlag& f) {
  int& count = f.flags.*kMember;
  if (absl::SimpleAtoi(f.value, &count) && count >= 1 && count <= kMostRanks)
    return absl::OkStatus();
  return Bad(f, absl::StrCat("1 to ", kMostRanks));
}

/// The words of `want`, "host, cuda or simt", are the enumerators' in order.
template <auto kMember>
absl::Status Word(const GivenFlag& f) {
  const std::vector<std::string> words = WordsOf(f.want);
  const auto word = absl::c_find(words, f.value);
  if (word == words.end()) return Bad(f, f.want, words);
  auto& member = f.flags.*kMember;
  member = static_cast<std::decay_t<decltype(member)>>(word - words.begin());
  return absl::OkStatus();
}

absl::Status SetText(const GivenFlag& f, std::string& text) {
  if (f.value.empty()) return Bad(f, f.want);
  text = std::string(f.value);
  return absl::OkStatus();
}

template <std::string SweepFlags::* kMember>
absl::Status File(const GivenFlag& f) {
  std::string& file = f.flags.*kMember;
  RETURN_IF_ERROR(SetText(f, file));
  if (file != ":none:") file = ResolvePath(file, f.folder);
  return absl::OkStatus();
}

template <std::string Choice::* kMember>
absl::Status Chosen(const GivenFlag& f) {
  return SetText(f, f.flags.choice.*kMember);
}

absl::Status SetOnly(const GivenFlag& f) { return SetText(f, f.flags.only.emplace_back()); }

template <double SweepFlags::* kMember, bool kMayBeZero>
absl::Status Amount(const GivenFlag& f) {
  double& amount = f.flags.*kMember;
  const bool is_read = absl::SimpleAtod(f.value, &amount) && std::isfinite(amount);
  return is_read && (amount > 0 || (kMayBeZero && amount == 0)) ? absl::OkStatus() : Bad(f, f.want);
}

absl::Status SetMemory(const GivenFlag& f) {
  const absl::StatusOr<int64_t> bytes = ParseSize(f.value);
  if (!bytes.ok() || *bytes < 1 || *bytes > kMostMemory)
    return Bad(f, absl::StrCat("1 to ", kMostMemory, " bytes, as in 512Mi"));
  f.flags.memory_limit = *bytes;
  return absl::OkStatus();
}

absl::Status SetDType(const GivenFlag& f) {
  const std::optional<DType> dtype = ParseDType(f.value);
  if (!dtype.has_value()) return Bad(f, f.want, WordsOf(f.want));
  f.flags.dtype = *dtype;
  return absl::OkStatus();
}

absl::Status SetPreset(const GivenFlag& f) {
  f.flags.preset = std::string(f.value);
  return absl::OkStatus();
}

absl::Status SetDevice(const GivenFlag& f) {
  RETURN_IF_ERROR(WithContext(NominalRatesOf(f.value).status(), "--device"));
  f.flags.device = std::string(f.value);
  return absl::OkStatus();
}

absl::Status SetSize(const GivenFlag& f) {
  if (IsSizeRange(f.value)) {
    const absl::StatusOr<SizeRange> range = ParseSizeRange(f.value);
    if (!range.ok()) return Bad(f, range.status().message());
    f.flags.sizes.erase(std::string(f.name));
    f.flags.ranges.insert_or_assign(std::string(f.name), *range);
    return absl::OkStatus();
  }
  const absl::StatusOr<BoundSize> size = ParseSizes(f.value, f.folder);
  if (!size.ok()) {
    if (absl::IsNotFound(size.status()))
      return absl::InvalidArgumentError(absl::StrCat("--", f.name, ": ", size.status().message()));
    // Misspelt flags are read as symbols, too.
    const std::string hint = f.name == "N" ? "" : DidYouMean(f.name, SweepFlagNames());
    if (hint.empty()) return Bad(f, size.status().message());
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag --", f.name, hint, "; see --help"));
  }
  f.flags.ranges.erase(std::string(f.name));
  f.flags.sizes.insert_or_assign(std::string(f.name), *size);
  return absl::OkStatus();
}

constexpr auto kAll = HeededBy::kAll, kRuns = HeededBy::kRuns, kPlans = HeededBy::kPlans;
/// In the order of the help.
constexpr FlagRow kFlags[] = {
    {"N", kAll, SetSize, "a size", Takes::kSizes, "N=SIZE",
     "and so on for every symbol of the program (N: 1Mi); Ki Mi Gi are powers of 1024, k M G of "
     "1000. A list, --N=1024,3x5: the program runs on that many tensors; --N=@bert-large, "
     "--N=@gpt2: those of the model; --N=@FILE: one per line. A range, --N=1Ki..64Mi: the program "
     "is tuned for all of its sizes. --layers=12 and so on for the sizes "
     "that shape a training step (mlp_step, gpt_step, local_sgd)"},
    {"preset", kAll, SetPreset, "a name", Takes::kPreset, "preset=NAME",
     "sizes of a workload that are not given; --list names them"},
    {"ranks", kAll, Count<&SweepFlags::ranks>, "a number", Takes::kText, "ranks=2",
     "thread ranks of this process; under mpirun every process is a rank"},
    {"stages", kAll, Count<&SweepFlags::stages>, "a number", Takes::kText, "stages=1",
     "pipeline stages, of ranks/stages ranks each: a program runs on each, and send passes values "
     "to the next"},
    {"nodes", kRuns, Count<&SweepFlags::nodes>, "a number", Takes::kText, "nodes=1",
     "nodes: ranks of different ones share no memory; real ones under mpirun, else simulated"},
    {"backend", kRuns, Word<&SweepFlags::backend>, "host, cuda or simt", Takes::kWords,
     "backend=host",
     "host: on cores; cuda: on NVIDIA GPUs, which ranks take in turns, so that several may share "
     "one; simt: on GPUs that are simulated thread for thread, to find mistakes of kernels: small "
     "sizes, and times that say nothing, so that all variants are verified as far as the budget "
     "goes"},
    {"dtype", kAll, SetDType, "f32, f16 or bf16", Takes::kWords, "dtype=f32",
     "of workloads: f32, or f16 or bf16 for mixed precision"},
    {"order", kRuns, Word<&SweepFlags::sum_order>, "any or rank", Takes::kWords, "order=any",
     "of sums over ranks: any, or rank (0, 1, 2, ...), which excludes library collectives"},
    {"sum-rounding", kRuns, Word<&SweepFlags::sum_rounding>, "once or each", Takes::kWords,
     "sum-rounding=once",
     "of sums of f16 and bf16 over ranks: once, at the end, or each addition, as NCCL rounds, "
     "which is then used for more than two ranks, too"},
    {"nans", kRuns, Word<&SweepFlags::nans>, "possible or none", Takes::kWords, "nans=possible",
     "none: no operand of a minimum or maximum over ranks is NaN, so that NCCL is used for those "
     "of floats"},
    {"budget", kAll, Amount<&SweepFlags::budget_s, true>, "seconds", Takes::kText, "budget=60",
     "the most seconds"},
    {"job-steps", kRuns, Amount<&SweepFlags::job_steps, true>, "a number", Takes::kText,
     "job-steps=100000",
     "the steps of a job: tuning ends where it has taken longer than it may save in so many; 0: it "
     "goes on however little it may save"},
    {"only", kRuns, SetOnly, "words of a schedule, as the table shows them", Takes::kText,
     "only=WORDS",
     "only schedules with these words, as the table shows them: --only=\"fuse(RS\"; may be given "
     "several times; what wins among some is not kept"},
    {"schedule", kRuns, Chosen<&Choice::schedule>, "a text, or * for all", Takes::kText,
     "schedule=TEXT",
     "only this schedule, by its words or its trace (cache show prints it), whether or not a "
     "search would try it; what wins is not kept"},
    {"config", kRuns, Chosen<&Choice::config>, "a text, or * for all", Takes::kText, "config=TEXT",
     "only this config, or those with these numbers (\"vec=4 threads=512\"), of which the others "
     "are the plainest; what wins is not kept"},
    {"cache", kRuns, File<&SweepFlags::cache>, "a file", Takes::kFile, "cache=FILE",
     "the tuning cache; :none: keeps nothing (COCONET_CACHE_DIR/tuning.db, else "
     "XDG_CACHE_HOME/coconet/tuning.db)"},
    {"memory", kRuns, SetMemory, "a size", Takes::kText, "memory=SIZE",
     "the most bytes of the program on a rank: what needs more is not tried; where all does, "
     "values are computed again instead of kept, or it is refused"},
    {"search", kRuns, Word<&SweepFlags::search>, "auto, exhaustive, racing, model or evolution",
     Takes::kWords, "search=auto",
     "how to go through the variants: exhaustive (all, each timed to the end), racing (all; drops "
     "what is slower), model (what a model of the times promises, and random ones), evolution "
     "(mixtures of the fastest, and random ones)"},
    {"retune", kRuns, On<&SweepFlags::retune>, "", Takes::kNothing, "retune",
     "tunes again what the cache has"},
    {"plan-only", kAll, On<&SweepFlags::plan_only>, "", Takes::kNothing, "plan-only",
     "the command plan: runs nothing, plans kernels, calls and their order on a simulator"},
    {"device", kPlans, SetDevice, "a device", Takes::kWords, "device=h100",
     "the device of a plan: v100, a100, h100 or b200, by its data sheet"},
    {"link", kPlans, Amount<&SweepFlags::link_gbits, false>, "Gbit/s", Takes::kText, "link=100",
     "Gbit/s that a rank of a plan sends"},
    {"trace", kPlans, File<&SweepFlags::trace>, "a file", Takes::kFile, "trace=FILE",
     "the timeline of a plan, for chrome://tracing and Perfetto"},
    {"report", kPlans, File<&SweepFlags::report>, "a file", Takes::kFile, "report=FILE",
     "the timeline of a plan with names of layers, as a page for browsers"},
    {"all", kRuns, On<&SweepFlags::all>, "", Takes::kNothing, "all",
     "a line for every variant; without it, the fastest of each schedule"},
    {"json", kRuns, File<&SweepFlags::json>, "a file", Takes::kFile, "json=FILE",
     "all variants, for other programs"},
    {"list", kAll, On<&SweepFlags::list>, "", Takes::kNothing, "list", "the workloads"},
    {"help", kAll, On<&SweepFlags::help>, "", Takes::kNothing, "help", "this text"},
};

/// Whether the help of a command shows the flag. That of `sweep` leaves those of plans to `plan`.
bool IsShown(const FlagRow& row, SweepCommand command) {
  if (row.by == kAll) return command == SweepCommand::kSweep || row.name != "plan-only";
  return row.by == (command == SweepCommand::kSweep ? kRuns : kPlans);
}

/// Null: it is no flag.
const FlagRow* FindFlag(absl::string_view name) {
  const auto* row = absl::c_find_if(kFlags, [&](const FlagRow& of) { return of.name == name; });
  return row == std::end(kFlags) ? nullptr : row;
}

/// InvalidArgument for flags that would not be heeded, of those that are given.
absl::Status CheckHeeded(const std::vector<std::string>& given, bool plan_only,
                         SweepCommand command) {
  for (const std::string& name : given) {
    const FlagRow* row = FindFlag(name);
    if (row != nullptr && !plan_only && row->by == kPlans)
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, ": want --plan-only, too, or the command plan, which alone heeds it"));
    if (row != nullptr && plan_only && row->by == kRuns)
      return absl::InvalidArgumentError(
          absl::StrCat("--", name,
                       command == SweepCommand::kPlan
                           ? ": a plan runs nothing and does not heed it; leave it out"
                           : ": --plan-only does not heed it; leave one of the two out"));
  }
  return absl::OkStatus();
}

/// InvalidArgument for flags that do not go with a range of sizes.
absl::Status CheckOfRanges(const SweepFlags& flags) {
  const std::string& symbol = flags.ranges.begin()->first;
  if (flags.plan_only)
    return absl::InvalidArgumentError(
        absl::StrCat("--", symbol, ": want one size: a plan is of one"));
  if (flags.all)
    return absl::InvalidArgumentError(
        absl::StrCat("--all: want one size, have a range of --", symbol));
  if (!flags.choice.empty() || !flags.only.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--only, --schedule, --config: want one size, have a range of --", symbol));
  return absl::OkStatus();
}

absl::Status SetProgram(SweepFlags& flags, absl::string_view name, const std::string& folder) {
  if (!flags.program.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want one workload or file, have '", flags.program, "' and '", name, "'"));
  }
  flags.is_file = absl::StrContains(name, ".") || absl::StrContains(name, "/");
  flags.program = flags.is_file ? ResolvePath(name, folder) : std::string(name);
  return absl::OkStatus();
}

}  // namespace

std::vector<FlagHelp> SweepFlagHelp(SweepCommand command) {
  std::vector<FlagHelp> flags;
  for (const FlagRow& row : kFlags) {
    if (!IsShown(row, command)) continue;
    FlagHelp& flag = flags.emplace_back(FlagHelp{row.name, row.takes, row.shown, row.does});
    if (row.takes == Takes::kWords)
      flag.words = row.set == SetDevice ? NominalDevices() : WordsOf(row.want);
  }
  return flags;
}

std::string SweepHelp(SweepCommand command) {
  const std::string flags = FlagsText(SweepFlagHelp(command));
  if (command == SweepCommand::kPlan) {
    return absl::StrCat(
        R"(coconet plan: plans kernels, calls and their order on a simulator, and runs nothing

For as many ranks as wanted, also of programs that cannot run here.

  coconet plan WORKLOAD|FILE.coco|FILE.hlo [--N=16Mi] [flags]

)",
        flags, R"(
Exit code: 0; 1 a failure of ours; 2 bad input; 130 interrupted.
)");
  }
  return absl::StrCat(
      R"(coconet sweep: times every variant of a program on this machine, and keeps the fastest

  coconet sweep WORKLOAD|FILE.coco|FILE.hlo [--N=16Mi] [flags]

)",
      flags, R"(
Exit code: 0; 1 a failure of ours; 2 bad input; 130 interrupted (what was measured is kept).
)");
}

std::vector<std::string> SweepFlagNames() {
  std::vector<std::string> names;
  for (const FlagRow& row : kFlags) names.emplace_back(row.name);
  return names;
}

bool IsSweepFlag(absl::string_view name) { return name != "N" && FindFlag(name) != nullptr; }

absl::StatusOr<SweepFlags> ParseSweepFlags(const std::vector<std::string>& args,
                                           const std::string& folder, SweepCommand command) {
  SweepFlags flags;
  flags.plan_only = command == SweepCommand::kPlan;
  std::vector<std::string> given;
  for (absl::string_view arg : args) {
    if (arg == "-h") {
      flags.help = true;
    } else if (absl::ConsumePrefix(&arg, "--")) {
      const size_t equals = arg.find('=');
      const absl::string_view name = arg.substr(0, equals);
      const FlagRow* row = FindFlag(name);
      const bool takes_none = row != nullptr && row->want.empty();
      const bool has_none = equals == absl::string_view::npos;
      if (has_none && !takes_none) {
        const std::string hint = DidYouMean(name, SweepFlagNames());
        return absl::InvalidArgumentError(
            absl::StrCat("want --", name, "=VALUE, have --", name, hint, "; see --help"));
      }
      const absl::string_view value = has_none ? "" : arg.substr(equals + 1);
      const bool is_size = row == nullptr || (takes_none && !has_none);
      RETURN_IF_ERROR((is_size ? SetSize : row->set)(
          {flags, name, value, row == nullptr ? "" : row->want, folder}));
      given.emplace_back(name);
    } else if (absl::StartsWith(arg, "-")) {
      std::vector<std::string> flags_with_dashes;
      for (const std::string& known : SweepFlagNames())
        flags_with_dashes.push_back(absl::StrCat("--", known));
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", arg, DidYouMean(arg, flags_with_dashes), "; see --help"));
    } else {
      RETURN_IF_ERROR(SetProgram(flags, arg, folder));
    }
  }
  if (flags.help || flags.list) return flags;
  if (flags.program.empty())
    return absl::InvalidArgumentError(
        "want a workload, or a .coco or .hlo file; see --list and --help");
  if (!flags.choice.empty() && !flags.only.empty())
    return absl::InvalidArgumentError("want --only, or --schedule and --config, not both");
  RETURN_IF_ERROR(CheckHeeded(given, flags.plan_only, command));
  if (!flags.ranges.empty()) RETURN_IF_ERROR(CheckOfRanges(flags));
  if (flags.is_file && absl::c_linear_search(given, "dtype"))
    return absl::InvalidArgumentError("--dtype is for workloads: a file names its own types");
  return flags;
}

}  // namespace coconet
