#include "autotune/command/sweep_flags.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autotune/cost/nominal_cost_model.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_devices.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/text.h"
#include "coconet/workloads/model_shapes.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 1024;
constexpr int64_t kDefaultN = 1 << 20;
constexpr size_t kShownSizes = 6;

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
};

std::vector<std::string> KnownFlags();

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
  const std::vector<std::string> words =
      absl::StrSplit(absl::StrReplaceAll(f.want, {{" or ", ", "}}), ", ");
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
  if (!dtype.has_value()) return Bad(f, f.want, {"f32", "f16", "bf16"});
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
  const absl::StatusOr<BoundSize> size = ParseSizes(f.value, f.folder);
  if (!size.ok()) {
    if (absl::IsNotFound(size.status()))
      return absl::InvalidArgumentError(absl::StrCat("--", f.name, ": ", size.status().message()));
    // Misspelt flags are read as symbols, too.
    const std::string hint = f.name == "N" ? "" : DidYouMean(f.name, KnownFlags());
    if (hint.empty()) return Bad(f, size.status().message());
    return absl::InvalidArgumentError(
        absl::StrCat("unknown flag --", f.name, hint, "; see --help"));
  }
  f.flags.sizes.insert_or_assign(std::string(f.name), *size);
  return absl::OkStatus();
}

constexpr auto kAll = HeededBy::kAll, kRuns = HeededBy::kRuns, kPlans = HeededBy::kPlans;
constexpr FlagRow kFlags[] = {
    {"ranks", kAll, Count<&SweepFlags::ranks>, "a number"},
    {"stages", kAll, Count<&SweepFlags::stages>, "a number"},
    {"nodes", kRuns, Count<&SweepFlags::nodes>, "a number"},
    {"dtype", kAll, SetDType, "f32, f16 or bf16"},
    {"cache", kRuns, File<&SweepFlags::cache>, "a file"},
    {"budget", kAll, Amount<&SweepFlags::budget_s, true>, "seconds"},
    {"json", kRuns, File<&SweepFlags::json>, "a file"},
    {"only", kRuns, SetOnly, "words of a schedule, as the table shows them"},
    {"order", kRuns, Word<&SweepFlags::sum_order>, "any or rank"},
    {"preset", kAll, SetPreset, "a name"},
    {"list", kAll, On<&SweepFlags::list>, ""},
    {"help", kAll, On<&SweepFlags::help>, ""},
    {"N", kAll, SetSize, "a size"},
    {"all", kRuns, On<&SweepFlags::all>, ""},
    {"search", kRuns, Word<&SweepFlags::search>, "auto, exhaustive, racing, model or evolution"},
    {"memory", kRuns, SetMemory, "a size"},
    {"plan-only", kAll, On<&SweepFlags::plan_only>, ""},
    {"device", kPlans, SetDevice, "a device"},
    {"link", kPlans, Amount<&SweepFlags::link_gbits, false>, "Gbit/s"},
    {"trace", kPlans, File<&SweepFlags::trace>, "a file"},
    {"schedule", kRuns, Chosen<&Choice::schedule>, "a text, or * for all"},
    {"config", kRuns, Chosen<&Choice::config>, "a text, or * for all"},
    {"backend", kRuns, Word<&SweepFlags::backend>, "host, cuda or simt"},
    {"retune", kRuns, On<&SweepFlags::retune>, ""},
    {"sum-rounding", kRuns, Word<&SweepFlags::sum_rounding>, "once or each"},
    {"nans", kRuns, Word<&SweepFlags::nans>, "possible or none"},
};

std::vector<std::string> KnownFlags() {
  std::vector<std::string> names;
  for (const FlagRow& row : kFlags) names.emplace_back(row.name);
  return names;
}

/// Null: it is no flag.
const FlagRow* FindFlag(absl::string_view name) {
  const auto* row = absl::c_find_if(kFlags, [&](const FlagRow& of) { return of.name == name; });
  return row == std::end(kFlags) ? nullptr : row;
}

/// InvalidArgument for flags that would not be heeded, of those that are given.
absl::Status CheckHeeded(const std::vector<std::string>& given, bool plan_only) {
  for (const std::string& name : given) {
    const FlagRow* row = FindFlag(name);
    if (row != nullptr && !plan_only && row->by == kPlans)
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": want --plan-only, too, which alone heeds it"));
    if (row != nullptr && plan_only && row->by == kRuns)
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": --plan-only does not heed it; leave one of the two out"));
  }
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
      flags.sizes.insert(preset.sizes.begin(), preset.sizes.end());
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

