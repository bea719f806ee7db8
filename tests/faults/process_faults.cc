#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/injected_fault.h"

namespace coconet {
namespace {

/// Whether each rank has written these words.
bool HasEach(const std::string& out, int ranks, absl::string_view words) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!absl::StrContains(out, absl::StrCat("rank ", rank, words))) return false;
  }
  return true;
}

/// SIGKILL of one of the processes, or of all of them at once.
class Killing final : public InjectedFault {
 public:
  Killing(bool all, size_t which, bool recovery) : all_(all), which_(which), recovery_(recovery) {}
  std::string Words() const override {
    return absl::StrCat("SIGKILL of ", all_ ? "all processes" : absl::StrCat("process ", which_),
                        recovery_ ? ", the others go on" : "");
  }
  void Prepare(Scene&, JobSetting& setting) override {
    if (recovery_) setting.of_mpirun.push_back("--enable-recovery");
  }
  void Strike(Scene& scene, Job& job) override {
    // Where the others go on, those that begin wait in MPI_Init for one that died there, for ever.
    const auto begun = [&] { return HasEach(job.command().out(), scene.ranks(), ": begins"); };
    if (recovery_ && !Eventually([&] { return begun() || job.HasEnded(); })) return;
    const std::vector<pid_t> processes = job.Processes();
    for (size_t i = 0; i < processes.size(); ++i) {
      if (all_ || i == which_ % processes.size()) kill(processes[i], SIGKILL);
    }
  }
  bool Kills() const override { return true; }

 private:
  const bool all_;
  const size_t which_;
  const bool recovery_;
};

/// SIGSTOP of one of the processes, for longer than the others wait for it, then SIGCONT.
class Stopping final : public InjectedFault {
 public:
  Stopping(size_t which, double seconds) : which_(which), seconds_(seconds) {}
  std::string Words() const override {
    return absl::StrCat("SIGSTOP of process ", which_, " for ", seconds_, " s");
  }
  void Strike(Scene&, Job& job) override {
    const std::vector<pid_t> processes = job.Processes();
    if (processes.empty()) return;
    const pid_t victim = processes[which_ % processes.size()];
    if (kill(victim, SIGSTOP) != 0) return;
    Sleep(seconds_);
    kill(victim, SIGCONT);
  }
  // Where a rank leaves, mpirun ends the others by signals.
  bool MayEndEarly() const override { return true; }
  double Delay() const override { return seconds_; }

 private:
  const size_t which_;
  const double seconds_;
};

/// Processes that compute on all cores beside the job, which has a lower priority.
class Starving final : public InjectedFault {
 public:
  explicit Starving(int burners) : burners_(burners) {}
  ~Starving() override { End(); }
  std::string Words() const override {
    return absl::StrCat(burners_, " processes that compute, beside a job of lower priority");
  }
  void Prepare(Scene&, JobSetting& setting) override {
    setting.prefix.insert(setting.prefix.begin(), {"nice", "-n", "2"});
    for (int i = 0; i < burners_; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(300);  // ends it, whatever becomes of this process
        for (std::atomic<uint64_t> x = 0;; ++x) {
        }
      }
      if (pid > 0) pids_.push_back(pid);
    }
  }
  void Undo(Scene&) override { End(); }
  bool MayEndEarly() const override { return true; }  // at a deadline
  double Delay() const override { return 120; }

 private:
  void End() {
    for (pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    pids_.clear();
  }
  const int burners_;
  std::vector<pid_t> pids_;
};

}  // namespace

std::unique_ptr<InjectedFault> DrawProcessFault(absl::string_view kind, const Scene& scene,
                                                std::mt19937_64& random) {
  const size_t which = DrawBelow(scene.ranks(), random);
  if (kind == "kill_one" || kind == "kill_all") {
    const bool recovery = scene.world() == JobWorld::kProcesses && random() % 2 == 0;
    return std::make_unique<Killing>(kind == "kill_all", which, recovery);
  }
  if (kind == "stop")
    return std::make_unique<Stopping>(which, 4 + static_cast<double>(random() % 4));
  if (kind == "starve") return std::make_unique<Starving>(2 + static_cast<int>(random() % 4));
  return nullptr;
}

}  // namespace coconet
