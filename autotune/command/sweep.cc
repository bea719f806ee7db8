#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/command/commands.h"
#include "autotune/command/console/terminal.h"
#include "autotune/command/paths.h"
#include "autotune/command/sizes.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/sweep_plan.h"
#include "autotune/command/sweep_program.h"
#include "autotune/command/sweep_ranges.h"
#include "autotune/command/sweep_report.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {
namespace {

constexpr int kOurFault = 1, kBadInput = 2, kInterrupted = 130;
constexpr int kShownSteps = 20;  // of the winner, run once more after a hit

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

int ExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
      return kOurFault;
    default:
      return kBadInput;  // the other codes are for mistakes of the user
  }
}

/// "coconet sweep", which messages begin with.
const char* NameOf(SweepCommand command) {
  return command == SweepCommand::kSweep ? "coconet sweep" : "coconet plan";
}

void Complain(const absl::Status& status, SweepCommand command = SweepCommand::kSweep) {
  const std::string line = absl::StrReplaceAll(status.message(), {{"\n", "; "}});
  std::fprintf(stderr, "%s: %s\n", NameOf(command), line.c_str());
}

std::string Title(const SweepFlags& flags, const Session& session) {
  const std::string name =
      flags.is_file ? std::filesystem::path(flags.program).filename().string() : flags.program;
  return absl::StrCat(
      name, " ", flags.ranges.empty() ? SizesText(flags.shown_sizes()) : RangesText(flags.ranges),
      flags.is_file ? "" : absl::StrCat(" ", Name(flags.dtype)), ", ", session.world(),
      session.world() == 1 ? " rank"
      : UnderMpi()         ? " ranks (processes)"
                           : " ranks (threads)",
      flags.backend == Backend::kCuda   ? " on GPUs"
      : flags.backend == Backend::kSimt ? " on simulated GPUs"
                                        : "",
      session.stages() > 1 ? absl::StrCat(", ", session.stages(), " stages") : "",
      session.nodes() > 1
          ? absl::StrCat(", ", session.nodes(), session.stages() > 1 ? " nodes a stage" : " nodes")
          : "",
      flags.sum_order == SumOrder::kRank ? ", sums in rank order" : "",
      flags.sum_rounding == SumRounding::kEach ? ", each addition may round" : "",
      flags.nans == Nans::kNone ? ", no NaNs" : "");
}

/// Median time of a step of the tuned program on zeros, in microseconds.
absl::StatusOr<double> TimeSteps(const TunedProgram& tuned) {
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  for (const Node& node : tuned.program().nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    if (input == nullptr || !input->type.shape.empty()) continue;
    ASSIGN_OR_RETURN(const ScalarRef scalar, bound.Scalar(input->name));
    RETURN_IF_ERROR(bound.Set(scalar, 1));
  }
  const double known_us = tuned.record().best.timing.median_us;
  const int batch =
      known_us > 0 ? static_cast<int>(std::clamp(1000 / std::max(known_us, 1e-3), 1.0, 1e5)) : 1;
  std::vector<double> us;
  for (int i = 0; i <= kShownSteps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < batch; ++k) RETURN_IF_ERROR(bound.Run());
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    if (i > 0) us.push_back(elapsed.count() / batch);  // the first one warms up
  }
  return Median(std::move(us));
}

void PrintOutcome(const SweepFlags& flags, const Session& session, const TunedProgram& tuned) {
  const TuningRecord& record = tuned.record();
  std::vector<VariantResult> shown = tuned.variants();
  if (shown.empty()) {
    shown = {record.best};
    if (!(record.best == record.baseline)) shown.push_back(record.baseline);
  }
  if (tuned.from_cache() && record.best.timing.samples == 0) {
    std::printf(
        "%s\n\nbest: %s, of a tuned range of sizes\nmemory: %s a rank\n"
        "cache hit; %d kernel files compiled\n",
        Title(flags, session).c_str(), Words(record.best).c_str(), Text(tuned.memory()).c_str(),
        static_cast<int>(CompilerRuns()));
    return;
  }
  std::printf("%s\n\n%s\n", Title(flags, session).c_str(),
              (flags.all ? VariantTable : ScheduleTable)(record, shown, session.library(),
                                                         ColumnsOf(stdout))
                  .c_str());
  std::printf("best: %s%s\n", BestText(record).c_str(),
              absl::StrCat("\n", SearchText(record)).c_str());
  const auto left_out = absl::c_count_if(
      shown, [](const VariantResult& v) { return v.verdict == Verdict::kTooLarge; });
  std::printf("memory: %s a rank%s\n", Text(tuned.memory()).c_str(),
              left_out == 0 ? "" : absl::StrCat("; ", left_out, " variants need too much").c_str());
  if (!tuned.from_cache() && !record.trust.empty())
    std::printf("verified: %s\n",
                absl::StrReplaceAll(record.trust[0].checks, {{"; ", ";\n          "}}).c_str());
  if (!tuned.from_cache()) std::printf("seconds: %s\n", Text(tuned.seconds()).c_str());
  const auto wrong = absl::c_count_if(
      shown, [](const VariantResult& v) { return v.verdict == Verdict::kWrongAnswer; });
  if (wrong > 0)
    std::printf(
        "%d variants gave a wrong answer and were rejected: a bug of ours, please report it\n",
        static_cast<int>(wrong));
  const std::string file = session.cache_file();
  const std::string key = record.key.substr(0, 12);
  if (tuned.from_cache()) {
    std::printf(
        "cache hit: tuned %s, %d variants then; record %s in %s; %d kernel files compiled\n",
        AgeText(absl::ToUnixSeconds(absl::Now()) - record.created_s).c_str(), record.variants,
        key.c_str(), file.empty() ? "the cache" : file.c_str(), static_cast<int>(CompilerRuns()));
  } else if (file.empty()) {
    std::printf("not stored; %d kernel files compiled\n", static_cast<int>(CompilerRuns()));
  } else {
    std::printf("stored as %s in %s; %d kernel files compiled\n", key.c_str(), file.c_str(),
                static_cast<int>(CompilerRuns()));
  }
}

