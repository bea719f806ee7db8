#include "tests/faults/fault_case.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <regex>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "tests/faults/injected_fault.h"
#include "tests/faults/scene.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// A rank waits so long for a peer while faults befall it.
constexpr double kTimeout = 3;
/// A job ends within so many seconds, besides what its fault delays: its budget, its deadlines, and
/// the compiler on a machine that others use, too.
constexpr double kLimit = 100;
constexpr double kUsualLimit = 240;
/// What a usual job has to tune.
constexpr char kUsualBudget[] = "--budget=5";

constexpr char kBystanderKey[] = "key: another job's\nprogram: p\n";

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string Shortened(absl::string_view text) {
  const std::string line = absl::StrJoin(absl::StrSplit(text, '\n', absl::SkipEmpty()), "; ");
  return line.size() < 600
             ? line
             : absl::StrCat(line.substr(0, 300), " ... ", line.substr(line.size() - 300));
}

/// By key, whether it is complete.
using Records = std::map<std::string, bool>;

/// Records of a copy of the database, so that the original is as jobs left it.
Records RecordsIn(const Scene& scene) {
  const fs::path copy = scene.caches().parent_path() / "records";
  std::error_code error;
  fs::remove_all(copy, error);
  fs::create_directory(copy);
  for (const char* ending : {"", "-wal"}) {
    const fs::path from = scene.database().string() + ending;
    if (fs::exists(from, error)) fs::copy_file(from, copy / from.filename(), error);
  }
  Records records;
  if (!fs::exists(copy / "tuning.db", error)) return records;
  const std::unique_ptr<TuningCache> cache =
      TuningCache::Open(copy / "tuning.db", [](absl::string_view) {});
  for (const TuningRecord& record : cache->List()) records[record.key] = record.complete;
  return records;
}

/// A record of another job in the same file.
void AddBystander(const Scene& scene) {
  VariantResult v{.trace = "", .schedule = "none", .protocol = "library", .config = {}};
  v.verdict = Verdict::kMeasured;
  v.timing = {10, 9, 11, 20};
  const TuningRecord record{.key = Fingerprint(kBystanderKey),
                            .key_text = kBystanderKey,
                            .best = v,
                            .baseline = v,
                            .runner_up = "",
                            .variants = 1,
                            .complete = true,
                            .created_s = 1'700'000'000,
                            .trust = {}};
  TuningCache::Open(scene.database(), [](absl::string_view) {})->Store(record, {&v, 1});
}

/// The lines of ranks in what a job has written.
struct Lines {
  int right = 0, errors = 0, warnings = 0;
  bool complete = false;
  std::string wrong, wordless;

  explicit Lines(const std::string& out) {
    for (absl::string_view line : absl::StrSplit(out, '\n')) {
      if (!absl::StartsWith(line, "rank ")) continue;
      const std::string words(line.substr(std::min(line.size(), line.find(": ") + 2)));
      if (absl::StartsWith(words, "right")) ++right;
      if (absl::StartsWith(words, "warning: ")) ++warnings;
      if (absl::StartsWith(words, "error ")) ++errors;
      if (absl::StartsWith(words, "WRONG")) wrong = words;
      complete |= absl::StrContains(words, ", complete,");
      // An error says what was wanted, or found, or what to do: more than its code.
      const std::string said = words.substr(std::min(words.size(), words.find(": ") + 2));
      const bool speaks = absl::StartsWith(words, "warning: ") || absl::StartsWith(words, "error ");
      if (speaks && said.size() < 15) wordless = std::string(line);
    }
  }
};

class CaseRun {
 public:
  CaseRun(uint64_t seed, const CaseOptions& options, WarmCaches& warm)
      : random_(seed), options_(options), warm_(warm) {}

  CaseReport Run() {
    const double begin = Seconds();
    // All that is drawn is drawn here, so that a case is a function of its seed.
    Draw();
    if (Prepare()) {
      RunFaulted();
      RunUsual();
      CheckRecords();
    }
    Reap();
    report_.words = Words();
    report_.seconds = Seconds() - begin;
    return std::move(report_);
  }