/// "3x5": a matrix, whose elements count.
absl::StatusOr<int64_t> ParseExtents(absl::string_view text) {
  int64_t elements = 1;
  for (absl::string_view extent : absl::StrSplit(text, 'x')) {
    ASSIGN_OR_RETURN(const int64_t size, ParseSize(extent));
    if (__builtin_mul_overflow(elements, size, &elements))
      return absl::InvalidArgumentError("fewer elements");
  }
  return elements;
}

/// One tensor a line; '#' starts a comment.
absl::StatusOr<std::vector<int64_t>> ReadSizes(absl::string_view name, const std::string& folder) {
  const std::string file = ResolvePath(name, folder);
  std::ifstream in(file);
  std::error_code error;
  if (!in || std::filesystem::is_directory(file, error)) {
    return absl::NotFoundError(absl::StrCat("'", name, "' is no list of a model (",
                                            absl::StrJoin(ModelNames(), ", "),
                                            ") and no file to read"));
  }
  std::vector<int64_t> sizes;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const absl::string_view text =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const absl::StatusOr<int64_t> size = ParseExtents(text);
    if (!size.ok())
      return absl::NotFoundError(absl::StrCat("line ", number, " of ", name, ": want ",
                                              size.status().message(), ", have '", text, "'"));
    sizes.push_back(*size);
  }
  if (sizes.empty()) return absl::NotFoundError(absl::StrCat("file ", name, " names no size"));
  return sizes;
}

}  // namespace

std::string SweepHelp() {
  return R"(sweep: times every variant of a program on this machine, and keeps the fastest

  sweep WORKLOAD|FILE.coco|FILE.hlo [--N=16Mi] [flags]

  --N=SIZE        and so on for every symbol of the program (N: 1Mi); Ki Mi Gi are powers of 1024,
                  k M G of 1000
  --N=1024,3x5    a list: the program runs on that many tensors; --N=@bert-large, --N=@gpt2: those
                  of the model; --N=@FILE: one per line
  --layers=12     and so on for the sizes that shape a training step (mlp_step, gpt_step, local_sgd)
  --preset=NAME   sizes of a workload that are not given; --list names them
  --ranks=2       thread ranks of this process; under mpirun every process is a rank
  --stages=1      pipeline stages, of ranks/stages ranks each: a program runs on each, and send
                  passes values to the next
  --nodes=1       nodes: ranks of different ones share no memory; real ones under mpirun, else
                  simulated
  --backend=host  host: on cores; cuda: on NVIDIA GPUs, which ranks take in turns, so that several
                  may share one; simt: on GPUs that are simulated thread for thread, to find
                  mistakes of kernels: small sizes, and times that say nothing, so that all
                  variants are verified as far as the budget goes
  --dtype=f32     of workloads: f32, or f16 or bf16 for mixed precision
  --order=any     of sums over ranks: any, or rank (0, 1, 2, ...), which excludes library
                  collectives
  --sum-rounding=once  of sums of f16 and bf16 over ranks: once, at the end, or each addition, as
                  NCCL rounds, which is then used for more than two ranks, too
  --nans=possible  none: no operand of a minimum or maximum over ranks is NaN, so that NCCL is used
                  for those of floats
  --budget=60     seconds
  --only=WORDS    only schedules with these words, as the table shows them: --only="fuse(RS"; may
                  be given several times; what wins among some is not kept
  --schedule=TEXT only this schedule, by its words or its trace (cache show prints it), whether or
                  not a search would try it; what wins is not kept
  --config=TEXT   only this config, or those with these numbers ("vec=4 threads=512"), of which the
                  others are the plainest; what wins is not kept
  --cache=FILE    the tuning cache; :none: keeps nothing (COCONET_CACHE_DIR/tuning.db, else
                  XDG_CACHE_HOME/coconet/tuning.db)
  --memory=SIZE   the most bytes of the program on a rank: what needs more is not tried; where all
                  does, values are computed again instead of kept, or it is refused
  --search=auto   how to go through the variants: exhaustive (all, each timed to the end), racing
                  (all; drops what is slower), model (what a model of the times promises, and random
                  ones), evolution (mixtures of the fastest, and random ones)
  --retune        tunes again what the cache has
  --plan-only     runs nothing: plans kernels, calls and their order on a simulator, on as many
                  ranks as wanted, also of programs that cannot run here
  --device=h100   the device of a plan: v100, a100, h100 or b200, by its data sheet
  --link=100      Gbit/s that a rank of a plan sends
  --trace=FILE    the timeline of a plan, for chrome://tracing and Perfetto

  --all           a line for every variant; without it, the fastest of each schedule
  --json=FILE     all variants, for other programs
  --list          the workloads

Exit code: 0; 1 a failure of ours; 2 bad input; 130 interrupted (what was measured is kept).
)";
}

