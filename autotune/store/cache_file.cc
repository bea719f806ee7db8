#include "autotune/store/cache_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// kMigrations[v] leads from version v to v + 1. Never edited once released: later versions append.
///
/// env, program   the two halves of a key's text, each kept once
/// decision       one tuned program: what a hit replays
/// variant        the result of each variant of a key; in how many runs it failed in a way that may
///                pass, one after the other, and in how many the process died
/// in_flight      the processes that run a variant for the first time: where one has died, the
///                variant may have killed it
/// calibration    the rates of a machine and world, which cost models predict by
/// prediction     a time that was predicted by them, beside the measured one
/// trust          what was verified of a variant (struct Trust), a row per machine and fingerprint
/// history        what each run has measured of a key (struct Measured)
/// last_use       when a job last took the record of a key, to the day
/// pin            the variant that the user wants for a key, instead of the best
/// family         programs that differ in sizes alone: a key's text with symbols instead of sizes
/// bucket         the variant of a family for a range of sizes (struct SizeBucket)
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE env(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE program(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE variant(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL CHECK(length(key) = 64),
  trace TEXT NOT NULL,
  config TEXT NOT NULL,
  schedule TEXT NOT NULL,
  protocol TEXT NOT NULL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  median_us REAL NOT NULL CHECK(median_us >= 0),
  low_us REAL NOT NULL CHECK(low_us >= 0),
  high_us REAL NOT NULL CHECK(high_us >= 0),
  samples INTEGER NOT NULL CHECK(samples >= 0),
  bytes INTEGER NOT NULL CHECK(bytes >= 0),
  in_flight TEXT,
  updated_s INTEGER NOT NULL,
  UNIQUE(key, trace, config)
) STRICT;
CREATE TABLE decision(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  env INTEGER NOT NULL REFERENCES env(id),
  program INTEGER NOT NULL REFERENCES program(id),
  best INTEGER NOT NULL REFERENCES variant(id),
  baseline INTEGER NOT NULL REFERENCES variant(id),
  runner_up TEXT NOT NULL,
  necessary_bytes INTEGER NOT NULL CHECK(necessary_bytes >= 0),
  variants INTEGER NOT NULL CHECK(variants > 0),
  complete INTEGER NOT NULL CHECK(complete IN (0, 1)),
  origin TEXT NOT NULL,
  created_s INTEGER NOT NULL
) STRICT;
)sql",
    R"sql(
CREATE TABLE trust(
  variant INTEGER NOT NULL REFERENCES variant(id) ON DELETE CASCADE,
  fingerprint TEXT NOT NULL,
  machine TEXT NOT NULL,
  checks TEXT NOT NULL,
  verified_s INTEGER NOT NULL,
  PRIMARY KEY(variant, fingerprint, machine)
) STRICT;
ALTER TABLE decision DROP COLUMN origin;
)sql",
    // A run error of earlier versions may be a time-out.
    R"sql(
CREATE TABLE in_flight(
  variant INTEGER NOT NULL REFERENCES variant(id) ON DELETE CASCADE,
  process TEXT NOT NULL,
  since_s INTEGER NOT NULL,
  PRIMARY KEY(variant, process)
) STRICT;
INSERT INTO in_flight SELECT id, in_flight, updated_s FROM variant WHERE in_flight IS NOT NULL;
ALTER TABLE variant DROP COLUMN in_flight;
ALTER TABLE variant ADD COLUMN failed_runs INTEGER NOT NULL DEFAULT 0 CHECK(failed_runs >= 0);
ALTER TABLE variant ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0 CHECK(deaths >= 0);
UPDATE variant SET verdict = 'timed out', failed_runs = 1 WHERE verdict = 'run error';
UPDATE variant SET deaths = 1 WHERE verdict = 'quarantined';
)sql",
    R"sql(