 private:
  void Find(FindingOfCase finding, const std::string& what) {
    report_.findings.emplace_back(finding, what);
  }

  void Draw() {
    std::vector<JobWorld> worlds = {JobWorld::kThreads, JobWorld::kThreadsApart};
    if (!options_.quick) {
      worlds.insert(worlds.end(), {JobWorld::kProcesses, JobWorld::kProcesses});
      if (MayMakeNodes()) worlds.push_back(JobWorld::kNodes);
    }
    const JobWorld world = DrawOneOf(worlds, random_);
    const JobProgram program =
        options_.quick ? JobPrograms()[0] : DrawOneOf(JobPrograms(), random_);
    const std::vector<int> ranks = options_.quick                    ? std::vector<int>{2}
                                   : program.name == "exchange.coco" ? std::vector<int>{2, 3, 4}
                                   : world == JobWorld::kNodes       ? std::vector<int>{2, 3}
                                                                     : std::vector<int>{2, 2, 3, 4};
    scene_ = std::make_unique<Scene>(program, world, DrawOneOf(ranks, random_));
    holds_ = static_cast<Holds>(random_() % 6 == 0 ? 0 : 1 + random_() % 2);
    run_s_ = random_() % 3 == 0 ? 0.0 : static_cast<double>(random_() % 2500) / 1000;
    while (faults_.empty()) AddFault();
    if (random_() % 3 == 0) AddFault();
  }

  void AddFault() {
    const std::string kind = options_.only.empty() || !faults_.empty()
                                 ? std::string(DrawOneOf(FaultKinds(), random_))
                                 : options_.only;
    const bool same = absl::c_linear_search(kinds_, kind);
    std::unique_ptr<InjectedFault> fault = same ? nullptr : DrawFault(kind, *scene_, random_);
    if (fault == nullptr) return;
    kinds_.push_back(kind);
    faults_.push_back(std::move(fault));
  }

  std::string Words() const {
    std::string words = absl::StrCat(scene_->Words(), ", ",
                                     holds_ == Holds::kNothing   ? "an empty cache"
                                     : holds_ == Holds::kKernels ? "no record"
                                                                 : "a record");
    for (const auto& fault : faults_)
      absl::StrAppend(&words, "; at ", fault->at_s, " s ", fault->Words());
    return words;
  }

  JobSetting Usual() const { return {.flags = {kUsualBudget}}; }

  /// Fills the caches with what an earlier job left.
  bool Prepare() {
    if (holds_ == Holds::kNothing) return true;
    const std::string name = scene_->Words();
    if (warm_.Find(name).empty()) {
      for (const fs::path& folder : scene_->CacheFolders()) warm_.AddKernels(folder);
      const std::unique_ptr<Job> job = scene_->Start(Usual());
      const Ended ended = job->command().Wait(kUsualLimit);
      if (ended.code != 0) {
        Find(FindingOfCase::kUnusableKey, absl::StrCat("before any fault: ", ended.code, ": ",
                                                       Shortened(ended.out), Shortened(ended.err)));
        return false;
      }
      warm_.Keep(name, scene_->caches(), scene_->CacheFolders());
    } else {
      fs::remove_all(scene_->caches());
      fs::copy(warm_.Find(name), scene_->caches(), fs::copy_options::recursive);
    }
    if (holds_ == Holds::kRecord) {
      AddBystander(*scene_);
    } else {
      for (const char* ending : {"", "-wal", "-shm"})
        fs::remove(scene_->database().string() + ending);
    }
    before_ = RecordsIn(*scene_);
    return true;
  }

