// Lets faults that are drawn at random befall jobs, and counts what must never follow: keys that a
// later usual job cannot tune or run, wrong answers, hangs, lost records, crashes, and ends without
// a word. docs/verification.md says what is drawn and what is checked.
//   bazel run //tests/faults:faults_long -- [--faults=200] [--seed=N] [--minutes=M] [--only=KIND]
// A finding is printed with the command that repeats it. Exits with 0 only if there is none.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "jit/compile/temp_dir.h"
#include "tests/faults/fault_case.h"
#include "tests/faults/injected_fault.h"
#include "tests/harness/test_data.h"

ABSL_FLAG(int, faults, 200, "how many cases are drawn");
ABSL_FLAG(uint64_t, seed, 0, "of the first case; 0: one that differs from run to run");
ABSL_FLAG(double, minutes, 0, "no case is begun after so many; 0: no limit");
ABSL_FLAG(std::string, only, "", "a kind of fault that befalls every job");
ABSL_FLAG(bool, quick, false, "only small jobs whose ranks are threads");
ABSL_FLAG(bool, findings_only, false, "print findings and counts only");

namespace coconet {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

int Run() {
  const CaseOptions options{.only = absl::GetFlag(FLAGS_only), .quick = absl::GetFlag(FLAGS_quick)};
  if (!options.only.empty() && !absl::c_linear_search(FaultKinds(), options.only)) {
    std::fprintf(stderr, "faults_long: --only=%s: want one of %s\n", options.only.c_str(),
                 absl::StrJoin(FaultKinds(), ", ").c_str());
    return 2;
  }
  // What jobs leave behind becomes this process's child, and is reaped.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!MayMount()) std::printf("no full disks and read-only folders: they take root\n");
  if (!options.quick && !MayMakeNodes()) std::printf("no nodes: they take network namespaces\n");
  const absl::StatusOr<std::unique_ptr<TempDir>> folder = TempDir::Make();
  if (!folder.ok()) {
    std::fprintf(stderr, "faults_long: %s\n", folder.status().ToString().c_str());
    return 2;
  }
  WarmCaches warm((*folder)->path());
  const uint64_t given = absl::GetFlag(FLAGS_seed),
                 seed = given != 0 ? given : FreshSeed() % 1'000'000'000;
  const double minutes = absl::GetFlag(FLAGS_minutes);
  const absl::Time end =
      minutes > 0 ? absl::Now() + absl::Minutes(minutes) : absl::InfiniteFuture();
  std::map<FindingOfCase, int> counts;
  int cases = 0, met = 0;
  for (; cases < absl::GetFlag(FLAGS_faults) && absl::Now() < end && !interrupted; ++cases) {
    const CaseReport report = RunFaultCase(seed + cases, options, warm);
    if (!absl::GetFlag(FLAGS_findings_only) || !report.findings.empty())
      std::printf("%d, seed %llu, %.1f s: %s\n    -> %s\n", cases + 1,
                  static_cast<unsigned long long>(seed + cases), report.seconds,
                  report.words.c_str(), report.end_of_job.substr(0, 200).c_str());
    met += report.met;
    for (const auto& [finding, what] : report.findings) {
      ++counts[finding];
      std::printf(
          "FINDING: %s: %s\n  again: bazel run //tests/faults:faults_long -- --faults=1 "
          "--seed=%llu%s%s\n",
          Name(finding).c_str(), what.c_str(), static_cast<unsigned long long>(seed + cases),
          options.only.empty() ? "" : absl::StrCat(" --only=", options.only).c_str(),
          options.quick ? " --quick" : "");
    }
    std::fflush(stdout);
  }
  std::printf("%d faults from seed %llu, %d of them before the job's end", cases,
              static_cast<unsigned long long>(seed), met);
  int all = 0;
  for (const FindingOfCase finding : kFindingsOfCase) {
    std::printf("; %s: %d", Name(finding).c_str(), counts[finding]);
    all += counts[finding];
  }
  std::printf("\n");
  return all == 0 && cases > 0 ? 0 : 1;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  // The case that runs ends first, and its jobs and folders with it. A second signal ends the
  // process.
  struct sigaction action = {};
  action.sa_handler = [](int) { coconet::interrupted = true; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return coconet::Run();
}
