// Runs exact lines "program | sizes | schedule | config" from a file, without any search.

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autotune/command/sizes.h"
#include "bench/harness/user.h"
#include "bench/probe/isolated.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_result.h"
#include "bench/probe/probe_run.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
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

absl::Status Compile(const File& file) {
  const std::string cubins = Resolve(absl::GetFlag(FLAGS_cubins));
  if (cubins.empty())
    return absl::InvalidArgumentError("--compile-for: want --cubins=FOLDER to write to");
  if (absl::GetFlag(FLAGS_gpus) < 1) return absl::InvalidArgumentError("--gpus: want 1 or more");
  ASSIGN_OR_RETURN(const int failed,
                   CompileLines(file.lines, file.folder,
                                {absl::GetFlag(FLAGS_compile_for), absl::GetFlag(FLAGS_gpus)},
                                cubins, Interrupted, [](absl::string_view text) {
                                  std::fprintf(stderr, "gpu_probe: %s\n",
                                               std::string(text).c_str());
                                }));
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " of ", file.lines.size(), " lines failed"));
}

/// The results so far, with files that are up to date whatever ends the process.
class Results {
 public:
  void Add(const ProbeResult& result) {
    rows_.push_back(RowOf(result));
    const std::string line = absl::StrReplaceAll(Summary(result), {{"\n", "; "}});
    std::fprintf(stderr, "gpu_probe: %s\n", line.c_str());
    if (saved_.ok()) saved_ = Save(rows_, ProbeColumns());
  }
  absl::Status Finish() {
    RETURN_IF_ERROR(saved_);
    return Show(rows_, ProbeColumns());
  }

 private:
  std::vector<Row> rows_;
  absl::Status saved_;
};

absl::Status Run(const File& file) {
  ASSIGN_OR_RETURN(const Backend backend, ChosenBackend());
  ASSIGN_OR_RETURN(ProbeOptions options, OptionsFor(backend));
  Results results;
  if (UnderMpi() || !absl::GetFlag(FLAGS_isolate)) {
    std::set<int> done;
    options.is_done = [&](const ProbeResult& result) {
      done.insert(result.line);
      results.Add(result);
    };
    RunLines(file.lines, file.folder, backend, options);
    if (done.empty()) return absl::OkStatus();  // another process has rank 0
    for (const ProbeLine& line : file.lines) {
      if (done.count(line.number) != 0) continue;
      ProbeResult left;
      left.line = line.number;
      left.text = line.text;
      left.error = "not run, since the process runs nothing more after the error before";
      results.Add(left);
    }
    return results.Finish();
  }
  std::vector<int> numbers;
  for (const ProbeLine& line : file.lines) numbers.push_back(line.number);
  RunIsolated(numbers,
              [&](const std::vector<int>& left, Teller& teller) {
                std::vector<ProbeLine> lines;
                for (const ProbeLine& line : file.lines) {
                  if (std::find(left.begin(), left.end(), line.number) != left.end())
                    lines.push_back(line);
                }
                options.begins = [&](int line) { teller.Begins(line); };
                options.is_done = [&](const ProbeResult& result) { teller.IsDone(result); };
                RunLines(lines, file.folder, backend, options);
              },
              {.line_seconds = absl::GetFlag(FLAGS_line_seconds),
               .interrupted = Interrupted,
               .is_done = [&](const ProbeResult& result) { results.Add(result); }});
  return results.Finish();
}

/// Flags may have dashes between their words, "--no-verify".
std::vector<std::string> WithUnderscores(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    std::string argument = argv[i];
    if (i > 0 && absl::StartsWith(argument, "--")) {
      const size_t equals = argument.find('=');
      std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
      for (char& c : name) c = c == '-' ? '_' : c;
      if (name == "no_verify" || name == "no_isolate") name.erase(2, 1);
      argument =
          absl::StrCat("--", name, equals == std::string::npos ? "" : argument.substr(equals));
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

int MainOf(int argc, char** argv) {
  absl::SetProgramUsageMessage(kUsage);
  std::vector<std::string> arguments = WithUnderscores(argc, argv);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
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
