#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/commands/command.h"

namespace coconet {

/// How the ranks of a job live.
enum class JobWorld : uint8_t {
  kThreads,       // of one process
  kThreadsApart,  // so, but each with a cache folder of its own
  kProcesses,     // of one machine
  kNodes,         // one process on each, in network namespaces, with a cache folder each
};
std::string Name(JobWorld world);

/// What a job tunes and runs.
struct JobProgram {
  std::string name, sizes;  // as job_worker takes them
};
const std::vector<JobProgram>& JobPrograms();

/// Deviations of one job from the usual one.
struct JobSetting {
  std::map<std::string, std::string> environment;
  std::vector<std::string> flags;      // of job_worker
  std::vector<std::string> prefix;     // of the command
  std::vector<std::string> of_mpirun;  // options
  /// If ranks are processes: more environment, and another build, for one rank.
  int odd_rank = -1;
  std::map<std::string, std::string> odd_environment;
  bool odd_build = false;
  bool other_build = false;  // of all ranks
};

/// A job that runs.
class Job {
 public:
  Job(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
      int ranks);

  int ranks() const { return ranks_; }
  Command& command() { return command_; }
  /// The processes that are ranks, by their number as far as these begin in order.
  std::vector<pid_t> Processes() const;
  bool HasEnded() const;

 private:
  int ranks_;
  Command command_;
};

/// The place of one case: a program, a world, and the folders of its caches. Removed in the end,
/// with all that it has mounted.
class Scene {
 public:
  Scene(JobProgram program, JobWorld world, int ranks);
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  JobWorld world() const { return world_; }
  int ranks() const { return ranks_; }
  const JobProgram& program() const { return program_; }
  bool has_processes() const {
    return world_ == JobWorld::kProcesses || world_ == JobWorld::kNodes;
  }
  std::string Words() const;

  /// What holds the cache folders of all ranks, and each of them; the first holds the tuning cache.
  std::filesystem::path caches() const { return folder_ / "caches"; }
  std::vector<std::filesystem::path> CacheFolders() const;
  std::filesystem::path database() const { return CacheFolders()[0] / "tuning.db"; }

  std::unique_ptr<Job> Start(const JobSetting& setting) const;

 private:
  std::vector<std::string> ArgvOf(const JobSetting& setting) const;
  std::vector<std::string> OnNodes(const JobSetting& setting,
                                   const std::vector<std::string>& worker) const;

  const JobProgram program_;
  const JobWorld world_;
  const int ranks_;
  std::filesystem::path folder_;
};

/// Whether this process may mount; if so, what it mounts from now on is seen by its children alone.
bool MayMount();
/// Whether clusters of network namespaces can be made here.
bool MayMakeNodes();

}  // namespace coconet
