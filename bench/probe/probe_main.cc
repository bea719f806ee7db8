// Runs exact lines "program | sizes | schedule | config" from a file, without any search.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autotune/command/sizes.h"
#include "autotune/runner/compile_pool.h"
#include "autotune/runner/variant_plans.h"
#include "autotune/search/choice.h"
#include "autotune/search/sizes/small_sizes.h"
#include "bench/harness/user.h"
#include "bench/probe/carried_cubins.h"
#include "bench/probe/isolated.h"
#include "bench/probe/probe_group.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_program.h"
#include "bench/probe/probe_row.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, backend, "host",
          "host, cuda, or simt (simulated GPUs, whose times say nothing)");
ABSL_FLAG(bool, verify, true,
          "verify each line against the interpreter at small sizes before it is timed; --no-verify "
          "does not");
ABSL_FLAG(double, seconds, 0.5, "of timing a line");
ABSL_FLAG(double, line_seconds, 120,
          "after which a line's process is ended, and the next line runs");
ABSL_FLAG(
    bool, isolate, true,
    "run lines in processes of their own, so that none ends the others; --no-isolate runs all "
    "in this one, under a sanitizer, say");
ABSL_FLAG(std::string, copy, "",
          "bytes of the copy in the same rounds, 1Gi on GPUs, 64Mi on hosts; 0: none");
ABSL_FLAG(std::string, cubins, "",
          "folder of binaries: runs them instead of compiling, or is written by --compile-for");
ABSL_FLAG(std::string, compile_for, "",
          "an architecture, sm_90a: compiles the lines into --cubins, and runs nothing");
ABSL_FLAG(int, gpus, 1, "with --compile-for: the GPUs that the ranks will share");

namespace coconet::bench {
namespace {

constexpr char kUsage[] = R"(gpu_probe: runs exact lines, without any search; see bench/README.md

  gpu_probe FILE [--backend=host|cuda|simt] [--cubins=FOLDER] [--json=FILE] [--markdown=FILE]
  gpu_probe FILE --compile-for=sm_90a --cubins=FOLDER

A line is  program | sizes | schedule | config , as in
  adam | N=256Mi dtype=bf16 ranks=2 | RS; fuse(C); AG p; slice m v w | generated vec=8 threads=512
  copy | bytes=4Gi
  product | M=4096 K=1536 N=12288 dtype=bf16 ranks=2 | | multiprocessors=56)";

constexpr int kInterrupted = 130;
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

bool Interrupted() { return interrupted; }

void Say(const std::string& line) { std::fprintf(stderr, "gpu_probe: %s\n", line.c_str()); }

struct File {
  std::string folder;
  std::vector<ProbeLine> lines;
};

absl::StatusOr<File> ReadLines(const std::vector<char*>& arguments) {
  if (arguments.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("want one file of lines, have ", arguments.size() - 1, "; see --help"));
  }
  const std::string path = Resolve(arguments[1]);
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  if (!in || std::filesystem::is_directory(path, error))
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  absl::StatusOr<std::vector<ProbeLine>> lines = ParseProbeLines(text);
  if (!lines.ok()) return WithContext(lines.status(), path);
  return File{std::filesystem::path(path).parent_path(), *std::move(lines)};
}

absl::StatusOr<Backend> ChosenBackend() {
  const std::string name = absl::GetFlag(FLAGS_backend);
  if (name == "host") return Backend::kHost;
  if (name == "cuda") return Backend::kCuda;
  if (name == "simt") return Backend::kSimt;
  return absl::InvalidArgumentError(
      absl::StrCat("--backend: want host, cuda or simt, have '", name, "'"));
}

absl::StatusOr<ProbeOptions> OptionsFor(Backend backend) {
  ProbeOptions options;
  options.verify = absl::GetFlag(FLAGS_verify);
  options.seconds = IsQuick() ? 0.05 : absl::GetFlag(FLAGS_seconds);
  options.cubins = Resolve(absl::GetFlag(FLAGS_cubins));
  options.cache_dir = GetEnv().cache_dir;
  options.seed = GetEnv().seed.value_or(1);
  options.interrupted = Interrupted;
  const std::string copy = absl::GetFlag(FLAGS_copy);
  options.copied_bytes = int64_t{backend == Backend::kCuda ? 1024 : 64} << 20;
  if (IsQuick()) options.copied_bytes = 1 << 20;
  if (!copy.empty()) {
    const absl::StatusOr<int64_t> bytes = ParseSize(copy);
    if (!bytes.ok()) return WithContext(bytes.status(), "--copy: want");
    options.copied_bytes = *bytes;
  }
  if (options.seconds <= 0 || absl::GetFlag(FLAGS_line_seconds) <= 0)
    return absl::InvalidArgumentError("--seconds and --line-seconds: want more than 0");
  return options;
}

