#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autotune/command/commands.h"
#include "autotune/command/console/completion.h"
#include "autotune/command/console/flag_help.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/version.h"
#include "coconet/base/nearest.h"
#include "coconet/workloads/model_shapes.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"

namespace coconet {
namespace {

constexpr int kBadInput = 2;

int RunCompletion(const std::vector<std::string>& args);
int RunHelp(const std::vector<std::string>& args);

struct CommandRow {
  absl::string_view name;
  int (*run)(const std::vector<std::string>& args);
  absl::string_view does;
};
constexpr CommandRow kCommands[] = {
    {"sweep", RunSweep, "times every variant of a program on this machine, and keeps the fastest"},
    {"plan", RunPlan, "plans a program for any number of GPUs by simulation, and runs nothing"},
    {"cache", RunCache, "what the tuning cache remembers, and what is done with it"},
    {"report", RunReport, "writes a page for browsers of what the tuning cache remembers"},
    {"completion", RunCompletion, "prints a script that completes this command in bash or zsh"},
    {"help", RunHelp, "this text; help COMMAND: that of a command"},
};

constexpr char kCompletionHelp[] =
    R"(coconet completion: prints a script that completes coconet in a shell

  coconet completion bash     in ~/.bashrc: source <(coconet completion bash)
  coconet completion zsh      in ~/.zshrc, behind compinit: source <(coconet completion zsh)
)";

int Complain(absl::string_view what) {
  std::fprintf(stderr, "coconet%s\n", std::string(what).c_str());
  return kBadInput;
}

std::vector<std::string> NamesOfCommands() {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) names.emplace_back(row.name);
  return names;
}

std::string HelpText() {
  std::string text =
      "coconet: tunes programs of computation and communication, and keeps what it learns\n\n";
  for (const CommandRow& row : kCommands) {
    std::string line = absl::StrCat("  coconet ", row.name);
    line.resize(24, ' ');
    absl::StrAppend(&text, line, row.does, "\n");
  }
  return absl::StrCat(text, R"(
  --help            this text
  --version         the version

Exit code: 0; 1 a failure of ours; 2 bad input; 130 interrupted.
)");
}

/// Null, after a message, for what is none.
const CommandRow* FindCommand(const std::string& name) {
  for (const CommandRow& row : kCommands) {
    if (row.name == name) return &row;
  }
  Complain(absl::StrCat(": want ", absl::StrJoin(NamesOfCommands(), ", "), "; have '", name, "'",
                        DidYouMean(name, NamesOfCommands()), "; see coconet --help"));
  return nullptr;
}

int RunHelp(const std::vector<std::string>& args) {
  if (args.size() > 1) return Complain(absl::StrCat(" help: want one command, have ", args.size()));
  const bool is_own = args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help";
  if (!is_own) {
    const CommandRow* row = FindCommand(args[0]);
    return row == nullptr ? kBadInput : row->run({"--help"});
  }
  std::fputs(HelpText().c_str(), stdout);
  return 0;
}

ProgramHelp ProgramOf(absl::string_view name, absl::string_view does,
                      const std::vector<SizePreset>& presets) {
  ProgramHelp program{name, does, {}, {}};
  std::set<std::string> sizes;
  for (const SizePreset& preset : presets) {
    program.presets.push_back(preset.name);
    for (const auto& [symbol, size] : preset.sizes) sizes.insert(symbol);
  }
  program.sizes.assign(sizes.begin(), sizes.end());
  return program;
}

/// Flags and commands of `cache` as its help names them, at the beginning of lines:
/// "  cache list [WHICH]  one line ...", "  --json  of list ...".
CommandHelp CacheCommand(CommandHelp cache) {
  cache.takes_programs = cache.takes_all = true;
  for (absl::string_view line : absl::StrSplit(CacheHelp(), '\n')) {
    if (absl::ConsumePrefix(&line, "  cache ")) {
      const std::string word(line.substr(0, line.find(' ')));
      if (!absl::StrContains(absl::StrJoin(cache.words, " "), word)) cache.words.push_back(word);
    } else if (absl::ConsumePrefix(&line, "  --")) {
      const absl::string_view shown = line.substr(0, line.find(' '));
      const bool has_value = absl::StrContains(shown, "=");
      cache.flags.push_back({shown.substr(0, shown.find('=')),
                             has_value ? Takes::kFile : Takes::kNothing, shown,
                             absl::StripLeadingAsciiWhitespace(line.substr(shown.size()))});
    }
  }
  cache.flags.push_back({"help", Takes::kNothing, "help", "what the commands do"});
  return cache;
}

CommandHelp HelpOf(const CommandRow& row) {
  CommandHelp command{row.name, row.does};
  if (row.run == RunSweep || row.run == RunPlan) {
    command.flags = SweepFlagHelp(row.run == RunSweep ? SweepCommand::kSweep : SweepCommand::kPlan);
    command.takes_programs = command.takes_files = true;
  } else if (row.run == RunCache) {
    return CacheCommand(std::move(command));
  } else if (row.run == RunReport) {
    command.flags = ReportFlagHelp();
    command.takes_programs = command.takes_all = true;
  } else if (row.run == RunCompletion) {
    command.words = {"bash", "zsh"};
  } else {
    command.words = NamesOfCommands();
  }
  return command;
}

int RunCompletion(const std::vector<std::string>& args) {
  if (args.size() == 1 && (args[0] == "--help" || args[0] == "-h")) {
    std::fputs(kCompletionHelp, stdout);
    return 0;
  }
  if (args.size() != 1 || (args[0] != "bash" && args[0] != "zsh")) {
    return Complain(absl::StrCat(" completion: want bash or zsh, have '", absl::StrJoin(args, " "),
                                 "'", DidYouMean(absl::StrJoin(args, " "), {"bash", "zsh"}),
                                 "; see --help"));
  }
  Completion completion;
  for (const CommandRow& row : kCommands) completion.commands.push_back(HelpOf(row));
  const std::vector<WorkloadInfo> workloads = Workloads();
  const std::vector<TrainingStepInfo> steps = TrainingSteps();
  for (const WorkloadInfo& w : workloads)
    completion.programs.push_back(ProgramOf(w.name, w.description, w.presets));
  for (const TrainingStepInfo& s : steps)
    completion.programs.push_back(ProgramOf(s.name, s.description, s.presets));
  for (const std::string& model : ModelNames())
    completion.size_lists.push_back(absl::StrCat("@", model));
  std::fputs(CompletionScript(args[0] == "bash" ? Shell::kBash : Shell::kZsh, completion).c_str(),
             stdout);
  return 0;
}

}  // namespace

int RunCoconet(const std::vector<std::string>& args) {
  if (args.empty()) {
    std::fputs(HelpText().c_str(), stderr);
    return kBadInput;
  }
  if (args[0] == "--version") {
    std::printf("coconet %d.%d\n", kVersionMajor, kVersionMinor);
    return 0;
  }
  if (args[0] == "--help" || args[0] == "-h") return RunHelp({});
  const CommandRow* row = FindCommand(args[0]);
  return row == nullptr ? kBadInput : row->run({args.begin() + 1, args.end()});
}

}  // namespace coconet
