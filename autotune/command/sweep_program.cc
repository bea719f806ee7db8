#include "autotune/command/sweep_program.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_devices.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultN = 1 << 20;

/// "39,000 instructions of HLO; opaque: 2 x sort".
std::string ImportedText(const ImportedHlo& imported) {
  const auto counts = [](absl::string_view what, const std::map<std::string, int64_t>& found) {
    const std::string list = absl::StrJoin(found, ", ", [](std::string* out, const auto& of) {
      absl::StrAppend(out, of.second, " x ", of.first);
    });
    return list.empty() ? "" : absl::StrCat("; ", what, ": ", list);
  };
  return absl::StrCat(
      imported.operations, " instructions of HLO", counts("opaque", imported.opaque),
      counts("in groups of ranks", imported.grouped),
      imported.elided == 0
          ? ""
          : absl::StrCat("; constants whose numbers the text ", "leaves out: ", imported.elided));
}

/// The program of a module in HLO, for as many ranks as it says, or else as a stage has.
absl::StatusOr<Graph> ImportModule(std::string text, SweepFlags& flags) {
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(std::move(text)));
  if (flags.ranks % flags.stages != 0)
    return absl::InvalidArgumentError(absl::StrCat("--stages: want stages of equally many of ",
                                                   flags.ranks, " ranks, have ", flags.stages));
  int64_t ranks = flags.ranks / flags.stages;
  ASSIGN_OR_RETURN(const HloDevices devices, DevicesOf(module, ranks));
  if (devices.ranks == 0 && (flags.plan_only || !UnderMpi())) ranks = kDefaultRanks;
  ASSIGN_OR_RETURN(ImportedHlo imported,
                   ImportHlo(module, {.ranks = ranks, .for_planning = flags.plan_only}));
  flags.imported = ImportedText(imported);
  if (!imported.is_for_any) flags.ranks = static_cast<int>(imported.partitions * flags.stages);
  return std::move(imported.program);
}

/// The names of files in the same folder, as far as they can be read.
std::vector<std::string> NamesBeside(const std::string& file) {
  constexpr size_t kMost = 1000;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(fs::path(file).parent_path(), error), end;
       !error && at != end && names.size() < kMost; at.increment(error))
    names.push_back(at->path().filename().string());
  return names;
}

/// Files of XLA's and JAX's, of which the parser of HLO says what is wrong.
bool LooksLikeHlo(absl::string_view file, absl::string_view text) {
  for (absl::string_view ending : {".hlo", ".hlo.gz", ".txt.gz", ".pb", ".pb.gz", ".mlir"}) {
    if (absl::EndsWith(file, ending)) return true;
  }
  return absl::StartsWith(text, "HloModule") || absl::StartsWith(text, "module ");
}

absl::StatusOr<Graph> ReadProgram(SweepFlags& flags) {
  const std::string& file = flags.program;
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  if (!in || fs::is_directory(file, error))
    return absl::NotFoundError(
        absl::StrCat(file, ": cannot be read",
                     DidYouMean(fs::path(file).filename().string(), NamesBeside(file))));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const bool is_hlo = LooksLikeHlo(file, text);
  absl::StatusOr<Graph> program = is_hlo ? ImportModule(std::move(text), flags) : Parse(text);
  if (!program.ok()) return WithContext(program.status(), file);
  return program;
}

std::set<std::string> SymbolsOf(const Graph& program) {
  std::set<std::string> symbols;
  for (const Node& node : program.nodes) {
    Op op = node.op;
    if (const Shape* shape = DeclaredShape(op)) {
      for (const Dim& dim : *shape) {
        for (const std::string& symbol : SymbolsOf(dim)) symbols.insert(symbol);
      }
    }
    if (const std::string* by = WeightsIn(op); by != nullptr && !by->empty()) symbols.insert(*by);
  }
  return symbols;
}

