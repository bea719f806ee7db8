#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/faults/injected_fault.h"

namespace coconet {
namespace {

/// The clock jumps while the job runs.
class MovingClock final : public InjectedFault {
 public:
  explicit MovingClock(int64_t by_s) : by_s_(by_s) {}
  std::string Words() const override { return absl::StrCat("the clock moves by ", by_s_, " s"); }
  void Prepare(Scene&, JobSetting& setting) override {
    setting.environment["LD_PRELOAD"] =
        std::filesystem::absolute("tests/faults/libclock_shift.so").string();
    setting.environment["COCONET_TEST_CLOCK"] = absl::StrCat(at_s, ":", by_s_);
  }

 private:
  const int64_t by_s_;
};

/// The job is one of another build, or one of its ranks is.
class OtherBuild final : public InjectedFault {
 public:
  explicit OtherBuild(int rank) : rank_(rank) {}
  std::string Words() const override {
    return rank_ < 0 ? "another build" : absl::StrCat("another build on rank ", rank_);
  }
  void Prepare(Scene&, JobSetting& setting) override {
    setting.other_build = rank_ < 0;
    setting.odd_build = rank_ >= 0;
    setting.odd_rank = rank_;
  }

 private:
  const int rank_;
};

/// One rank, or all, has other settings in its environment.
class OtherEnvironment final : public InjectedFault {
 public:
  OtherEnvironment(int rank, std::string name, std::string value)
      : rank_(rank), name_(std::move(name)), value_(std::move(value)) {}
  std::string Words() const override {
    return absl::StrCat(name_, "=", value_, rank_ < 0 ? "" : absl::StrCat(" on rank ", rank_));
  }
  void Prepare(Scene&, JobSetting& setting) override {
    (rank_ < 0 ? setting.environment : setting.odd_environment)[name_] = value_;
    if (rank_ >= 0) setting.odd_rank = rank_;
  }

 private:
  const int rank_;
  const std::string name_, value_;
};

/// One rank asks for something else.
class OtherFlag final : public InjectedFault {
 public:
  OtherFlag(int rank, std::string flag) : rank_(rank), flag_(std::move(flag)) {}
  std::string Words() const override { return absl::StrCat("--", flag_, " on rank ", rank_); }
  void Prepare(Scene&, JobSetting& setting) override {
    setting.flags.push_back(absl::StrCat("--odd=", rank_, ":", flag_));
  }

 private:
  const int rank_;
  const std::string flag_;
};

/// Other jobs begin beside it: with the same key, or one with another, which the flag `other`
/// makes.
class JobsBeside final : public InjectedFault {
 public:
  JobsBeside(int same, std::string other) : same_(same), other_(std::move(other)) {}
  std::string Words() const override {
    return absl::StrCat(same_, " more jobs with the same key",
                        other_.empty() ? "" : absl::StrCat(", one with ", other_));
  }
  void Prepare(Scene& scene, JobSetting&) override {
    for (int i = 0; i < same_; ++i) jobs_.push_back(scene.Start({}));
    if (!other_.empty()) jobs_.push_back(scene.Start({.flags = {other_}}));
  }
  std::vector<Ended> OtherJobs() override {
    std::vector<Ended> ended;
    for (std::unique_ptr<Job>& job : jobs_) ended.push_back(job->command().Wait(kLimitSeconds));
    jobs_.clear();
    return ended;
  }
  double Delay() const override { return 60; }

 private:
  static constexpr double kLimitSeconds = 120;
  const int same_;
  const std::string other_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace

std::unique_ptr<InjectedFault> DrawSettingFault(absl::string_view kind, const Scene& scene,
                                                std::mt19937_64& random) {
  const int rank = static_cast<int>(DrawBelow(scene.ranks(), random));
  // Threads have one environment, and nodes are told apart by their names.
  const int some_rank = scene.has_processes() && random() % 4 != 0 ? rank : -1;
  constexpr int64_t kDay = 24 * 3600;
  if (kind == "clock") {
    const std::vector<int64_t> jumps = {-3700,       3700,       -2 * kDay,   2 * kDay,
                                        -400 * kDay, 400 * kDay, 7300 * kDay, -5000 * kDay};
    return std::make_unique<MovingClock>(DrawOneOf(jumps, random));
  }
  if (kind == "two_builds")
    return std::make_unique<OtherBuild>(scene.world() == JobWorld::kProcesses ? some_rank : -1);
  if (kind == "two_processors") {
    const std::vector<std::string> levels = {"x86-64", "x86-64-v2", "x86-64-v3"};
    return std::make_unique<OtherEnvironment>(some_rank, "COCONET_HOST_ARCH",
                                              DrawOneOf(levels, random));
  }
  if (kind == "options") {
    if (scene.has_processes() && random() % 2 == 0) {
      const std::vector<std::pair<std::string, std::string>> settings = {
          {"COCONET_VERIFY", "1"}, {"COCONET_ASSERT_CACHED", "1"}, {"COCONET_DEBUG", "2"},
          {"COCONET_SEED", "77"},  {"COCONET_TIMEOUT", "9"},       {"COCONET_CXX", "/no/compiler"}};
      const auto& [name, value] = DrawOneOf(settings, random);
      return std::make_unique<OtherEnvironment>(rank, name, value);
    }
    const std::vector<std::string> flags = {"order=rank",       "rounding=each", "nans=none",
                                            "policy=cache",     "budget=0.2",    "program=adamw",
                                            "sizes=N=5;A=4;B=2"};
    return std::make_unique<OtherFlag>(rank, DrawOneOf(flags, random));
  }
  if (kind == "other_jobs") {
    const std::vector<std::string> others = {"", "--order=rank", "--rounding=each", "--nans=none"};
    return std::make_unique<JobsBeside>(1 + static_cast<int>(random() % 2),
                                        DrawOneOf(others, random));
  }
  return nullptr;
}

}  // namespace coconet
