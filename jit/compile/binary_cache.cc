#include "jit/compile/binary_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

namespace coconet {
namespace {

constexpr absl::string_view kObjects = "objects";
constexpr absl::string_view kTemporary = "tmp";
constexpr absl::string_view kTrailer = "\ncoconet sha256 ";
constexpr size_t kDigits = 64;
constexpr size_t kTrailerSize = kTrailer.size() + kDigits + 1;
constexpr off_t kLargestFile =
    off_t{1} << 30;  // far above any binary; bounds what a damaged directory makes us read
constexpr int kReadFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;

absl::Status FileError(absl::string_view call, absl::string_view path, int error) {
  return absl::UnavailableError(absl::StrCat(call, " ", path, ": ", std::strerror(error)));
}

/// OK when only this user or root can have written the open file.
absl::Status CheckOwner(const Descriptor& file, absl::string_view path) {
  struct stat info;
  if (fstat(file.get(), &info) != 0) return FileError("stat", path, errno);
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": want owner ", geteuid(), " (you), have ", info.st_uid,
                     "; choose a directory of your own with COCONET_CACHE_DIR"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, ": others can write to it, and so decide what your programs run; chmod go-w ", path));
  }
  return absl::OkStatus();
}

enum class Missing { kFail, kMake };

absl::StatusOr<Descriptor> OpenFolder(const Descriptor& parent, absl::string_view name,
                                      Missing missing) {
  const std::string path(name);
  if (missing == Missing::kMake && mkdirat(parent.get(), path.c_str(), 0700) != 0 &&
      errno != EEXIST) {
    return FileError("mkdir", path, errno);
  }
  Descriptor folder(openat(parent.get(), path.c_str(), kReadFlags | O_DIRECTORY));
  if (!folder) return FileError("open", path, errno);
  RETURN_IF_ERROR(CheckOwner(folder, path));
  return folder;
}

absl::string_view Shard(absl::string_view name) { return name.substr(0, 2); }

std::string PathOf(absl::string_view dir, absl::string_view name) {
  return absl::StrCat(dir, "/", kObjects, "/", Shard(name), "/", name);
}

absl::StatusOr<Descriptor> OpenShard(const Descriptor& root, absl::string_view name,
                                     Missing missing) {
  ASSIGN_OR_RETURN(const Descriptor objects, OpenFolder(root, kObjects, missing));
  return OpenFolder(objects, Shard(name), missing);
}

std::optional<std::string> ReadAll(const Descriptor& file) {
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kLargestFile)
    return std::nullopt;
  std::string content(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = read(file.get(), &content[done], content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<size_t>(n);
  }
  return content;
}

/// The files that this process found complete, so that each is read and hashed once. Thread-safe.
class CompleteFiles {
 public:
  static CompleteFiles& OfProcess() {
    static auto* files = new CompleteFiles;
    return *files;
  }
  bool Has(const struct stat& info) {
    const std::lock_guard lock(mutex_);
    return versions_.contains(VersionOf(info));
  }
  /// A file that was written within the clock tick of `info` could be written again and look the
  /// same: only one that has not changed for some seconds, which is coarser than the file systems'
  /// clocks, is remembered.
  void Add(const struct stat& info) {
    constexpr time_t kSeconds = 3;
    if (time(nullptr) - std::max(info.st_mtim.tv_sec, info.st_ctim.tv_sec) < kSeconds) return;
    const std::lock_guard lock(mutex_);
    versions_.insert(VersionOf(info));
  }

 private:
  /// Device, inode, size, times of modification and of change.
  using Version = std::array<int64_t, 7>;
  static Version VersionOf(const struct stat& info) {
    return {static_cast<int64_t>(info.st_dev),
            static_cast<int64_t>(info.st_ino),
            info.st_size,
            info.st_mtim.tv_sec,
            info.st_mtim.tv_nsec,
            info.st_ctim.tv_sec,
            info.st_ctim.tv_nsec};
  }
  std::mutex mutex_;
  absl::flat_hash_set<Version> versions_;  // guarded by mutex_
};

absl::StatusOr<Descriptor> OpenObject(const Descriptor& root, absl::string_view name) {
  ASSIGN_OR_RETURN(const Descriptor shard, OpenShard(root, name, Missing::kFail));
  Descriptor file(openat(shard.get(), std::string(name).c_str(), kReadFlags | O_NONBLOCK));
  if (!file) return FileError("open", name, errno);
  RETURN_IF_ERROR(CheckOwner(file, name));
  return file;
}