/// Sets sizes that the flags do not give to those of the preset that they name, or the first.
absl::Status AddPreset(SweepFlags& flags, const std::vector<SizePreset>& presets) {
  std::vector<std::string> known;
  for (const SizePreset& preset : presets) {
    if (flags.preset.empty() || preset.name == flags.preset) {
      for (const auto& [symbol, size] : preset.sizes) {
        if (!flags.ranges.contains(symbol)) flags.sizes.emplace(symbol, size);
      }
      return absl::OkStatus();
    }
    known.push_back(preset.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--preset: ", flags.program, " has no preset '",
                                                 flags.preset, "'", DidYouMean(flags.preset, known),
                                                 "; it has ", absl::StrJoin(known, ", ")));
}

/// The same of a workload; none of a file.
absl::Status AddPreset(SweepFlags& flags) {
  for (const WorkloadInfo& info : Workloads()) {
    if (!flags.is_file && info.name == flags.program) return AddPreset(flags, info.presets);
  }
  if (flags.preset.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--preset is for workloads: a file has no presets");
}

/// Null: the flags name no training step.
const TrainingStepInfo* TrainingStepOf(const SweepFlags& flags) {
  static const std::vector<TrainingStepInfo> steps = TrainingSteps();
  const auto at = absl::c_find_if(
      steps, [&](const TrainingStepInfo& step) { return step.name == flags.program; });
  return flags.is_file || at == steps.end() ? nullptr : &*at;
}

/// Makes ranges of the symbols that have one size.
absl::Status CompleteRanges(SweepFlags& flags) {
  for (const auto& [symbol, size] : std::exchange(flags.sizes, {})) {
    if (size.is_list)
      return absl::InvalidArgumentError(
          absl::StrCat("--", symbol,
                       ": want one size or a range where another symbol has a range, have a list"));
    flags.ranges.emplace(symbol, SizeRange{size.sizes[0], size.sizes[0]});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> LoadSweepProgram(SweepFlags& flags) {
  if (const TrainingStepInfo* step = TrainingStepOf(flags); step != nullptr) {
    if (!flags.ranges.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("--", flags.ranges.begin()->first,
                       ": want one size: sizes of a training step shape the program"));
    RETURN_IF_ERROR(AddPreset(flags, step->presets));
    ASSIGN_OR_RETURN(Graph program,
                     MakeTrainingStep(step->name, flags.sizes, {.dtype = flags.dtype}));
    flags.built_with = std::exchange(flags.sizes, {});
    return program;
  }
  const absl::StatusOr<Graph> program =
      flags.is_file ? ReadProgram(flags) : MakeWorkload(flags.program, {.dtype = flags.dtype});
  if (!flags.is_file && absl::IsNotFound(program.status())) {
    std::vector<std::string> steps;
    for (const TrainingStepInfo& step : TrainingSteps()) steps.emplace_back(step.name);
    return absl::NotFoundError(absl::StrCat(program.status().message(), ", ",
                                            absl::StrJoin(steps, ", "),
                                            DidYouMean(flags.program, steps)));
  }
  RETURN_IF_ERROR(program.status());
  const std::set<std::string> symbols = SymbolsOf(*program);
  std::set<std::string> given;
  for (const auto& [symbol, size] : flags.sizes) given.insert(symbol);
  for (const auto& [symbol, range] : flags.ranges) given.insert(symbol);
  for (const std::string& symbol : given) {
    if (symbols.count(symbol) != 0) continue;
    std::vector<std::string> known = SweepFlagNames();
    known.insert(known.end(), symbols.begin(), symbols.end());
    return absl::InvalidArgumentError(absl::StrCat(
        "--", symbol, ": no flag, and no symbol of the program", DidYouMean(symbol, known),
        "; its symbols are ", symbols.empty() ? "none" : absl::StrJoin(symbols, ", ")));
  }
  RETURN_IF_ERROR(AddPreset(flags));
  if (symbols.count("N") != 0 && !flags.ranges.contains("N")) flags.sizes.emplace("N", kDefaultN);
  for (const std::string& symbol : symbols) {
    if (flags.sizes.count(symbol) != 0 || flags.ranges.contains(symbol)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("want --", symbol, "=SIZE: a symbol of the program without a value"));
  }
  if (!flags.ranges.empty()) RETURN_IF_ERROR(CompleteRanges(flags));
  return program;
}

}  // namespace coconet
