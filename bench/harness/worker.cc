#include "bench/harness/worker.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/env.h"
#include "jit/compile/process.h"

namespace coconet::bench {
namespace {

constexpr absl::string_view kWorker = "--worker=", kOut = "--out=";

std::map<std::string, WorkerBody, std::less<>>& Workers() {
  static auto& workers = *new std::map<std::string, WorkerBody, std::less<>>;
  return workers;
}

/// A copy of this program: its file may be rebuilt before all workers have run.
absl::StatusOr<std::string> CopyOfSelf(const std::string& folder) {
  const std::string copy = absl::StrCat(folder, "/worker");
  std::error_code error;
  if (!std::filesystem::exists(copy, error))
    std::filesystem::copy_file("/proc/self/exe", copy, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("copy this program to ", copy, ": ", error.message()));
  return copy;
}

absl::StatusOr<std::vector<std::string>> CommandLine(const Launch& launch, const std::string& out) {
  std::string program = launch.program;
  if (program.empty()) {
    ASSIGN_OR_RETURN(program, CopyOfSelf(launch.scratch));
  }
  std::vector<std::string> line = launch.launcher;
  if (line.empty() && launch.processes > 0) {
    line = {FindProgram("mpirun"),
            "-n",
            absl::StrCat(launch.processes),
            "--oversubscribe",
            "--bind-to",
            "none",
            "--timeout",
            absl::StrCat(static_cast<int>(launch.time_limit_s))};
    if (line[0].empty()) return absl::UnavailableError("mpirun: not on PATH; run setup.sh");
    for (absl::string_view parameter : absl::StrSplit(launch.parameters, ' ', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(parameter, '=');
      line.insert(line.end(), {"--mca", parts.first, parts.second});
    }
  }
  line.push_back(program);
  line.insert(line.end(), launch.arguments.begin(), launch.arguments.end());
  line.push_back(absl::StrCat(kOut, out));
  return line;
}

std::vector<std::string> Environment(const Launch& launch) {
  std::vector<std::string> environment;
  if (!launch.cache.empty())
    environment.push_back(absl::StrCat("COCONET_CACHE_DIR=", launch.cache));
  if (geteuid() == 0) {
    environment.insert(environment.end(),
                       {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  }
  return environment;
}

/// The last lines of an output.
std::string TailOf(absl::string_view output) {
  output = absl::StripAsciiWhitespace(output);
  constexpr size_t kTail = 2000;
  return output.size() <= kTail ? std::string(output)
                                : absl::StrCat("... ", output.substr(output.size() - kTail));
}

/// Runs a command to its end. Ctrl-C reaches it, and mpirun then ends its ranks. Meanwhile we
/// ignore Ctrl-C, as system() does, so that the caller can clean up.
absl::StatusOr<Finished> RunToEnd(const ProcessCommand& command) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  const absl::Cleanup restore = [&] { sigaction(SIGINT, &before, nullptr); };
  return RunProcess(command);
}

}  // namespace

std::string WordOf(DType value) { return std::string(Name(value)); }
std::string WordOf(const Sizes& value) {
  return absl::StrJoin(value, ",", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, ":", size.second.sizes[0]);
  });
}
std::string WordOf(const std::vector<int64_t>& value) { return absl::StrJoin(value, ","); }

bool FromWord(absl::string_view word, std::string& value) {
  value = std::string(word);
  return true;
}
bool FromWord(absl::string_view word, DType& value) {
  const std::optional<DType> dtype = ParseDType(word);
  if (dtype.has_value()) value = *dtype;
  return dtype.has_value();
}
bool FromWord(absl::string_view word, Sizes& value) {
  for (absl::string_view text : absl::StrSplit(word, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> size = absl::StrSplit(text, absl::MaxSplits(':', 1));
    int64_t number = 0;
    if (!absl::SimpleAtoi(size.second, &number)) return false;
    value.insert_or_assign(size.first, number);
  }
  return true;
}
bool FromWord(absl::string_view word, std::vector<int64_t>& value) {
  for (absl::string_view text : absl::StrSplit(word, ',', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(text, &value.emplace_back())) return false;
  }
  return true;
}

void RegisterWorker(absl::string_view name, WorkerBody body) {
  Workers().emplace(name, std::move(body));
}

bool IsWorker(absl::Span<char* const> arguments) {
  return !arguments.empty() && absl::StartsWith(arguments[0], kWorker);
}

absl::Status Work(absl::Span<char* const> arguments) {
  const auto worker = Workers().find(absl::StripPrefix(arguments.front(), kWorker));
  absl::string_view out = arguments.back();
  if (worker == Workers().end() || !absl::ConsumePrefix(&out, kOut)) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: what is ", absl::StrJoin(arguments, " "), "?"));
  }
  const std::vector<absl::string_view> words(arguments.begin() + 1, arguments.end() - 1);
  return worker->second(words, std::string(out));
}

absl::StatusOr<std::vector<Finding>> RunWorker(const Launch& launch) {
  const std::string out = absl::StrCat(launch.scratch, "/found");
  unlink(out.c_str());
  ASSIGN_OR_RETURN(std::vector<std::string> line, CommandLine(launch, out));
  ASSIGN_OR_RETURN(const Finished done, RunToEnd({.argv = std::move(line),
                                                  .input = {},
                                                  .environment = Environment(launch),
                                                  .time_limit_s = 1e6,
                                                  .output_limit = 64 << 20,
                                                  .foreground = true}));
  const bool exited = done.how == Finished::How::kExited;
  constexpr int kInterrupted = 128 + SIGINT, kCannot = 77;
  if (done.code == (exited ? kInterrupted : SIGINT)) return absl::CancelledError("interrupted");
  if (!launch.launcher.empty() && exited && done.code == kCannot)
    return absl::UnavailableError(TailOf(done.output));
  if (!exited || done.code != 0) {
    const std::string tail = TailOf(done.output);
    return absl::InternalError(absl::StrCat(
        "worker: ", exited ? absl::StrCat("exit code ", done.code) : strsignal(done.code),
        tail.empty() ? "" : ": ", tail));
  }
  return ReadFindings(out);
}

}  // namespace coconet::bench