ALTER TABLE variant ADD COLUMN load REAL NOT NULL DEFAULT 0 CHECK(load BETWEEN 0 AND 1);
ALTER TABLE decision ADD COLUMN soft TEXT NOT NULL DEFAULT '';
ALTER TABLE decision ADD COLUMN tried INTEGER NOT NULL DEFAULT 0 CHECK(tried >= 0);
ALTER TABLE decision ADD COLUMN drawn INTEGER NOT NULL DEFAULT 0 CHECK(drawn >= 0);
ALTER TABLE decision ADD COLUMN since_gain INTEGER NOT NULL DEFAULT 0 CHECK(since_gain >= 0);
ALTER TABLE decision ADD COLUMN runs INTEGER NOT NULL DEFAULT 0 CHECK(runs >= 0);
ALTER TABLE decision ADD COLUMN spent_s REAL NOT NULL DEFAULT 0 CHECK(spent_s >= 0);
ALTER TABLE decision ADD COLUMN load REAL NOT NULL DEFAULT 0 CHECK(load BETWEEN 0 AND 1);
)sql",
    R"sql(
CREATE TABLE calibration(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  key_text TEXT NOT NULL,
  rates TEXT NOT NULL,
  created_s INTEGER NOT NULL
) STRICT;
CREATE TABLE prediction(
  id INTEGER PRIMARY KEY,
  calibration TEXT NOT NULL,
  work TEXT NOT NULL,
  label TEXT NOT NULL,
  predicted_us REAL NOT NULL CHECK(predicted_us > 0),
  measured_us REAL NOT NULL CHECK(measured_us > 0),
  created_s INTEGER NOT NULL
) STRICT;
)sql",
    R"sql(
ALTER TABLE decision ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0 CHECK(left_out >= 0);
)sql",
    // The indexes let foreign keys be checked without reading the whole table `decision`.
    R"sql(
ALTER TABLE decision ADD COLUMN imported INTEGER NOT NULL DEFAULT 0 CHECK(imported IN (0, 1));
CREATE INDEX decision_best ON decision(best);
CREATE INDEX decision_baseline ON decision(baseline);
CREATE INDEX decision_env ON decision(env);
CREATE INDEX decision_program ON decision(program);
CREATE TABLE last_use(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  used_s INTEGER NOT NULL
) STRICT;
CREATE TABLE pin(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  trace TEXT NOT NULL,
  config TEXT NOT NULL,
  created_s INTEGER NOT NULL
) STRICT;
)sql",
    R"sql(
ALTER TABLE decision ADD COLUMN speed_up REAL NOT NULL DEFAULT 1 CHECK(speed_up > 0);
ALTER TABLE decision ADD COLUMN speed_up_low REAL NOT NULL DEFAULT 1 CHECK(speed_up_low > 0);
ALTER TABLE decision ADD COLUMN speed_up_high REAL NOT NULL DEFAULT 1 CHECK(speed_up_high > 0);
ALTER TABLE decision ADD COLUMN speed_up_rounds INTEGER NOT NULL DEFAULT 0
  CHECK(speed_up_rounds >= 0);
ALTER TABLE decision ADD COLUMN meeting_us REAL NOT NULL DEFAULT 0 CHECK(meeting_us >= 0);
CREATE TABLE history(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL CHECK(length(key) = 64),
  best TEXT NOT NULL,
  baseline TEXT NOT NULL,
  ratio REAL NOT NULL CHECK(ratio > 0),
  low REAL NOT NULL CHECK(low > 0),
  high REAL NOT NULL CHECK(high > 0),
  rounds INTEGER NOT NULL CHECK(rounds >= 0),
  meeting_us REAL NOT NULL CHECK(meeting_us >= 0),
  load REAL NOT NULL CHECK(load BETWEEN 0 AND 1),
  measured_s INTEGER NOT NULL
) STRICT;
CREATE INDEX history_key ON history(key);
)sql",
    R"sql(
CREATE TABLE family(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  key_text TEXT NOT NULL,
  created_s INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE bucket(
  id INTEGER PRIMARY KEY,
  family TEXT NOT NULL REFERENCES family(key) ON DELETE CASCADE,
  sizes TEXT NOT NULL,
  key TEXT NOT NULL CHECK(length(key) = 64),
  trace TEXT NOT NULL,
  config TEXT NOT NULL,
  schedule TEXT NOT NULL,
  first_size INTEGER NOT NULL CHECK(first_size > 0),
  first_us REAL NOT NULL CHECK(first_us > 0),
  first_baseline_us REAL NOT NULL CHECK(first_baseline_us > 0),
  last_size INTEGER NOT NULL CHECK(last_size >= first_size),
  last_us REAL NOT NULL CHECK(last_us > 0),
  last_baseline_us REAL NOT NULL CHECK(last_baseline_us > 0),
  bracket REAL NOT NULL CHECK(bracket >= 1),
  code TEXT NOT NULL,
  machine TEXT NOT NULL,
  checks TEXT NOT NULL
) STRICT;
CREATE INDEX bucket_family ON bucket(family);
)sql",
};
static_assert(std::size(kMigrations) == kCacheSchemaVersion);