absl::Status WriteText(const std::string& json, const std::string& text) {
  if (json.empty()) return absl::OkStatus();
  std::ofstream out(json);
  out << text;
  out.close();
  return out ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat("--json: cannot write ", json));
}

absl::Status WriteJson(const SweepFlags& flags, const Session& session, const TunedProgram& tuned) {
  return WriteText(flags.json,
                   VariantJson(tuned.record(), tuned.variants(),
                               absl::StrCat(flags.program, " ", SizesText(flags.shown_sizes())),
                               session.world(), tuned.from_cache(), tuned.seconds()));
}

absl::Status Sweep(const SweepFlags& flags, const absl::StatusOr<Graph>& program,
                   ProgressLine& progress, Session& session) {
  const bool first = session.rank() == 0;
  // All ranks call Compile, which tells each of what is wrong on one.
  const absl::Status writable = first ? CheckWritable("--json", flags.json) : absl::OkStatus();
  absl::StatusOr<TunedProgram> tuned =
      session.Compile(writable.ok() ? program : writable, flags.sizes);
  if (first) progress.Clear();
  RETURN_IF_ERROR(tuned.status());
  absl::Status json;
  if (first) {
    PrintOutcome(flags, session, *tuned);
    json = WriteJson(flags, session, *tuned);
  }
  if (tuned->from_cache()) {
    ASSIGN_OR_RETURN(const double us, TimeSteps(*tuned));
    const Timing& then = tuned->record().best.timing;
    if (first)
      std::printf("ran it: %s a step now%s\n", TimeText(us).c_str(),
                  then.samples == 0
                      ? ""
                      : absl::StrCat(", ", TimeText(then.median_us), " when tuned").c_str());
  }
  return json;
}

/// Tunes the program for ranges of sizes.
absl::Status SweepRanges(const SweepFlags& flags, const absl::StatusOr<Graph>& program,
                         ProgressLine& progress, Session& session) {
  const bool first = session.rank() == 0;
  const absl::Time start = absl::Now();
  const absl::Status writable = first ? CheckWritable("--json", flags.json) : absl::OkStatus();
  const absl::StatusOr<TunedSizes> tuned =
      session.CompileRange(writable.ok() ? program : writable, flags.ranges);
  if (first) progress.Clear();
  RETURN_IF_ERROR(tuned.status());
  if (!first) return absl::OkStatus();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  std::printf("%s\n\n%s\n", Title(flags, session).c_str(),
              BucketTable(tuned->buckets(), tuned->main_symbol(), ColumnsOf(stdout)).c_str());
  const std::string file = session.cache_file();
  if (tuned->from_cache())
    std::printf("from %s", file.empty() ? "the cache" : file.c_str());
  else
    std::printf("%d sizes tuned in %.1f s, %s", static_cast<int>(tuned->points().size()), seconds,
                file.empty() ? "not stored" : absl::StrCat("stored in ", file).c_str());
  std::printf("; %d kernel files compiled\n", static_cast<int>(CompilerRuns()));
  return WriteText(flags.json,
                   BucketJson(*tuned, absl::StrCat(flags.program, " ", RangesText(flags.ranges)),
                              session.world(), seconds));
}

/// Calls `print` on one rank only.
void OnFirstRank(const std::function<void()>& print) {
  if (!UnderMpi()) return print();
  const absl::Status ran = RunWorld({}, [&](Rank& rank) {
    if (rank.rank() == 0) print();
    return absl::OkStatus();
  });
  if (!ran.ok()) print();
}