  void RunFaulted() {
    JobSetting setting = {.environment = {{"COCONET_TIMEOUT", absl::StrCat(kTimeout)}},
                          .flags = {absl::StrCat("--run_s=", run_s_)}};
    for (const auto& fault : faults_) fault->Prepare(*scene_, setting);
    double limit = kLimit;
    for (const auto& fault : faults_) limit += fault->Delay();
    const std::unique_ptr<Job> job = scene_->Start(setting);
    absl::c_sort(faults_, [](const auto& a, const auto& b) { return a->at_s < b->at_s; });
    const double begin = Seconds();
    size_t next = 0;
    while (next < faults_.size()) {
      if (!job->HasEnded() && Seconds() - begin < faults_[next]->at_s) {
        Sleep(0.005);
        continue;
      }
      report_.met = !job->HasEnded();
      faults_[next++]->Strike(*scene_, *job);
    }
    while (!job->HasEnded() && Seconds() - begin < limit) Sleep(0.02);
    // Open MPI 4.1's mpirun does not always end after a death on a node that it is not on; the
    // ranks do.
    const bool killed = absl::c_any_of(faults_, [](const auto& f) { return f->Kills(); });
    const bool all_gone =
        job->HasEnded() || (killed && scene_->world() == JobWorld::kNodes &&
                            job->Processes() == std::vector{job->command().pid()});
    if (!all_gone)
      Find(FindingOfCase::kHang,
           absl::StrCat("the job goes on after ", limit, " s: ", Shortened(job->command().out()),
                        Shortened(job->command().err())));
    if (!job->HasEnded()) End(*job);
    const Ended ended = job->command().Wait(10);
    said_ += ended.out + ended.err;
    report_.end_of_job = absl::StrCat(ended.code, ": ", Shortened(ended.out));
    for (const auto& fault : faults_) {
      for (const Ended& other : fault->OtherJobs()) {
        if (other.code == kTookTooLong) Find(FindingOfCase::kHang, "a job beside it goes on");
        said_ += other.out + other.err;
        CheckOutput(other, "a job beside it");
      }
    }
    for (const auto& fault : faults_) fault->Undo(*scene_);
    if (all_gone) {
      CheckOutput(ended, "the job");
      CheckAllReport(ended);
    }
  }

  /// Kills what is left of a job.
  static void End(Job& job) {
    for (pid_t pid : job.Processes()) kill(pid, SIGKILL);
    job.command().Signal(SIGKILL);
  }

  /// Answers, crashes, words.
  void CheckOutput(const Ended& ended, absl::string_view who) {
    const Lines lines(ended.out);
    if (!lines.wrong.empty())
      Find(FindingOfCase::kWrongAnswer, absl::StrCat(who, ": ", lines.wrong));
    if (!lines.wordless.empty())
      Find(FindingOfCase::kNoResult, absl::StrCat(who, ": ", lines.wordless));
    const bool killed = absl::c_any_of(faults_, [](const auto& f) { return f->Kills(); });
    int signal = ended.code < 0 && ended.code != kTookTooLong ? -ended.code : 0;
    std::smatch match;
    if (std::regex_search(ended.err, match, std::regex("exited on signal ([0-9]+)")))
      signal = std::stoi(match[1]);
    const bool ours = signal == 0 || (killed && (signal == SIGKILL || signal == SIGTERM));
    const bool broken = absl::StrContains(ended.err, "CC_CHECK") ||
                        absl::StrContains(ended.err, "check failed") ||
                        absl::StrContains(ended.err, "terminate called");
    if (!ours || broken)
      Find(FindingOfCase::kCrash, absl::StrCat(who, ": signal ", signal, ": ", Shortened(ended.out),
                                               Shortened(ended.err)));
  }

  /// A job whose fault kills no process prints a result on every rank; where one rank prints an
  /// error, mpirun may end the others first.
  void CheckAllReport(const Ended& ended) {
    const Lines lines(ended.out);
    const int said = lines.right + lines.errors + (lines.wrong.empty() ? 0 : 1);
    const bool may_end = absl::c_any_of(faults_, [](const auto& f) { return f->Kills(); });
    const int want = may_end                                       ? 0
                     : lines.errors > 0 && scene_->has_processes() ? 1
                                                                   : scene_->ranks();
    if (said < want)
      Find(FindingOfCase::kNoResult,
           absl::StrCat("the job: ", said, " of ", want, " ranks say how they ended: code ",
                        ended.code, ": ", Shortened(ended.out), Shortened(ended.err)));
  }