/// The tables and indexes of kMigrations. A file that has others was not made by this library.
constexpr absl::string_view kObjects[] = {
    "bucket",       "bucket_family",     "calibration",
    "decision",     "decision_baseline", "decision_best",
    "decision_env", "decision_program",  "env",
    "family",       "history",           "history_key",
    "in_flight",    "last_use",          "pin",
    "prediction",   "program",           "trust",
    "variant",
};

/// Creates the missing folders above `file`, with access for the owner only.
absl::Status MakeFolders(const fs::path& file) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path dir = file.parent_path(); !dir.empty() && !fs::exists(dir, error);
       dir = dir.parent_path())
    missing.push_back(dir);
  for (auto dir = missing.rbegin(); dir != missing.rend(); ++dir) {
    if (mkdir(dir->c_str(), 0700) != 0 && errno != EEXIST) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot make the folder ", dir->string(), ": ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

/// Whether the file exists. FailedPrecondition where other users than this one and root own it or
/// can write it: its records decide what runs here.
absl::StatusOr<bool> CheckOwner(const std::string& file) {
  struct stat info;
  if (lstat(file.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot be looked at: ", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("is no regular file");
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return absl::FailedPreconditionError("belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::FailedPreconditionError(
        "may be written by others; chmod go-w makes it yours alone");
  }
  return true;
}

/// FailedPrecondition where other users than this one and root can put another file in the place of
/// `file`.
absl::Status CheckFolder(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  struct stat info;
  if (stat(folder.c_str(), &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("its folder cannot be looked at: ", std::strerror(errno)));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return absl::FailedPreconditionError("its folder belongs to another user");
  // In a sticky folder, as /tmp, files are replaced by their owners only.
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return absl::FailedPreconditionError(
        "its folder may be written by others; chmod go-w makes it yours alone");
  }
  return absl::OkStatus();
}

/// Whether several machines can mount the file system, on which WAL does not work
/// (sqlite.org/wal.html). Numbers are from linux/magic.h and the file systems' headers.
bool MaySpanMachines(const fs::path& file) {
  struct statfs info;
  const fs::path dir = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (statfs(dir.c_str(), &info) != 0) return true;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x517B:      // SMB
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x00C36400:  // Ceph
    case 0x65735546:  // FUSE
    case 0x01021997:  // 9p
    case 0x5346414F:  // AFS
    case 0x01161970:  // GFS2
    case 0x7461636F:  // OCFS2
      return true;
    default:  // an open set
      return false;
  }
}

/// Switches to WAL where `wal` says so and it works. Retries, since SQLite does not apply the busy
/// timeout when two processes switch a new file at once.
absl::Status ChooseJournal(Database& db, bool wal) {
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (true) {
    absl::StatusOr<std::string> mode =
        db.QueryText(wal ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
    if (mode.ok() && (!wal || *mode == "wal")) return absl::OkStatus();
    if (mode.ok()) return db.Execute("PRAGMA journal_mode=DELETE");
    if (!absl::IsUnavailable(mode.status()) || absl::Now() > deadline) return mode.status();
    absl::SleepFor(absl::Milliseconds(5));
  }
}

struct Opened {
  Database db;
  Access access;
};

/// Whether the database can be written, and journals made beside it.
bool IsWritable(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return access(file.c_str(), W_OK) == 0 && access(folder.c_str(), W_OK) == 0;
}

absl::StatusOr<Database> OpenToRead(const std::string& file, Access access) {
  ASSIGN_OR_RETURN(Database db, Database::Open(file, access));
  RETURN_IF_ERROR(CheckSchema(db));
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version == 0) return absl::FailedPreconditionError("is empty and cannot be written");
  return db;
}

/// Copies the database of an older version to FILE.backup-v<version>, unless there is a copy.
absl::Status BackUp(Database& db, const std::string& file, int64_t version) {
  const std::string backup = absl::StrCat(file, ".backup-v", version);
  if (InodeOf(backup) != 0) return absl::OkStatus();
  // Several processes may do so at once: the first complete copy stays.
  const std::string mine = absl::StrCat(backup, ".", getpid(), ".tmp");
  Descriptor made(open(mine.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot be copied to ", mine, ": ", std::strerror(errno)));
  }
  made.Close();
  absl::Status copied = db.CopyTo(mine);
  if (copied.ok() && link(mine.c_str(), backup.c_str()) != 0 && errno != EEXIST) {
    // Some file systems have no links. The rename replaces at worst a copy of the same data.
    if (rename(mine.c_str(), backup.c_str()) != 0) {
      copied = absl::FailedPreconditionError(
          absl::StrCat("cannot be copied to ", backup, ": ", std::strerror(errno)));
    }
  }
  unlink(mine.c_str());
  return copied;
}

absl::StatusOr<Opened> OpenChecked(const std::string& file, Check check,
                                   const std::function<void(absl::string_view)>& warn) {
  ASSIGN_OR_RETURN(const bool exists, CheckOwner(file));
  if (!exists) {
    // O_EXCL, since closing a descriptor of a file that this process has open would drop SQLite's
    // locks.
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno != EEXIST) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot be created: ", std::strerror(errno)));
    }
    if (fd >= 0) close(fd);
  }
  if (!IsWritable(file)) {
    absl::StatusOr<Database> db = OpenToRead(file, Access::kReadOnly);
    // A file in WAL mode is read with a journal beside it, which cannot be made here.
    if (!db.ok() && !absl::IsDataLoss(db.status())) db = OpenToRead(file, Access::kImmutable);
    RETURN_IF_ERROR(db.status());
    return Opened{*std::move(db), Access::kReadOnly};
  }
  ASSIGN_OR_RETURN(Database db, Database::Open(file, Access::kReadWrite));
  RETURN_IF_ERROR(CheckSchema(db));
  RETURN_IF_ERROR(ChooseJournal(db, !MaySpanMachines(file)));
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (check == Check::kWhole || version != kCacheSchemaVersion) RETURN_IF_ERROR(CheckPages(db));
  if (version != 0 && version < kCacheSchemaVersion) {
    if (const absl::Status copied = BackUp(db, file, version); !copied.ok()) {
      warn(absl::StrCat("tuning cache ", file, " of schema ", version,
                        ", which this version would ", "change to ", kCacheSchemaVersion,
                        ", is only read, since no copy of it ",
                        "can be made first: ", copied.message()));
      return Opened{std::move(db), Access::kReadOnly};
    }
  }
  RETURN_IF_ERROR(Migrate(db));
  return Opened{std::move(db), Access::kReadWrite};
}

