// Plants mistakes, one at a time, in the text of kernels and in the library, and says which of them
// are found by the check that is there for them: by simulated GPUs, or by what verifies kernels for
// CPUs before they are dispatched. It is the measure of these checks.
//   bazel run //tests:mutation_score -- [--seed=100] [--on=cpus] [hop]
// tries all, or the mutations with that in their names, or of the case of that name.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "jit/compile/temp_dir.h"
#include "tests/mutation/host_mutation_run.h"
#include "tests/mutation/mutation_run.h"

ABSL_FLAG(uint64_t, seed, 0,
          "the first interleaving that is tried; on CPUs, with 1 added, the "
          "seed of the test data");

ABSL_FLAG(std::string, on, "both",
          "where mistakes are tried: gpus, which are simulated, cpus, or both");

namespace coconet {
namespace {

/// Prints line_of(0), ..., line_of(count - 1) in order, each when it is there; they are made on all
/// cores.
template <class F>
void PrintLines(size_t count, const F& line_of) {
  std::vector<std::string> lines(count);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t printed = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (size_t k = next++; k < count; k = next++) {
        std::string line = line_of(k);
        const std::lock_guard<std::mutex> lock(mutex);
        lines[k] = std::move(line);
        for (; printed < count && !lines[printed].empty(); ++printed)
          std::printf("%s\n", lines[printed].c_str());
        std::fflush(stdout);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string Words(const absl::StatusOr<MutationOutcome>& outcome, size_t shown) {
  if (!outcome.ok()) return outcome.status().ToString();
  if (!outcome->kind.has_value())
    return absl::StrCat("found nothing, in ", outcome->tried, " interleavings");
  return absl::StrCat(
      "found ", Name(*outcome->kind), ", seed ", outcome->seed, ", ", outcome->tried,
      " tried: ", absl::StrReplaceAll(outcome->report, {{"\n", "; "}}).substr(0, shown));
}

/// "caught hop-without-release, in ring.h, case ring: expected data race, found data race, seed 0,
/// 1 tried: data race: ...".
std::string LineOf(const Mutation& mutation, const absl::StatusOr<MutationOutcome>& outcome,
                   bool caught) {
  constexpr size_t kShown = 240;
  std::vector<std::string> files;
  for (const MutationEdit& edit : mutation.edits) files.emplace_back(edit.file);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  const std::string expected = absl::StrJoin(
      mutation.expected, " or ",
      [](std::string* out, const MutationKind& kind) { absl::StrAppend(out, Name(kind)); });
  return absl::StrCat(caught ? "caught " : "MISSED ", mutation.name, ", in ",
                      absl::StrJoin(files, "+"), ", case ", mutation.at, ": expected ", expected,
                      ", ", Words(outcome, caught ? kShown : std::string::npos),
                      caught ? "" : absl::StrCat("\n  ", mutation.what));
}

/// Mutations of one kind, the cases that they are at, and how they are run.
struct Suite {
  absl::string_view on;
  const std::vector<Mutation>& mutations;
  const std::vector<MutationCase>& cases;
  std::function<absl::StatusOr<MutationOutcome>(const Mutation&)> run;
  std::function<absl::StatusOr<MutationOutcome>(const MutationCase&)> run_unmutated;
};

struct Score {
  int caught = 0, mutations = 0;
  bool clean = true;  // nothing was found in a case without a mistake
};

Score ScoreOf(const Suite& suite, absl::string_view part) {
  std::vector<MutationCase> cases;
  std::vector<Mutation> mutations;
  for (const Mutation& mutation : suite.mutations) {
    if (absl::StrContains(mutation.name, part) || mutation.at == part)
      mutations.push_back(mutation);
  }
  for (const MutationCase& at : suite.cases) {
    const auto is_at = [&](const Mutation& mutation) {
      return absl::string_view(mutation.at) == at.name;
    };
    if (std::any_of(mutations.begin(), mutations.end(), is_at)) cases.push_back(at);
  }
  std::atomic<int> clean{0}, caught{0};
  PrintLines(cases.size(), [&](size_t i) {
    const absl::StatusOr<MutationOutcome> outcome = suite.run_unmutated(cases[i]);
    if (outcome.ok() && !outcome->kind.has_value()) ++clean;
    return absl::StrCat("as it is, case ", cases[i].name, ": ", Words(outcome, std::string::npos));
  });
  PrintLines(mutations.size(), [&](size_t i) {
    const absl::StatusOr<MutationOutcome> outcome = suite.run(mutations[i]);
    const bool is_caught = outcome.ok() && IsCaught(mutations[i], *outcome);
    if (is_caught) ++caught;
    return LineOf(mutations[i], outcome, is_caught);
  });
  return {caught, static_cast<int>(mutations.size()), clean == static_cast<int>(cases.size())};
}

int Run(absl::string_view part, uint64_t seed, const std::string& cache_dir) {
  const Suite suites[] = {
      {"gpus", Mutations(), MutationCases(),
       [&](const Mutation& mutation) { return RunMutation(mutation, cache_dir, seed); },
       [&](const MutationCase& at) { return RunUnmutated(at, cache_dir, seed); }},
      {"cpus", HostMutations(), HostCases(),
       [&](const Mutation& mutation) { return RunOnHost(mutation, cache_dir, seed + 1); },
       [&](const MutationCase& at) { return RunUnmutatedOnHost(at, cache_dir, seed + 1); }}};
  Score all;
  const std::string on = absl::GetFlag(FLAGS_on);
  for (const Suite& suite : suites) {
    if (on != "both" && on != suite.on) continue;
    const Score score = ScoreOf(suite, part);
    all.caught += score.caught;
    all.mutations += score.mutations;
    all.clean = all.clean && score.clean;
  }
  std::printf("caught %d of %d\n", all.caught, all.mutations);
  return all.clean && all.caught == all.mutations ? 0 : 1;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  const auto cache = coconet::TempDir::Make();
  if (cache.ok())
    return coconet::Run(arguments.size() > 1 ? arguments[1] : "", absl::GetFlag(FLAGS_seed),
                        (*cache)->path());
  std::fprintf(stderr, "%s\n", cache.status().ToString().c_str());
  return 1;
}
