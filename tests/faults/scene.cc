#include "tests/faults/scene.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/testing/separate_folders.h"
#include "coconet/base/status.h"
#include "tests/harness/program_texts.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr char kWorker[] = "tests/faults/job_worker";
constexpr char kOtherBuild[] = "tests/faults/job_worker_of_another_build";
constexpr char kCluster[] = "bench/cluster/run.sh";

/// Runs on a node, whose cache is the folder in which all nodes look for theirs. For node $1 only:
/// $2, the settings of its environment.
constexpr char kOnNode[] = R"sh(
mkdir -p "$0/$(hostname)" "$0/here" && mount --bind "$0/$(hostname)" "$0/here" || exit 125
odd="$1" settings="$2"; shift 2; [ "$(hostname)" = "$odd" ] || settings=
exec env $settings "$@")sh";

std::string JoinSettings(const std::map<std::string, std::string>& environment) {
  return absl::StrJoin(environment, " ", absl::PairFormatter("="));
}

void Append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

std::string Name(JobWorld world) {
  switch (world) {
    case JobWorld::kThreads:
      return "threads";
    case JobWorld::kThreadsApart:
      return "threads apart";
    case JobWorld::kProcesses:
      return "processes";
    case JobWorld::kNodes:
      return "nodes";
  }
  CC_CHECK(false);
  return "";
}

const std::vector<JobProgram>& JobPrograms() {
  static const auto& programs = *new std::vector<JobProgram>{
      {"sgd", "N=2001"},
      {"sgd", "N=1"},
      {"momentum", "N=703"},
      {"adam", "N=1999"},
      {"clip", "N=1,64,70"},
      {"stochastic", "N=1023"},
      {"attention", "B=1;S=12;H=24;K=20"},
      {"exchange.coco", "A=12;S=12;D=36"},
  };
  return programs;
}

Job::Job(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
         int ranks)
    : ranks_(ranks), command_(std::move(argv), environment) {}

std::vector<pid_t> Job::Processes() const {
  std::vector<pid_t> found;
  // Names of processes are cut to 15 letters.
  for (const char* name : {"job_worker", "job_worker_of_a"}) {
    for (pid_t pid : command_.Descendants(name)) found.push_back(pid);
  }
  if (found.empty() && IsRunning(command_.pid())) found.push_back(command_.pid());
  std::sort(found.begin(), found.end());
  return found;
}

bool Job::HasEnded() const {
  siginfo_t info = {};
  // Leaves the process to Wait.
  return waitid(P_PID, static_cast<id_t>(command_.pid()), &info, WEXITED | WNOHANG | WNOWAIT) ==
             0 &&
         info.si_pid == command_.pid();
}

Scene::Scene(JobProgram program, JobWorld world, int ranks)
    : program_(std::move(program)), world_(world), ranks_(ranks) {
  std::string name = (fs::temp_directory_path() / "coconet_faults_XXXXXX").string();
  CC_CHECK(mkdtemp(name.data()) != nullptr);
  folder_ = name;
  fs::create_directories(caches());
  fs::create_directories(folder_ / "tmp");
  std::ofstream(folder_ / "exchange.coco") << kExchange;
}

Scene::~Scene() {
  std::error_code error;
  // Innermost first; EINVAL where nothing is mounted.
  for (const fs::path& folder : CacheFolders()) {
    umount2((folder / "tuning.db").c_str(), MNT_DETACH);
    umount2(folder.c_str(), MNT_DETACH);
  }
  umount2(caches().c_str(), MNT_DETACH);
  fs::remove_all(folder_, error);
}

std::string Scene::Words() const {
  return absl::StrCat(program_.name, " ", program_.sizes, ", ", ranks_, " ", Name(world_));
}

std::vector<fs::path> Scene::CacheFolders() const {
  std::vector<fs::path> folders;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (world_ == JobWorld::kThreadsApart)
      folders.push_back(caches() / absl::StrCat(rank) / "cache");
    else if (world_ == JobWorld::kNodes)
      folders.push_back(caches() / absl::StrCat("node", rank));
    else if (rank == 0)
      folders.push_back(caches() / "cache");
  }
  return folders;
}

std::vector<std::string> Scene::ArgvOf(const JobSetting& setting) const {
  const std::string program =
      program_.name == "exchange.coco" ? (folder_ / program_.name).string() : program_.name;
  std::vector<std::string> flags = {absl::StrCat("--program=", program),
                                    absl::StrCat("--sizes=", program_.sizes)};
  Append(flags, setting.flags);
  const auto worker = [&](bool other) {
    std::vector<std::string> argv = {other ? kOtherBuild : kWorker};
    Append(argv, flags);
    return argv;
  };
  std::vector<std::string> argv = setting.prefix;
  if (world_ == JobWorld::kThreads || world_ == JobWorld::kThreadsApart) {
    Append(argv, worker(setting.other_build));
    argv.push_back(absl::StrCat("--ranks=", ranks_));
    if (world_ == JobWorld::kThreadsApart)
      argv.push_back(absl::StrCat("--apart=", caches().string()));
    return argv;
  }
  if (world_ == JobWorld::kNodes) {
    Append(argv, OnNodes(setting, worker(setting.other_build)));
    return argv;
  }
  Append(argv, {"mpirun", "--oversubscribe"});
  Append(argv, setting.of_mpirun);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank > 0) argv.push_back(":");
    Append(argv, {"-n", "1", "env"});
    if (rank == setting.odd_rank) {
      for (const auto& [name, value] : setting.odd_environment)
        argv.push_back(absl::StrCat(name, "=", value));
    }
    Append(argv, worker(setting.other_build || (setting.odd_build && rank == setting.odd_rank)));
  }
  return argv;
}

std::vector<std::string> Scene::OnNodes(const JobSetting& setting,
                                        const std::vector<std::string>& worker) const {
  std::vector<std::string> argv = {kCluster, absl::StrCat("--nodes=", ranks_), "--rate=none"};
  for (const std::string& option : setting.of_mpirun)
    argv.push_back(absl::StrCat("--mpirun=", option));
  Append(argv, {"--", "sh", "-c", kOnNode, caches().string(),
                absl::StrCat("node", setting.odd_rank), JoinSettings(setting.odd_environment)});
  Append(argv, worker);
  return argv;
}

std::unique_ptr<Job> Scene::Start(const JobSetting& setting) const {
  const std::string cache = world_ == JobWorld::kThreadsApart ? kFolderOfThisMachine
                            : world_ == JobWorld::kNodes      ? (caches() / "here").string()
                                                              : CacheFolders()[0].string();
  std::map<std::string, std::string> environment = {
      {"COCONET_CACHE_DIR", cache},
      {"TMPDIR", (folder_ / "tmp").string()},
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
  };
  for (const auto& [name, value] : setting.environment) environment[name] = value;
  return std::make_unique<Job>(ArgvOf(setting), environment, ranks_);
}

bool MayMount() {
  static const bool may = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
                          mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return may;
}

bool MayMakeNodes() {
  static const bool may =
      RunCommand({kCluster, "--nodes=1", "--", "true"},
                 {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}})
          .code == 0;
  return may;
}

}  // namespace coconet