/// Renames the damaged database and its journals. Requires the exclusive lock.
absl::Status SetAside(const std::string& file, const std::string& aside) {
  if (rename(file.c_str(), aside.c_str()) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("is damaged and cannot be moved away: ", std::strerror(errno)));
  }
  for (const char* journal : {"-wal", "-shm"}) {
    // Fails where there is none, as after a clean close.
    rename(absl::StrCat(file, journal).c_str(), absl::StrCat(aside, journal).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSchema(Database& db) {
  // One transaction, since another process may be creating the file.
  ASSIGN_OR_RETURN(Transaction reading, Transaction::BeginRead(db));
  ASSIGN_OR_RETURN(const int64_t application, db.QueryInt("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t objects, db.QueryInt("SELECT count(*) FROM sqlite_schema"));
  if (application != kCacheApplicationId && (application != 0 || version != 0 || objects != 0)) {
    return absl::FailedPreconditionError("is a database of another application; give another file");
  }
  if (version > kCacheSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("was written by a newer version (schema ", version, ", this one knows ",
                     kCacheSchemaVersion, "); upgrade, or give another file"));
  }
  ASSIGN_OR_RETURN(Statement schema, db.Prepare("SELECT type, name, rootpage FROM sqlite_schema"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, schema.Step());
    if (!row) break;
    const std::string type = schema.Text(0), name = schema.Text(1);
    if (absl::StartsWith(name, "sqlite_")) continue;  // SQLite makes these itself
    // Only views, triggers and virtual tables have no pages of their own.
    if (type == "view" || type == "trigger" || schema.Int(2) == 0)
      return absl::FailedPreconditionError(
          "holds views or triggers that we did not make; give another file");
    if (!absl::c_linear_search(kObjects, name)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "holds the ", type, " ", name, ", which no tuning cache has; give another ", "file"));
    }
  }
  return reading.Commit();
}

absl::Status CheckPages(Database& db) {
  ASSIGN_OR_RETURN(const std::string check, db.QueryText("PRAGMA quick_check(1)"));
  if (check == "ok") return absl::OkStatus();
  // SQLite heads what it finds with a line that names the database.
  return absl::DataLossError(check.substr(check.rfind('\n') + 1));
}

absl::Status Migrate(Database& db) {
  ASSIGN_OR_RETURN(int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version == kCacheSchemaVersion) return absl::OkStatus();
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(version,
                   db.QueryInt("PRAGMA user_version"));  // another process may have migrated it
  for (int64_t v = version; v < kCacheSchemaVersion; ++v)
    RETURN_IF_ERROR(db.Execute(kMigrations[v]));
  RETURN_IF_ERROR(db.Execute(absl::StrCat("PRAGMA application_id=", kCacheApplicationId,
                                          "; PRAGMA user_version=", kCacheSchemaVersion)
                                 .c_str()));
  return transaction.Commit();
}

FileLock::FileLock(const std::string& file)
    : file_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}