  void RunUsual() {
    const std::unique_ptr<Job> job = scene_->Start(Usual());
    const Ended ended = job->command().Wait(kUsualLimit);
    said_ += ended.out + ended.err;
    const Lines lines(ended.out);
    CheckOutput(ended, "the next job");
    if (ended.code == kTookTooLong)
      Find(FindingOfCase::kHang,
           absl::StrCat("the next job goes on: ", Shortened(ended.out), Shortened(ended.err)));
    else if (ended.code != 0 || lines.right != scene_->ranks())
      return Find(FindingOfCase::kUnusableKey,
                  absl::StrCat("the next job: ", ended.code, ": ", Shortened(ended.out),
                               Shortened(ended.err)));
    if (!lines.complete) return;
    JobSetting setting = Usual();
    setting.environment["COCONET_ASSERT_CACHED"] = std::string("1");
    const Ended again = scene_->Start(setting)->command().Wait(kUsualLimit);
    CheckOutput(again, "the job after the next");
    if (again.code != 0)
      Find(FindingOfCase::kUnusableKey, absl::StrCat("what the next job stored is not found: ",
                                                     Shortened(again.out), Shortened(again.err)));
  }

  void CheckRecords() {
    const Records after = RecordsIn(*scene_);
    const bool removed = absl::c_any_of(faults_, [](const auto& f) { return f->RemovesRecords(); });
    const bool damaged = absl::c_any_of(faults_, [](const auto& f) { return f->DamagesRecords(); });
    const bool told = absl::StrContains(said_, "warning: tuning cache");
    for (const auto& [key, complete] : before_) {
      const auto found = after.find(key);
      const bool kept = found != after.end() && (found->second || !complete);
      if (kept || removed || (damaged && told)) continue;
      Find(FindingOfCase::kLostRecord,
           absl::StrCat(key == Fingerprint(kBystanderKey) ? "another job's record" : "the record",
                        found == after.end() ? " is gone" : " is incomplete",
                        damaged ? ", of a damaged file, and nothing was said" : "", ": ",
                        Shortened(said_)));
    }
  }

  /// Ends processes whose parents have left them to this one.
  static void Reap() {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  enum class Holds : uint8_t { kNothing, kKernels, kRecord };

  std::mt19937_64 random_;
  const CaseOptions& options_;
  WarmCaches& warm_;
  CaseReport report_;
  std::unique_ptr<Scene> scene_;
  Holds holds_{};
  double run_s_ = 0;
  std::vector<std::string> kinds_;
  std::vector<std::unique_ptr<InjectedFault>> faults_;
  Records before_;
  std::string said_;  // by all jobs from the fault on
};

}  // namespace

std::string Name(FindingOfCase finding) {
  switch (finding) {
    case FindingOfCase::kUnusableKey:
      return "key that a later job cannot tune or run";
    case FindingOfCase::kWrongAnswer:
      return "wrong answer";
    case FindingOfCase::kHang:
      return "hang past the deadline";
    case FindingOfCase::kLostRecord:
      return "lost record";
    case FindingOfCase::kCrash:
      return "crash";
    case FindingOfCase::kNoResult:
      return "missing result";
  }
  CC_CHECK(false);
  return "";
}

WarmCaches::WarmCaches(fs::path folder) : folder_(std::move(folder)) {
  fs::create_directories(folder_);
}

fs::path WarmCaches::Find(const std::string& name) const {
  const auto at = kept_.find(name);
  return at == kept_.end() ? fs::path() : at->second;
}

void WarmCaches::Keep(const std::string& name, const fs::path& caches,
                      const std::vector<fs::path>& folders) {
  const fs::path to = folder_ / absl::StrCat(kept_.size());
  fs::copy(caches, to, fs::copy_options::recursive);
  kept_[name] = to;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "objects"))
      fs::copy(folder / "objects", folder_ / "objects",
               fs::copy_options::recursive | fs::copy_options::skip_existing);
  }
}

void WarmCaches::AddKernels(const fs::path& folder) const {
  if (!fs::exists(folder_ / "objects")) return;
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);
  fs::copy(folder_ / "objects", folder / "objects", fs::copy_options::recursive);
}

CaseReport RunFaultCase(uint64_t seed, const CaseOptions& options, WarmCaches& warm) {
  return CaseRun(seed, options, warm).Run();
}

}  // namespace coconet
