#include "tests/mutation/host_mutation_run.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"
#include "jit/lower/lower.h"
#include "tests/mutation/planted/mutation_edits.h"

namespace coconet {
namespace {

constexpr char kLauncher[] = "tests/host_mutation_launcher", kWorker[] = "tests/libhost_worker.so";
constexpr char kOutcome[] = "outcome: ";
constexpr double kLimitSeconds = 240;  // of one case
/// Deadlines of waits are short, since some mistakes are found by no other way; a process that is
/// given up leaves no core behind.
const char* const kEnvironment[] = {"COCONET_TIMEOUT=4", "LC_ALL=C"};

absl::StatusOr<std::string> ReadSource(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("planting a mistake: no source ", path));
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

/// Sources of the library, by path, with the mutation's edits.
absl::StatusOr<std::map<std::string, std::string>> ChangedSources(const Mutation& mutation) {
  std::map<std::string, std::string> sources;
  for (const MutationEdit& edit : mutation.edits) {
    if (!IsOfLibrary(edit)) continue;
    auto [source, is_new] = sources.try_emplace(edit.file);
    if (is_new) {
      ASSIGN_OR_RETURN(source->second, ReadSource(edit.file));
    }
    RETURN_IF_ERROR(Edit(edit, source->second));
  }
  return sources;
}

absl::Status RunTool(std::vector<std::string> argv, std::string input) {
  ProcessCommand command;
  command.argv = std::move(argv);
  command.input = std::move(input);
  command.environment = {"LC_ALL=C"};
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  if (finished.how == Finished::How::kExited && finished.code == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("planting a mistake in the library: it does not compile:\n", finished.output));
}

/// A shared object of changed sources, which stands before the worker's own.
absl::StatusOr<std::string> ObjectOf(const std::map<std::string, std::string>& sources,
                                     const std::string& folder) {
  const std::string worker = std::filesystem::absolute(kWorker);
  std::vector<std::string> link = {FindProgram("c++"), "-shared", "-o", folder + "/changed.so"};
  for (const auto& [path, text] : sources) {
    const std::string object = absl::StrCat(folder, "/", link.size(), ".o");
    RETURN_IF_ERROR(
        RunTool({FindProgram("c++"), "-std=c++20", "-O1", "-DNDEBUG", "-fPIC", "-w", "-iquote", ".",
                 "-iquote", std::string(std::filesystem::path(path).parent_path()), "-x", "c++",
                 "-c", "-o", object, "-"},
                text));
    link.push_back(object);
  }
  link.push_back(worker);
  RETURN_IF_ERROR(RunTool(link, ""));
  return folder + "/changed.so";
}

absl::StatusOr<MutationOutcome> Verified(const std::vector<std::string>& argv, uint64_t seed) {
  ASSIGN_OR_RETURN(const WorkerOutcome worker, RunWorker(argv, kLimitSeconds));
  MutationOutcome outcome{.kind = std::nullopt, .report = worker.report, .seed = seed, .tried = 1};
  if (worker.word == "nothing") return outcome;
  if (worker.word.empty()) outcome.kind = HostFinding::kCrash;
  for (HostFinding finding : kAllHostFindings) {
    if (worker.word == Name(finding)) outcome.kind = finding;
  }
  if (!outcome.kind.has_value()) return absl::FailedPreconditionError(worker.report);
  return outcome;
}

/// Whether the mistake is still found where verification itself has one.
MutationOutcome Seen(const Mutation& shown, MutationOutcome outcome) {
  if (IsCaught(shown, outcome)) return outcome;
  outcome.report = absl::StrCat(
      shown.name, ": ",
      outcome.kind.has_value() ? absl::StrCat("found ", Name(*outcome.kind), ": ", outcome.report)
                               : "found nothing");
  outcome.kind = HostFinding::kUnseen;
  return outcome;
}

}  // namespace

absl::StatusOr<WorkerOutcome> RunWorker(std::vector<std::string> argv, double limit_s) {
  ProcessCommand command;
  command.argv = std::move(argv);
  command.environment.assign(std::begin(kEnvironment), std::end(kEnvironment));
  command.time_limit_s = limit_s;
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  if (finished.how == Finished::How::kTimedOut)
    return WorkerOutcome{"", absl::StrCat("ran for ", limit_s, " s")};
  const size_t begin = finished.output.find(kOutcome);
  if (finished.how != Finished::How::kExited || finished.code != 0 || begin == std::string::npos)
    return WorkerOutcome{"", absl::StrCat("ended with ", finished.code, ": ", finished.output)};
  const std::pair<std::string, std::string> lines = absl::StrSplit(
      finished.output.substr(begin + std::size(kOutcome) - 1), absl::MaxSplits('\n', 1));
  return WorkerOutcome{lines.first, lines.second};
}

std::vector<std::string> VerifierCommand(const std::string& at, const std::string& mutation,
                                         const std::string& cache_dir, uint64_t seed,
                                         const std::string& object) {
  return {kLauncher, object.empty() ? std::string(std::filesystem::absolute(kWorker)) : object,
          at,        mutation,
          cache_dir, absl::StrCat(seed)};
}

absl::Status CheckHostPlace(const Mutation& mutation) {
  ASSIGN_OR_RETURN(const MutationCase at, FindMutationCase(mutation.at));
  RETURN_IF_ERROR(ChangedSources(mutation).status());
  if (absl::c_any_of(mutation.edits, IsOfLibrary)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const CaseVariant v, VariantOf(at));
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(v.schedule, v.config, at.target));
  return Planted(lowered.kernels.text(), mutation.edits, Dialect::kHost).status();
}

absl::StatusOr<MutationOutcome> RunOnHost(const Mutation& mutation, const std::string& cache_dir,
                                          uint64_t seed) {
  using Sources = std::map<std::string, std::string>;
  ASSIGN_OR_RETURN(const Sources sources, ChangedSources(mutation));
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::string object;
  if (!sources.empty()) {
    ASSIGN_OR_RETURN(object, ObjectOf(sources, scratch->path()));
  }
  if (mutation.shown_by == nullptr)
    return Verified(VerifierCommand(mutation.at, mutation.name, cache_dir, seed, object), seed);
  const auto shown = absl::c_find_if(HostMutations(), [&](const Mutation& m) {
    return m.name == absl::string_view(mutation.shown_by);
  });
  if (shown == HostMutations().end() || shown->at != absl::string_view(mutation.at)) {
    return absl::InvalidArgumentError(
        absl::StrCat(mutation.name, ": no mutation ", mutation.shown_by, " at ", mutation.at));
  }
  ASSIGN_OR_RETURN(
      MutationOutcome outcome,
      Verified(VerifierCommand(shown->at, shown->name, cache_dir, seed, object), seed));
  return Seen(*shown, std::move(outcome));
}

absl::StatusOr<MutationOutcome> RunUnmutatedOnHost(const MutationCase& at,
                                                   const std::string& cache_dir, uint64_t seed) {
  return Verified(VerifierCommand(at.name, "-", cache_dir, seed), seed);
}

}  // namespace coconet