bool IsSweepFlag(absl::string_view name) { return name != "N" && FindFlag(name) != nullptr; }

absl::StatusOr<SweepFlags> ParseSweepFlags(const std::vector<std::string>& args,
                                           const std::string& folder) {
  SweepFlags flags;
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
        const std::string hint = DidYouMean(name, KnownFlags());
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
      for (const std::string& known : KnownFlags())
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
  RETURN_IF_ERROR(CheckHeeded(given, flags.plan_only));
  if (flags.is_file && absl::c_linear_search(given, "dtype"))
    return absl::InvalidArgumentError("--dtype is for workloads: a file names its own types");
  return flags;
}

/// Null: the flags name no training step.
const TrainingStepInfo* TrainingStepOf(const SweepFlags& flags) {
  static const std::vector<TrainingStepInfo> steps = TrainingSteps();
  const auto at = absl::c_find_if(
      steps, [&](const TrainingStepInfo& step) { return step.name == flags.program; });
  return flags.is_file || at == steps.end() ? nullptr : &*at;
}

absl::StatusOr<Graph> LoadSweepProgram(SweepFlags& flags) {
  if (const TrainingStepInfo* step = TrainingStepOf(flags); step != nullptr) {
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
  for (const auto& [symbol, size] : flags.sizes) {
    if (symbols.count(symbol) != 0) continue;
    std::vector<std::string> known = KnownFlags();
    known.insert(known.end(), symbols.begin(), symbols.end());
    return absl::InvalidArgumentError(absl::StrCat(
        "--", symbol, ": no flag, and no symbol of the program", DidYouMean(symbol, known),
        "; its symbols are ", symbols.empty() ? "none" : absl::StrJoin(symbols, ", ")));
  }
  RETURN_IF_ERROR(AddPreset(flags));
  if (symbols.count("N") != 0) flags.sizes.emplace("N", kDefaultN);
  for (const std::string& symbol : symbols) {
    if (flags.sizes.count(symbol) != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("want --", symbol, "=SIZE: a symbol of the program without a value"));
  }
  return program;
}

std::string ResolvePath(absl::string_view path, const std::string& folder) {
  return (fs::path(folder) / std::string(path))
      .lexically_normal();  // an absolute path stays what it is
}

std::string UserFolder() {
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
      folder != nullptr && *folder != '\0')
    return folder;
  std::error_code error;
  return fs::current_path(error);
}

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const auto error = absl::InvalidArgumentError("a size such as 4096, 16Mi or 1G");
  size_t digits = 0;
  while (digits < text.size() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.'))
    ++digits;
  const struct {
    absl::string_view suffix;
    double factor;
  } kSuffixes[] = {{"", 1},    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0},
                   {"k", 1e3}, {"K", 1e3},     {"M", 1e6},        {"G", 1e9}};
  for (const auto& [suffix, factor] : kSuffixes) {
    if (text.substr(digits) != suffix) continue;
    int64_t whole = 0;
    if (factor == 1)
      return absl::SimpleAtoi(text.substr(0, digits), &whole) ? absl::StatusOr<int64_t>(whole)
                                                              : error;
    double number = 0;
    if (!absl::SimpleAtod(text.substr(0, digits), &number)) return error;
    const double size = number * factor;
    if (size != std::floor(size) || size > 9e15) return error;
    return static_cast<int64_t>(size);
  }
  return error;
}

absl::StatusOr<BoundSize> ParseSizes(absl::string_view text, const std::string& folder) {
  if (absl::ConsumePrefix(&text, "@")) {
    if (std::optional<std::vector<int64_t>> model = ModelSizes(text); model.has_value())
      return BoundSize(*std::move(model));
    ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ReadSizes(text, folder));
    return BoundSize(std::move(sizes));
  }
  std::vector<int64_t> sizes;
  int number = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ++number;
    const absl::StatusOr<int64_t> size = ParseExtents(part);
    if (!size.ok()) {
      const std::string where =
          absl::StrContains(text, ",") ? absl::StrCat(" as number ", number) : "";
      return absl::InvalidArgumentError(absl::StrCat(size.status().message(), where));
    }
    sizes.push_back(*size);
  }
  const bool is_list = absl::StrContains(text, ",") || absl::StrContains(text, "x");
  return is_list ? BoundSize(std::move(sizes)) : BoundSize(sizes[0]);
}

std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& named) {
    const std::vector<int64_t>& list = named.second.sizes;
    int64_t elements = 0;
    for (int64_t size : list) elements += size;
    absl::StrAppend(out, named.first, "=",
                    list.size() <= kShownSizes
                        ? Text(named.second)
                        : absl::StrCat("(", list.size(), " tensors, ", elements, ")"));
  });
}

}  // namespace coconet