void FileLock::Share() {
  if (!file_) return;
  while (flock(file_.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
}

bool FileLock::TakeAlone() {
  if (!file_) return true;
  flock(file_.get(), LOCK_UN);  // else two processes would wait for each other's shared lock
  for (int i = 0; i < 100; ++i) {
    if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

absl::StatusOr<OpenCacheFile> OpenCache(const std::string& file, Check check,
                                        const std::function<void(absl::string_view)>& warn) {
  RETURN_IF_ERROR(MakeFolders(file));
  FileLock lock(absl::StrCat(file, ".lock"));
  lock.Share();
  absl::StatusOr<Opened> opened = OpenChecked(file, check, warn);
  if (absl::IsDataLoss(opened.status())) {
    if (!lock.TakeAlone()) {
      return absl::DataLossError(
          absl::StrCat("is damaged (", opened.status().message(), ") and open in another process"));
    }
    opened = OpenChecked(file, check, warn);  // another process may have renamed it meanwhile
    if (absl::IsDataLoss(opened.status())) {
      const std::string aside =
          absl::StrCat(file, ".corrupt-", absl::ToUnixMillis(absl::Now()), "-", getpid());
      RETURN_IF_ERROR(SetAside(file, aside));
      warn(absl::StrCat("tuning cache ", file, " was damaged (", opened.status().message(),
                        "): moved to ", aside, ", a new one is begun"));
      opened = OpenChecked(file, check, warn);
    }
    lock.Share();
  }
  if (!opened.ok()) return opened.status();
  return OpenCacheFile{std::move(lock), std::move(opened->db), opened->access, InodeOf(file)};
}

absl::StatusOr<Database> OpenUnchanged(const std::string& file, bool foreign) {
  ASSIGN_OR_RETURN(const bool exists, CheckOwner(file));
  if (!exists) return absl::NotFoundError("does not exist");
  if (foreign) RETURN_IF_ERROR(CheckFolder(file));
  // A file in WAL mode is read with files beside it, which SQLite would make. They exist while
  // another process has it open, and after one was killed; else the file alone is complete.
  if (InodeOf(absl::StrCat(file, "-wal")) != 0) {
    absl::StatusOr<Database> shared = OpenToRead(file, Access::kReadOnly);
    if (shared.ok() || absl::IsDataLoss(shared.status())) return shared;
    return OpenToRead(file, Access::kImmutable);
  }
  ASSIGN_OR_RETURN(Database alone, OpenToRead(file, Access::kImmutable));
  ASSIGN_OR_RETURN(const bool wal, alone.IsForWal());
  if (wal) return alone;
  return OpenToRead(file, Access::kReadOnly);
}

uint64_t InodeOf(const std::string& file) {
  struct stat info;
  return stat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace coconet