/// The content of a file that is complete and whose hash is right; else nullopt.
std::optional<std::string> ReadChecked(const Descriptor& file) {
  std::optional<std::string> content = ReadAll(file);
  if (!content.has_value() || content->size() < kTrailerSize) return std::nullopt;
  absl::string_view trailer = absl::string_view(*content).substr(content->size() - kTrailerSize);
  if (!absl::ConsumePrefix(&trailer, kTrailer) || trailer.back() != '\n') return std::nullopt;
  const std::string digits(trailer.substr(0, kDigits));
  content->resize(content->size() - kTrailerSize);
  if (Fingerprint(*content) != digits) return std::nullopt;
  return content;
}

std::optional<std::string> ReadChecked(const Descriptor& root, absl::string_view name) {
  const absl::StatusOr<Descriptor> file = OpenObject(root, name);
  return file.ok() ? ReadChecked(*file) : std::nullopt;
}

bool IsComplete(const Descriptor& root, absl::string_view name) {
  const absl::StatusOr<Descriptor> file = OpenObject(root, name);
  struct stat info;
  if (!file.ok() || fstat(file->get(), &info) != 0) return false;
  CompleteFiles& known = CompleteFiles::OfProcess();
  if (known.Has(info)) return true;
  if (!ReadChecked(*file).has_value()) return false;
  known.Add(info);
  return true;
}

/// The temporary directory of this process. It outlives every cache, because files in it
/// may be loaded.
absl::StatusOr<std::string> ProcessDir() {
  static std::mutex mutex;
  static std::unique_ptr<TempDir> dir;
  const std::lock_guard lock(mutex);
  const bool inherited_by_fork = dir != nullptr && dir->owner() != getpid();
  if (dir == nullptr || inherited_by_fork) {
    ASSIGN_OR_RETURN(dir, TempDir::Make());
  }
  return dir->path();
}

/// mkdir -p with mode 0700.
void MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0700);
    if (slash == std::string::npos) return;
  }
}

