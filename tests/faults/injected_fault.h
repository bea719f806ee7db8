#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/faults/scene.h"

namespace coconet {

/// Something that befalls a job.
class InjectedFault {
 public:
  virtual ~InjectedFault() = default;

  /// What it is, with all that was drawn: "SIGKILL of process 1".
  virtual std::string Words() const = 0;
  /// Before the job begins.
  virtual void Prepare(Scene& /*scene*/, JobSetting& /*setting*/) {}
  /// While the job runs, at `at_s`, or when it has ended before.
  virtual void Strike(Scene& /*scene*/, Job& /*job*/) {}
  /// Takes back what does not stay, before the next job: a full disk, processes that stand still.
  virtual void Undo(Scene& /*scene*/) {}

  /// Jobs that it began, when they have ended.
  virtual std::vector<Ended> OtherJobs() { return {}; }

  /// Whether it ends processes by signals, so that a job need not say how it ended.
  virtual bool Kills() const { return false; }
  /// Whether the job may end without an error, and without having done what is asked.
  virtual bool MayEndEarly() const { return Kills(); }
  /// Whether records may be gone: the file that held them was damaged, which must be said, or was
  /// removed, which need not.
  virtual bool DamagesRecords() const { return false; }
  virtual bool RemovesRecords() const { return false; }
  /// For how long the job may take longer, in seconds.
  virtual double Delay() const { return 0; }

  double at_s = 0;  // after the job's begin
};

/// The kinds, as --only takes them.
const std::vector<absl::string_view>& FaultKinds();

/// One of the kind; null where it cannot be made in such a scene or on this machine.
std::unique_ptr<InjectedFault> DrawFault(absl::string_view kind, const Scene& scene,
                                         std::mt19937_64& random);

// By file: signals and load (process_faults.cc), files (file_faults.cc), what ranks and jobs are
// told (setting_faults.cc). Null for another file's kind.
std::unique_ptr<InjectedFault> DrawProcessFault(absl::string_view kind, const Scene& scene,
                                                std::mt19937_64& random);
std::unique_ptr<InjectedFault> DrawFileFault(absl::string_view kind, const Scene& scene,
                                             std::mt19937_64& random);
std::unique_ptr<InjectedFault> DrawSettingFault(absl::string_view kind, const Scene& scene,
                                                std::mt19937_64& random);

/// In [0, below), and one of the elements.
inline size_t DrawBelow(size_t below, std::mt19937_64& random) { return random() % below; }
template <class T>
const T& DrawOneOf(const std::vector<T>& all, std::mt19937_64& random) {
  return all[random() % all.size()];
}

}  // namespace coconet