int Fail(const absl::Status& status, SweepCommand command) {
  OnFirstRank([&] { Complain(status, command); });
  return ExitCode(status);
}

/// Prints a plan of the program, on one process.
int PlanOnly(const SweepFlags& flags, const Graph& program, ProgressLine& progress,
             SweepCommand command) {
  absl::Status status;
  OnFirstRank([&] {
    const absl::StatusOr<std::string> text = PlanText(
        flags, program, [&](absl::string_view line) { progress.Show(line); },
        [] { return interrupted.load(); });
    progress.Clear();
    status = text.status();
    if (status.ok())
      std::fputs(text->c_str(), stdout);
    else
      Complain(status, command);
  });
  return ExitCode(status);
}

void PrintListed(absl::string_view name, absl::string_view description,
                 const std::vector<SizePreset>& presets) {
  std::vector<std::string> names;
  for (const SizePreset& preset : presets) names.push_back(preset.name);
  std::printf("%-10s %s\n%-10s   presets: %s\n", std::string(name).c_str(),
              std::string(description).c_str(), "", absl::StrJoin(names, " ").c_str());
}

void PrintHelpAndLists(const SweepFlags& flags, SweepCommand command) {
  if (flags.help) std::fputs(SweepHelp(command).c_str(), stdout);
  if (!flags.list) return;
  for (const WorkloadInfo& w : Workloads()) PrintListed(w.name, w.description, w.presets);
  for (const TrainingStepInfo& s : TrainingSteps()) PrintListed(s.name, s.description, s.presets);
}

void TakeSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // a second one ends the process
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);  // what mpirun makes of a Ctrl-C
}

SessionOptions OptionsOf(const SweepFlags& flags, ProgressLine& progress) {
  SessionOptions options;
  options.cache_file = flags.cache;
  options.sum_order = flags.sum_order;
  options.sum_rounding = flags.sum_rounding;
  options.nans = flags.nans;
  options.budget_s = flags.budget_s;
  options.retune = flags.retune;
  options.policy = Policy::kImprove;
  options.job_steps = flags.job_steps;
  options.search = flags.search;
  options.memory_limit = flags.memory_limit;
  options.choice = flags.choice;
  if (!flags.only.empty()) {
    options.admits = [only = flags.only](const Schedule& schedule, const Config&) {
      return absl::c_any_of(only, [&](const std::string& words) {
        return absl::StrContains(Describe(schedule), words);
      });
    };
  }
  options.progress = [&progress](absl::string_view text) { progress.Show(text); };
  options.interrupted = [] { return interrupted.load(); };
  options.warn = [&progress](absl::string_view text) {
    progress.Clear();
    std::fprintf(stderr, "%s: warning: %s\n", NameOf(SweepCommand::kSweep),
                 std::string(text).c_str());
  };
  return options;
}

int Run(const std::vector<std::string>& args, SweepCommand command) {
  absl::StatusOr<SweepFlags> flags = ParseSweepFlags(args, UserFolder(), command);
  if (!flags.ok()) return Fail(flags.status(), command);
  if (flags->help || flags->list) {
    OnFirstRank([&] { PrintHelpAndLists(*flags, command); });
    return 0;
  }
  TakeSignals();
  const absl::StatusOr<Graph> program = LoadSweepProgram(*flags);
  if (!program.ok()) return Fail(program.status(), command);

  ProgressLine progress(stderr, ColumnsOf(stderr));
  if (flags->plan_only) return PlanOnly(*flags, *program, progress, command);
  std::atomic<bool> began = false, complained = false;
  const int ranks = flags->ranks > 0 ? flags->ranks : UnderMpi() ? 0 : kDefaultRanks;
  const absl::Status status = RunRanks(
      WorldOptions{.ranks = ranks,
                   .stages = flags->stages,
                   .nodes = flags->nodes,
                   .backend = flags->backend},
      [&](Session& session) {
        began = true;
        if (flags->ranks > 0 && flags->ranks != session.world()) {
          return absl::InvalidArgumentError(absl::StrCat(
              "--ranks=", flags->ranks, ": mpirun started ", session.world(), " processes"));
        }
        const absl::Status swept =
            (flags->ranges.empty() ? Sweep : SweepRanges)(*flags, program, progress, session);
        if (!swept.ok() && session.rank() == 0 && !complained.exchange(true)) Complain(swept);
        return swept;
      },
      OptionsOf(*flags, progress));
  // Where the world could not be made, all processes have the same error.
  if (!status.ok() && !complained && !(UnderMpi() && began)) OnFirstRank([&] { Complain(status); });
  if (interrupted) return kInterrupted;
  return ExitCode(status);
}

}  // namespace

int RunSweep(const std::vector<std::string>& args) { return Run(args, SweepCommand::kSweep); }
int RunPlan(const std::vector<std::string>& args) { return Run(args, SweepCommand::kPlan); }

}  // namespace coconet