Descriptor OpenRoot(const std::string& dir) {
  return Descriptor(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Where a path that a cache returned lies.
struct Place {
  Descriptor root;
  std::string name;
};

std::optional<Place> PlaceOf(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (!BinaryCache::IsName(name)) return std::nullopt;
  const std::string below = PathOf("", name);
  if (!absl::EndsWith(path, below)) return std::nullopt;
  Descriptor root = OpenRoot(path.substr(0, path.size() - below.size()));
  if (!root || !CheckOwner(root, path).ok()) return std::nullopt;
  return Place{std::move(root), std::move(name)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<BinaryCache>> BinaryCache::Open(const std::string& dir) {
  std::error_code ignored;
  const std::string path = dir.empty() ? "" : std::filesystem::absolute(dir, ignored).string();
  Descriptor root;
  int error = ENOENT;
  if (!path.empty()) {
    MakeFolders(path);
    root = OpenRoot(path);
    error = errno;
  }
  if (root) RETURN_IF_ERROR(CheckOwner(root, path));
  auto cache = std::unique_ptr<BinaryCache>(new BinaryCache(path, std::move(root)));
  if (!cache->root_) cache->Note(path.empty() ? "none is set" : std::strerror(error));
  return cache;
}

/// So that a name cannot stand for a file elsewhere.
bool BinaryCache::IsName(absl::string_view name) {
  if (name.size() <= kDigits + 1 || name[kDigits] != '.') return false;
  const auto hex = [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); };
  return std::all_of(name.begin(), name.begin() + kDigits, hex) &&
         std::all_of(name.begin() + kDigits + 1, name.end(),
                     [](char c) { return absl::ascii_isalpha(c); });
}

std::optional<std::string> BinaryCache::Find(absl::string_view name) const {
  CC_CHECK(IsName(name));
  if (root_ && IsComplete(root_, name)) return PathOf(dir_, name);
  if (!noted()) return std::nullopt;
  const absl::StatusOr<std::string> temporary = ProcessDir();
  if (temporary.ok() && IsComplete(OpenRoot(*temporary), name)) return PathOf(*temporary, name);
  return std::nullopt;
}

std::optional<std::string> BinaryCache::Read(absl::string_view name) const {
  CC_CHECK(IsName(name));
  if (!root_) return std::nullopt;
  return ReadChecked(root_, name);
}

std::optional<std::string> BinaryCache::ReadAt(const std::string& path) {
  const std::optional<Place> place = PlaceOf(path);
  return place.has_value() ? ReadChecked(place->root, place->name) : std::nullopt;
}

bool BinaryCache::HasAt(const std::string& path) {
  const std::optional<Place> place = PlaceOf(path);
  return place.has_value() && IsComplete(place->root, place->name);
}

absl::StatusOr<std::string> BinaryCache::Store(absl::string_view name, absl::string_view content,
                                               Existing existing) {
  CC_CHECK(IsName(name));
  if (root_) {
    absl::StatusOr<std::string> path = StoreIn(dir_, root_, name, content, existing);
    if (path.ok()) return path;
    Note(path.status().message());
  }
  ASSIGN_OR_RETURN(const std::string temporary, ProcessDir());
  const Descriptor root = OpenRoot(temporary);
  if (!root) return FileError("open", temporary, errno);
  return StoreIn(temporary, root, name, content, existing);
}

absl::StatusOr<std::string> BinaryCache::StoreIn(const std::string& dir, const Descriptor& root,
                                                 absl::string_view name, absl::string_view content,
                                                 Existing existing) {
  ASSIGN_OR_RETURN(const Descriptor temporary, OpenFolder(root, kTemporary, Missing::kMake));
  RemoveAbandonedFiles(temporary);
  ASSIGN_OR_RETURN(const Descriptor shard, OpenShard(root, name, Missing::kMake));

  // Machines that share the directory may share process numbers, but hardly the nanosecond, too.
  const std::string target(name),
      part = absl::StrCat(name, ".", getpid(), ".", absl::GetCurrentTimeNanos());
  const absl::Cleanup remove_part = [&] { unlinkat(temporary.get(), part.c_str(), 0); };
  Descriptor file(openat(temporary.get(), part.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return FileError("create", part, errno);
  if (!WriteAll(file, content) ||
      !WriteAll(file, absl::StrCat(kTrailer, Fingerprint(content), "\n"))) {
    return FileError("write", part, errno);
  }
  if (fsync(file.get()) != 0 && errno != EINVAL && errno != ENOSYS)
    return FileError("write", part, errno);

  bool there = false;
  if (existing == Existing::kKeep) {
    there = linkat(temporary.get(), part.c_str(), shard.get(), target.c_str(), 0) == 0 ||
            (errno == EEXIST && IsComplete(root, name));
  }
  if (!there && renameat(temporary.get(), part.c_str(), shard.get(), target.c_str()) != 0)
    return FileError("rename", target, errno);
  fsync(shard.get());
  return PathOf(dir, name);
}

void BinaryCache::RemoveAbandonedFiles(const Descriptor& temporary) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(cleaned_, true)) return;
  }
  constexpr time_t kDay = 24 * 60 * 60;
  const time_t now = time(nullptr);
  DIR* folder = fdopendir(openat(temporary.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    struct stat info;
    if (fstatat(temporary.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode) && now - info.st_mtime > kDay) {
      unlinkat(temporary.get(), entry->d_name, 0);
    }
  }
  closedir(folder);
}

BinaryCache::Lock BinaryCache::Acquire(absl::string_view name, absl::Duration patience) {
  CC_CHECK(IsName(name));
  const absl::Time deadline = absl::Now() + patience;
  if (!root_) return {};
  const absl::StatusOr<Descriptor> temporary = OpenFolder(root_, kTemporary, Missing::kMake);
  if (!temporary.ok()) return {};
  const std::string entry = absl::StrCat(name, ".lock");
  Descriptor file(
      openat(temporary->get(), entry.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return {};
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || absl::Now() >= deadline) return {};
    absl::SleepFor(absl::Milliseconds(2));
  }
  return Lock(std::move(file), absl::StrCat(dir_, "/", kTemporary, "/", entry));
}

BinaryCache::Lock::~Lock() {
  if (!file_) return;
  // Before unlocking, so that waiters, and whoever makes a new lock file, find the binary.
  unlink(path_.c_str());
  // Explicitly, because a process that another thread forked may hold a copy of the descriptor.
  flock(file_.get(), LOCK_UN);
}

void BinaryCache::Note(absl::string_view why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(noted_, true)) return;
  note_ = absl::StrCat(
      "cache directory ", dir_.empty() ? "" : absl::StrCat(dir_, ": "), why,
      "; compiled kernels are kept for this process only. Make it writable, or name another with "
      "COCONET_CACHE_DIR");
}

void BinaryCache::NoteUnlessWritable() {
  if (!root_ || faccessat(root_.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) return;
  Note(std::strerror(errno));
}

bool BinaryCache::noted() const {
  const std::lock_guard lock(mutex_);
  return noted_;
}

std::string BinaryCache::TakeNote() {
  const std::lock_guard lock(mutex_);
  return std::exchange(note_, "");
}

}  // namespace coconet
