#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/faults/injected_fault.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// What of a cache folder.
constexpr absl::string_view kTargets[] = {"tuning.db",      "tuning.db-wal", "tuning.db-shm",
                                          "tuning.db.lock", "one kernel",    "all kernels",
                                          "the folder"};

bool HoldsRecords(absl::string_view target) {
  return target == "tuning.db" || target == "tuning.db-wal" || target == "the folder";
}

/// Existing files of the target in one cache folder.
std::vector<fs::path> FilesOf(absl::string_view target, const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    const bool kernel = absl::EndsWith(name, ".so");
    const bool fits = target == "the folder" || name == target ||
                      (kernel && (target == "one kernel" || target == "all kernels"));
    if (fits && at->is_regular_file(error)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Files of one of the folders; of "one kernel" one.
std::vector<fs::path> Targets(absl::string_view target, const Scene& scene, uint64_t draw) {
  const std::vector<fs::path> folders = scene.CacheFolders();
  const size_t folder = absl::StartsWith(target, "tuning.db") ? 0 : draw % folders.size();
  std::vector<fs::path> files = FilesOf(target, folders[folder]);
  if (target == "one kernel" && !files.empty()) files = {files[draw / 16 % files.size()]};
  return files;
}

/// The target, or the next one in the list that has files; "": none has.
std::string ExistingTarget(absl::string_view target, const Scene& scene, uint64_t draw) {
  const size_t first = std::find(std::begin(kTargets), std::end(kTargets), target) - kTargets;
  for (size_t i = 0; i < std::size(kTargets); ++i) {
    const absl::string_view next = kTargets[(first + i) % std::size(kTargets)];
    if (!Targets(next, scene, draw).empty()) return std::string(next);
  }
  return "";
}

class Removing final : public InjectedFault {
 public:
  Removing(absl::string_view target, bool before, uint64_t draw)
      : target_(target), before_(before), draw_(draw) {}
  std::string Words() const override {
    return absl::StrCat("removes ", target_, before_ ? " before, if it is there" : "");
  }
  void Prepare(Scene& scene, JobSetting&) override {
    if (before_) Remove(scene);
  }
  void Strike(Scene& scene, Job&) override {
    if (!done_) Remove(scene);
  }
  bool RemovesRecords() const override { return HoldsRecords(target_); }

 private:
  void Remove(const Scene& scene) {
    const std::string target = ExistingTarget(target_, scene, draw_);
    if (target.empty()) return;
    done_ = true;
    target_ = target;
    std::error_code error;
    if (target_ == "the folder") {
      const std::vector<fs::path> folders = scene.CacheFolders();
      fs::remove_all(folders[draw_ % folders.size()], error);
      return;
    }
    for (const fs::path& file : Targets(target_, scene, draw_)) fs::remove(file, error);
  }
  bool done_ = false;
  std::string target_;
  const bool before_;
  const uint64_t draw_;
};

enum class Damage : uint8_t { kFlips, kTruncates, kZeros };

class Damaging final : public InjectedFault {
 public:
  Damaging(absl::string_view target, Damage damage, bool before, uint64_t draw)
      : target_(target), damage_(damage), before_(before), draw_(draw) {}
  std::string Words() const override {
    return absl::StrCat(damage_ == Damage::kFlips       ? "flips bits of "
                        : damage_ == Damage::kTruncates ? "truncates "
                                                        : "zeroes a part of ",
                        target_, before_ ? " before, if it is there" : "");
  }
  void Prepare(Scene& scene, JobSetting&) override {
    if (before_) DamageAll(scene, /*runs=*/false);
  }
  void Strike(Scene& scene, Job& job) override {
    if (!done_) DamageAll(scene, !job.HasEnded());
  }
  bool DamagesRecords() const override { return HoldsRecords(target_); }

 private:
  void DamageAll(const Scene& scene, bool runs) {
    const std::string target = ExistingTarget(target_, scene, draw_);
    if (target.empty()) return;
    done_ = true;
    target_ = target;
    std::mt19937_64 random(draw_);
    for (const fs::path& file : Targets(target_, scene, draw_)) {
      // What a process has mapped is replaced, not changed: no program survives a file that shrinks
      // under its mapping.
      const bool mapped = runs && !absl::EndsWith(file.string(), "tuning.db");
      DamageOne(file, mapped, random);
    }
  }
  void DamageOne(const fs::path& file, bool replace, std::mt19937_64& random) const {
    std::string bytes = ReadFile(file);
    if (bytes.empty()) return;
    const size_t at = random() % bytes.size(), length = 1 + random() % 5000;
    switch (damage_) {
      case Damage::kFlips:
        for (int i = 0; i < 20; ++i)
          bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
        break;
      case Damage::kTruncates:
        bytes.resize(at);
        break;
      case Damage::kZeros:
        std::fill(bytes.begin() + static_cast<ptrdiff_t>(at),
                  bytes.begin() + static_cast<ptrdiff_t>(std::min(at + length, bytes.size())),
                  '\0');
        break;
    }
    const fs::path to = replace ? fs::path(file.string() + ".damaged") : file;
    std::error_code error;
    if (damage_ == Damage::kTruncates && !replace) {
      fs::resize_file(file, bytes.size(), error);
      return;
    }
    fs::permissions(file, fs::perms::owner_write, fs::perm_options::add, error);
    std::fstream(to, replace ? std::ios::out | std::ios::binary
                             : std::ios::in | std::ios::out | std::ios::binary)
        << bytes;
    if (replace) {
      fs::permissions(to, fs::perms(0600), error);
      fs::rename(to, file, error);
    }
  }
  bool done_ = false;
  std::string target_;
  const Damage damage_;
  const bool before_;
  const uint64_t draw_;
};

/// A disk of the caches with little room, or none from some moment on.
class FillingDisk final : public InjectedFault {
 public:
  FillingDisk(int64_t room, bool before) : room_(room), before_(before) {}
  std::string Words() const override {
    return absl::StrCat("a disk with ", room_, " bytes left", before_ ? " before" : "");
  }
  void Prepare(Scene& scene, JobSetting&) override {
    const fs::path caches = scene.caches(), aside = caches.string() + ".aside";
    std::error_code error;
    fs::rename(caches, aside, error);
    fs::create_directory(caches);
    mount("tmpfs", caches.c_str(), "tmpfs", 0, "size=1g");
    fs::copy(aside, caches, fs::copy_options::recursive, error);
    fs::remove_all(aside, error);
    if (before_) Fill(scene);
  }
  void Strike(Scene& scene, Job&) override {
    if (!before_) Fill(scene);
  }
  void Undo(Scene& scene) override {
    mount("tmpfs", scene.caches().c_str(), "tmpfs", MS_REMOUNT, "size=1g");
  }

 private:
  void Fill(const Scene& scene) const {
    struct statvfs info;
    if (statvfs(scene.caches().c_str(), &info) != 0) return;
    const uint64_t used = (info.f_blocks - info.f_bfree) * info.f_frsize;
    mount("tmpfs", scene.caches().c_str(), "tmpfs", MS_REMOUNT,
          absl::StrCat("size=", used + static_cast<uint64_t>(room_)).c_str());
  }
  const int64_t room_;
  const bool before_;
};

/// A folder, or the database, that cannot be written.
class Protecting final : public InjectedFault {
 public:
  Protecting(bool database, uint64_t draw) : database_(database), draw_(draw) {}
  std::string Words() const override {
    return absl::StrCat("cannot write ", database_ ? "tuning.db" : "a cache folder");
  }
  void Prepare(Scene& scene, JobSetting&) override {
    const std::vector<fs::path> folders = scene.CacheFolders();
    place_ = database_ ? scene.database() : folders[draw_ % folders.size()];
    std::error_code error;
    if (!fs::exists(place_, error)) place_.clear();
    if (place_.empty()) return;
    mount(place_.c_str(), place_.c_str(), nullptr, MS_BIND, nullptr);
    mount(nullptr, place_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr);
  }
  void Undo(Scene&) override {
    if (!place_.empty()) umount2(place_.c_str(), MNT_DETACH);
    place_.clear();
  }

 private:
  const bool database_;
  const uint64_t draw_;
  fs::path place_;
};

}  // namespace

std::unique_ptr<InjectedFault> DrawFileFault(absl::string_view kind, const Scene& /*scene*/,
                                             std::mt19937_64& random) {
  const absl::string_view target = kTargets[random() % std::size(kTargets)];
  const uint64_t draw = random();
  const bool before = random() % 3 == 0;
  if (kind == "missing") return std::make_unique<Removing>(target, before, draw);
  if (kind == "damaged")
    return std::make_unique<Damaging>(target, static_cast<Damage>(random() % 3), before, draw);
  if (!MayMount()) return nullptr;
  if (kind == "full_disk") {
    const std::vector<int64_t> rooms = {0, 4096, 40'000, 200'000, 1'000'000};
    return std::make_unique<FillingDisk>(DrawOneOf(rooms, random), before);
  }
  if (kind == "read_only") return std::make_unique<Protecting>(random() % 2 == 0, draw);
  return nullptr;
}

}  // namespace coconet