/// Runs a line of a baseline in a world of its own.
absl::Status RunBaseline(const ProbeBaseline& baseline, const ProbeLine& line, Backend backend,
                         const ProbeOptions& options) {
  ASSIGN_OR_RETURN(const NamedNumbers numbers, baseline.parse(line));
  const auto ranks = static_cast<int>(numbers.at("ranks"));
  return RunWorld({.ranks = ranks, .backend = backend}, [&](Rank& rank) -> absl::Status {
    const bool first = rank.rank() == 0;
    if (first) options.listener.begins();
    Row row = RowOf(line, rank.size());
    RETURN_IF_ERROR(rank.exchange().Agree(baseline.run(rank, numbers, options, row)));
    if (first) options.listener.is_done(row);
    return absl::OkStatus();
  });
}

absl::Status RunProgram(absl::Span<const ProbeLine> lines, const std::string& folder,
                        Backend backend, const ProbeOptions& options) {
  ASSIGN_OR_RETURN(const ProbeProgram program, LoadProbeProgram(lines[0], folder));
  return RunWorld({.ranks = program.ranks,
                   .stages = program.stages,
                   .nodes = program.nodes,
                   .backend = backend},
                  [&](Rank& rank) { return ProbeGroup(rank, program, lines, options); });
}

/// Runs lines that share a world. Whether the process can go on.
bool RunGroup(absl::Span<const ProbeLine> lines, const std::string& folder, Backend backend,
              ProbeOptions options) {
  // On rank 0's thread; read when the world has ended.
  size_t done = 0;
  bool has_begun = false;
  options.listener = {.begins =
                          [&, begins = options.listener.begins] {
                            has_begun = true;
                            begins();
                          },
                      .is_done =
                          [&, is_done = options.listener.is_done](const Row& row) {
                            ++done;
                            has_begun = false;
                            is_done(row);
                          }};
  const ProbeBaseline* baseline = FindBaseline(lines[0].program);
  const absl::Status status = !lines[0].error.ok() ? lines[0].error
                              : baseline != nullptr
                                  ? RunBaseline(*baseline, lines[0], backend, options)
                                  : RunProgram(lines, folder, backend, options);
  if (status.ok()) return true;
  // The line that had begun is to blame, or all of them are.
  for (const size_t end = has_begun ? done + 1 : lines.size(); done < end;)
    options.listener.is_done(Failed(lines[done], status));
  return done == lines.size();
}

bool ShareAWorld(const ProbeLine& a, const ProbeLine& b) {
  return a.error.ok() && b.error.ok() && a.program == b.program && a.sizes == b.sizes &&
         FindBaseline(a.program) == nullptr;
}

/// Runs lines in this process, those of one program and sizes that follow one another in one world.
/// The listener gets a row for each, but for those after an error that ends the process's GPU or
/// world; then that of the line that had begun is its error, and the call returns.
void RunLines(absl::Span<const ProbeLine> lines, const std::string& folder, Backend backend,
              const ProbeOptions& options) {
  for (size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
    end = begin + 1;
    while (end < lines.size() && ShareAWorld(lines[begin], lines[end])) ++end;
    if (interrupted) return;
    if (!RunGroup(lines.subspan(begin, end - begin), folder, backend, options)) return;
  }
}

absl::Status Run(const File& file) {
  ASSIGN_OR_RETURN(const Backend backend, ChosenBackend());
  ASSIGN_OR_RETURN(ProbeOptions options, OptionsFor(backend));
  std::vector<Row> rows;
  absl::Status saved;  // of the rows so far: files are up to date whatever ends the process
  const auto add = [&](const Row& row) {
    rows.push_back(row);
    Say(absl::StrReplaceAll(Summary(row), {{"\n", "; "}}));
    if (saved.ok()) saved = Save(rows, ProbeColumns());
  };
  const auto run = [&](absl::Span<const ProbeLine> lines, const Listener& listener) {
    options.listener = listener;
    RunLines(lines, file.folder, backend, options);
  };
  if (!UnderMpi() && absl::GetFlag(FLAGS_isolate)) {
    RunIsolated(file.lines, run,
                {.line_seconds = absl::GetFlag(FLAGS_line_seconds),
                 .interrupted = Interrupted,
                 .is_done = add});
  } else {
    run(file.lines, {.is_done = add});
    if (rows.empty()) return absl::OkStatus();  // another process has rank 0
    const absl::Status why =
        absl::UnknownError("not run, since the process runs nothing more after the error before");
    while (rows.size() < file.lines.size()) add(Failed(file.lines[rows.size()], why));
  }
  RETURN_IF_ERROR(saved);
  return Show(rows, ProbeColumns());
}

