// Changes single tokens of generated kernels at random, decides by other data, sizes and
// interleavings than the verifier's which of them change an answer, and prints the share of those
// that verification finds before dispatch.
//   bazel run //tests:random_mutations -- [--mutations=1000] [--cases=40] [--seed=N]
// Exits with 1 where that share is below 99.5 % and more than one was missed, since one of few says
// little of the share, or where a kernel as it is is refused.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"
#include "jit/lower/lower.h"
#include "tests/harness/test_data.h"
#include "tests/mutation/host_mutation_run.h"
#include "tests/mutation/random_cases.h"

ABSL_FLAG(int, mutations, 1000, "how many mutations that compile are tried");
ABSL_FLAG(int, cases, 40, "of how many variants, drawn from all workloads");
ABSL_FLAG(uint64_t, seed, 0, "of all that is drawn; 0: one that differs from run to run");
ABSL_FLAG(double, minutes, 0, "no mutation is begun after so many; 0: no limit");

namespace coconet {
namespace {

constexpr double kLimitSeconds = 240;  // of one process; only a kernel that never ends takes it
constexpr double kBar = 0.995;

std::string Words(const RandomCase& at) {
  return absl::StrCat(at.program, ", ", at.schedule, ", ", at.config, ", ", at.target.ranks,
                      " ranks, ", at.target.nodes, " nodes, ", at.target.stages, " stages");
}

std::string OneLine(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\n", "; "}}).substr(0, 240);
}

/// What became of one mutation.
struct Fate {
  bool compiles = true, changes = false, found = false;
  std::string by, change;  // what verification says; what the oracle says
};

class Campaign {
 public:
  Campaign(std::string folder, uint64_t seed) : folder_(std::move(folder)), random_(seed) {}

  /// The cases, none of which is refused as it is.
  absl::Status DrawCases(int count) {
    std::vector<RandomCase> drawn;
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(RandomCase at, DrawCase(random_));
      drawn.push_back(std::move(at));
    }
    std::atomic<int> wrong{0};
    OnAllCores(drawn.size(), [&](size_t i) {
      const absl::StatusOr<Fate> fate = FateOf({drawn[i], {"no kernel", "", ""}}, i);
      if (fate.ok() && fate->compiles && !fate->changes && !fate->found) return;
      ++wrong;
      Print(absl::StrCat(
          "WRONG as it is: ", Words(drawn[i]), ": ",
          fate.ok() ? absl::StrCat(fate->by, "; ", fate->change) : fate.status().ToString()));
    });
    for (const RandomCase& at : drawn) {
      ASSIGN_OR_RETURN(const CaseVariant v, VariantOf(at.View()));
      ASSIGN_OR_RETURN(const Lowered lowered, Lower(v.schedule, v.config, at.target));
      cases_.push_back({at, lowered.kernels.text()});
    }
    std::printf("%d variants, each right as it is but %d\n", count, wrong.load());
    refused_ = wrong;
    return absl::OkStatus();
  }

  int Run(int mutations, absl::Time end) {
    std::atomic<int> compiled{0}, changing{0}, found{0}, only_verified{0}, broken{0}, errors{0};
    std::atomic<bool> done{false};
    OnAllCores(static_cast<size_t>(mutations) * 4, [&](size_t number) {
      if (done || absl::Now() > end) return;
      const std::optional<RandomMutation> drawn = Draw();
      if (!drawn.has_value()) return;
      const absl::StatusOr<Fate> fate = FateOf(*drawn, number + 1000);
      if (!fate.ok()) {
        ++errors;
        return Print(absl::StrCat("ERROR ", Words(drawn->at), "; ", drawn->mutation.what, ": ",
                                  OneLine(fate.status().ToString())));
      }
      if (!fate->compiles) {
        ++broken;
        return;
      }
      if (++compiled >= mutations) done = true;
      changing += fate->changes;
      found += fate->changes && fate->found;
      only_verified += fate->found && !fate->changes;
      if (fate->changes && !fate->found) {
        Print(absl::StrCat("MISSED ", Words(drawn->at), "\n  ", drawn->mutation.what,
                           "\n  it changes an answer: ", OneLine(fate->change)));
      }
      if (compiled % 50 == 0) {
        Print(absl::StrCat(compiled.load(), " compiled, ", changing.load(), " change an answer, ",
                           found.load(), " of them found"));
      }
    });
    const double share = changing == 0 ? 1 : static_cast<double>(found) / changing;
    std::printf(
        "%d mutations that compile, %d that do not; %d change no answer that was seen, of which "
        "verification refuses %d; %d could not be tried\nfound %d of %d (%.2f %%)\n",
        compiled.load(), broken.load(), compiled - changing, only_verified.load(), errors.load(),
        found.load(), changing.load(), 100 * share);
    const bool enough = share >= kBar || changing - found <= 1;
    return enough && refused_ == 0 && errors == 0 && changing > 0 ? 0 : 1;
  }

 private:
  struct Case {
    RandomCase at;
    std::string source;
  };

  template <class F>
  static void OnAllCores(size_t count, const F& f) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([&] {
        for (size_t k = next++; k < count; k = next++) f(k);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Print(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  std::optional<RandomMutation> Draw() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Case& at = cases_[random_() % cases_.size()];
    std::optional<TokenMutation> mutation = DrawTokenMutation(at.source, random_);
    if (!mutation.has_value()) return std::nullopt;
    return RandomMutation{at.at, *std::move(mutation)};
  }

  absl::StatusOr<Fate> FateOf(const RandomMutation& mutation, size_t number) const {
    const std::string name = absl::StrCat(folder_, "/", number), cache = folder_ + "/cache";
    RETURN_IF_ERROR(WriteRandomMutation(name, mutation));
    ASSIGN_OR_RETURN(const WorkerOutcome verified,
                     RunWorker(VerifierCommand("random", name, cache, 1), kLimitSeconds));
    Fate fate{.by = absl::StrCat(verified.word, ": ", verified.report), .change = ""};
    if (verified.word == "error") return absl::FailedPreconditionError(verified.report);
    fate.compiles = verified.word != Name(HostFinding::kCompileError);
    fate.found = verified.word != "nothing";
    if (!fate.compiles) return fate;
    ASSIGN_OR_RETURN(
        const WorkerOutcome oracle,
        RunWorker({"tests/oracle_worker", name, cache, absl::StrCat(number)}, kLimitSeconds));
    if (oracle.word == "error") return absl::FailedPreconditionError(oracle.report);
    fate.changes = oracle.word != "unchanged";
    fate.change = oracle.report;
    return fate;
  }

  const std::string folder_;
  std::mt19937_64 random_;
  std::vector<Case> cases_;
  int refused_ = 0;
  std::mutex mutex_;
};

int Run() {
  const absl::StatusOr<std::unique_ptr<TempDir>> folder = TempDir::Make();
  const uint64_t given = absl::GetFlag(FLAGS_seed), seed = given != 0 ? given : FreshSeed();
  std::printf("--seed=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const double minutes = absl::GetFlag(FLAGS_minutes);
  const absl::Time end =
      minutes > 0 ? absl::Now() + absl::Minutes(minutes) : absl::InfiniteFuture();
  absl::Status status = folder.status();
  if (status.ok()) {
    Campaign campaign((*folder)->path(), seed);
    status = campaign.DrawCases(absl::GetFlag(FLAGS_cases));
    if (status.ok()) return campaign.Run(absl::GetFlag(FLAGS_mutations), end);
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return coconet::Run();
}