/// The sources that running a line takes, those that verify it at small sizes included; none
/// of a baseline. Errors name the field.
absl::StatusOr<std::set<std::string>> SourcesOf(const ProbeLine& line, const std::string& folder,
                                                const AssumedGpus& gpus) {
  RETURN_IF_ERROR(line.error);
  if (FindBaseline(line.program) != nullptr) return std::set<std::string>();
  ASSIGN_OR_RETURN(const ProbeProgram program, LoadProbeProgram(line, folder));
  ASSIGN_OR_RETURN(const AssumedWorld world, WorldOn(gpus, program));
  ASSIGN_OR_RETURN(const Variant variant, Chooser(program.program, world.space).One(line.choice()));
  const bool shrinks = !(Shrink(program.program) == program.program);
  ASSIGN_OR_RETURN(const std::unique_ptr<const VariantPlans> plans,
                   PlansOf(variant, world.target,
                           shrinks ? CheckedSizes(world.target.ranks) : std::vector<CheckedSize>(),
                           /*on_gpus=*/true));
  std::set<std::string> sources = {plans->full->kernels.text()};
  for (const VariantPlans::Small& small : plans->small)
    sources.insert(small.lowered.kernels.text());
  sources.erase("");
  return sources;
}

/// Compiles on all cores, and carries the binaries into `cubins`. The statuses by source.
absl::StatusOr<std::map<std::string, absl::Status>> CompileInto(
    const std::string& cubins, const std::string& arch, const std::set<std::string>& sources) {
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      MakeCompilerFor(arch, /*simulated=*/false, {.cache_dir = GetEnv().cache_dir, .stop = stop}));
  const std::vector<KernelSource> texts(sources.begin(), sources.end());
  CompilePool pool(*compiler, texts, OwnCores(), stop.get());
  int told = 0;
  while (!pool.Idle()) {
    const int done = pool.Wait();
    if (interrupted) pool.Stop();
    if (done > told)
      Say(absl::StrCat("compiled ", told = done, " of ", texts.size(), " sources for ", arch));
  }
  std::map<std::string, absl::Status> statuses;
  for (size_t i = 0; i < texts.size(); ++i) {
    const absl::StatusOr<std::string>& path = pool.binaries()[i];
    absl::Status& status = statuses[texts[i].text()];
    status = path.status();
    if (!status.ok()) continue;
    const std::optional<std::string> binary = BinaryCache::ReadAt(*path);
    status = binary.has_value()
                 ? CarryCubin(cubins, arch, texts[i].text(), *binary, compiler->identity())
                 : absl::DataLossError(absl::StrCat(*path, " is gone or damaged"));
  }
  return statuses;
}

/// Compiles what running the lines takes, for GPUs that need not be here.
absl::Status Compile(const File& file) {
  const AssumedGpus gpus = {absl::GetFlag(FLAGS_compile_for), absl::GetFlag(FLAGS_gpus)};
  const std::string cubins = Resolve(absl::GetFlag(FLAGS_cubins));
  if (cubins.empty())
    return absl::InvalidArgumentError("--compile-for: want --cubins=FOLDER to write to");
  if (gpus.gpus < 1) return absl::InvalidArgumentError("--gpus: want 1 or more");
  std::vector<absl::StatusOr<std::set<std::string>>> taken;  // by line
  std::set<std::string> sources;
  for (const ProbeLine& line : file.lines) {
    taken.push_back(SourcesOf(line, file.folder, gpus));
    if (taken.back().ok()) sources.insert(taken.back()->begin(), taken.back()->end());
  }
  ASSIGN_OR_RETURN(auto compiled, CompileInto(cubins, gpus.arch, sources));
  int failed = 0;
  for (size_t i = 0; i < taken.size(); ++i) {
    absl::Status status = taken[i].status();
    for (const std::string& source : taken[i].value_or(std::set<std::string>()))
      status.Update(compiled[source]);
    failed += status.ok() ? 0 : 1;
    Say(absl::StrCat("line ", file.lines[i].number, ": ",
                     !status.ok() ? absl::StrCat("FAILED: ", status.message())
                     : FindBaseline(file.lines[i].program) != nullptr ? "no kernels"
                                                                      : "compiled"));
  }
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " of ", file.lines.size(), " lines failed"));
}

/// Flags may have dashes between their words, "--no-verify".
std::string WithUnderscores(std::string argument) {
  if (!absl::StartsWith(argument, "--")) return argument;
  std::replace(argument.begin() + 2, std::find(argument.begin(), argument.end(), '='), '-', '_');
  if (absl::StartsWith(argument, "--no_verify") || absl::StartsWith(argument, "--no_isolate"))
    argument.erase(4, 1);
  return argument;
}

int MainOf(int argc, char** argv) {
  absl::SetProgramUsageMessage(kUsage);
  std::vector<std::string> arguments(argv, argv + argc);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    argument = WithUnderscores(argument);
    pointers.push_back(argument.data());
  }
  const std::vector<char*> rest =
      absl::ParseCommandLine(static_cast<int>(pointers.size()), pointers.data());
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // a second one ends the process
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const absl::StatusOr<File> file = ReadLines(rest);
  const absl::Status status = !file.ok()                                 ? file.status()
                              : absl::GetFlag(FLAGS_compile_for).empty() ? Run(*file)
                                                                         : Compile(*file);
  const int code = ExitCode("gpu_probe", status);
  return interrupted ? kInterrupted : code;
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) { return coconet::bench::MainOf(argc, argv); }
