#include "autotune/store/families/bucket_rows.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kFirstVersion = 9;  // of files with these tables
constexpr size_t kDigest = 64;        // characters
constexpr double kLongestUs = 1e12;

bool IsTime(double us) { return std::isfinite(us) && us > 0 && us <= kLongestUs; }

bool IsDigest(absl::string_view text) {
  return text.size() == kDigest && absl::c_all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// The bucket in the current row of kColumns.
constexpr absl::string_view kColumns =
    "sizes, key, trace, config, schedule, first_size, first_us, first_baseline_us, last_size, "
    "last_us, last_baseline_us, bracket, code, machine, checks";
constexpr int kColumnCount = 15;
absl::StatusOr<SizeBucket> BucketAt(const Statement& row) {
  SizeBucket bucket;
  ASSIGN_OR_RETURN(bucket.box, ParseSizeRanges(row.Text(0)));
  bucket.key = row.Text(1);
  bucket.trace = row.Text(2);
  ASSIGN_OR_RETURN(bucket.config, ParseConfig(row.Text(3)));
  bucket.schedule = row.Text(4);
  bucket.first = {row.Int(5), row.Real(6), row.Real(7)};
  bucket.last = {row.Int(8), row.Real(9), row.Real(10)};
  bucket.bracket = row.Real(11);
  const std::string code = row.Text(12);
  bucket.code = absl::StrSplit(code, ' ', absl::SkipEmpty());
  bucket.machine = row.Text(13);
  bucket.checks = row.Text(14);
  RETURN_IF_ERROR(Validate(bucket));
  return bucket;
}

absl::Status Insert(Database& db, absl::string_view family, const SizeBucket& bucket) {
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare(absl::StrCat("INSERT INTO bucket(family, ", kColumns,
                                           ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                           "?, ?)")));
  insert.Bind(family).Bind(Text(bucket.box)).Bind(bucket.key).Bind(bucket.trace);
  insert.Bind(Text(bucket.config)).Bind(bucket.schedule);
  for (const SizeBucket::End& end : {bucket.first, bucket.last})
    insert.Bind(end.size).Bind(end.us).Bind(end.baseline_us);
  insert.Bind(bucket.bracket).Bind(absl::StrJoin(bucket.code, " "));
  return insert.Bind(bucket.machine).Bind(bucket.checks).Run();
}

absl::Status InsertFamily(Database& db, absl::string_view family_text) {
  ASSIGN_OR_RETURN(Statement make,
                   db.Prepare("INSERT INTO family(key, key_text, created_s) VALUES (?, ?, ?) "
                              "ON CONFLICT(key) DO UPDATE SET key_text = excluded.key_text"));
  make.Bind(Fingerprint(family_text)).Bind(family_text).Bind(absl::ToUnixSeconds(absl::Now()));
  return make.Run();
}

/// The buckets in the rows of FROM bucket b JOIN family f that the condition admits.
absl::StatusOr<std::vector<FamilyBucket>> ReadWhere(Database& db, absl::string_view condition,
                                                    absl::string_view value) {
  std::vector<FamilyBucket> buckets;
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version < kFirstVersion) return buckets;
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare(absl::StrCat("SELECT ", kColumns, ", (SELECT key_text FROM family f ",
                              "WHERE f.key = family), family FROM bucket WHERE ", condition,
                              " AND key IN (SELECT key FROM decision) ORDER BY id")));
  if (!value.empty()) find.Bind(value);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return buckets;
    absl::StatusOr<SizeBucket> bucket = BucketAt(find);
    const std::string text = find.Text(kColumnCount);
    if (bucket.ok() && Fingerprint(text) == find.Text(kColumnCount + 1))
      buckets.push_back({text, *std::move(bucket)});
  }
}

/// Takes the sizes of `buckets` out of the family's, and deletes those that make no sense, or whose
/// record is gone.
absl::Status Clear(Database& db, absl::string_view family, absl::Span<const SizeBucket> buckets) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT ", kColumns,
                                           ", id, key IN (SELECT key FROM decision) FROM bucket "
                                           "WHERE family = ? ORDER BY id")));
  find.Bind(family);
  std::vector<int64_t> going;
  std::vector<SizeBucket> parts;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    const int64_t id = find.Int(kColumnCount);
    absl::StatusOr<SizeBucket> stored = BucketAt(find);
    if (find.Int(kColumnCount + 1) == 0 || !stored.ok()) {
      going.push_back(id);
      continue;
    }
    std::vector<SizeRanges> left = {stored->box};
    for (const SizeBucket& bucket : buckets) {
      std::vector<SizeRanges> rest;
      for (const SizeRanges& box : left) CutOut(bucket.box, box, rest);
      left = std::move(rest);
    }
    if (left == std::vector<SizeRanges>{stored->box}) continue;
    going.push_back(id);
    for (SizeRanges& box : left) {
      SizeBucket& part = parts.emplace_back(*stored);
      part.box = std::move(box);
    }
  }
  for (int64_t id : going) {
    ASSIGN_OR_RETURN(Statement drop, db.Prepare("DELETE FROM bucket WHERE id = ?"));
    RETURN_IF_ERROR(drop.Bind(id).Run());
  }
  for (const SizeBucket& part : parts) RETURN_IF_ERROR(Insert(db, family, part));
  return absl::OkStatus();
}

constexpr absl::string_view kOfVariant =
    " WHERE family = ? AND key = ? AND trace = ? AND config = ?";
Statement& BindVariant(Statement& statement, absl::string_view family_text,
                       const SizeBucket& bucket) {
  statement.Bind(Fingerprint(family_text)).Bind(bucket.key).Bind(bucket.trace);
  return statement.Bind(Text(bucket.config));
}

}  // namespace

absl::Status Validate(const SizeBucket& bucket) {
  RETURN_IF_ERROR(Validate(bucket.box));
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("its ", what, " makes no sense"));
  };
  if (!IsDigest(bucket.key)) return bad("key");
  for (const SizeBucket::End& end : {bucket.first, bucket.last}) {
    if (end.size < 1 || end.size > kGreatestSize) return bad("tuned size");
    if (!IsTime(end.us) || !IsTime(end.baseline_us)) return bad("time");
  }
  if (bucket.first.size > bucket.last.size) return bad("tuned size");
  if (!std::isfinite(bucket.bracket) || bucket.bracket < 1) return bad("bracket");
  if (!absl::c_all_of(bucket.code, IsDigest)) return bad("code");
  return absl::OkStatus();
}

absl::Status WriteBuckets(Database& db, absl::string_view family_text,
                          absl::Span<const SizeBucket> buckets) {
  for (const SizeBucket& bucket : buckets) {
    if (const absl::Status valid = Validate(bucket); !valid.ok())
      return absl::InvalidArgumentError(valid.message());
  }
  const std::string family = Fingerprint(family_text);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  RETURN_IF_ERROR(InsertFamily(db, family_text));
  RETURN_IF_ERROR(Clear(db, family, buckets));
  for (const SizeBucket& bucket : buckets) RETURN_IF_ERROR(Insert(db, family, bucket));
  RETURN_IF_ERROR(db.Execute("DELETE FROM family WHERE key NOT IN (SELECT family FROM bucket)"));
  return transaction.Commit();
}

absl::Status ConfirmBuckets(Database& db, absl::string_view family_text, const SizeBucket& bucket) {
  RETURN_IF_ERROR(Validate(bucket));
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT id, code, machine FROM bucket", kOfVariant)));
  BindVariant(find, family_text, bucket);
  std::vector<std::pair<int64_t, std::string>> codes;  // by id
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    std::vector<std::string> code = bucket.code;
    const std::string known = find.Text(1);
    if (find.Text(2) == bucket.machine) {
      for (absl::string_view digest : absl::StrSplit(known, ' ', absl::SkipEmpty())) {
        if (!absl::c_linear_search(code, digest)) code.emplace_back(digest);
      }
    }
    codes.emplace_back(find.Int(0), absl::StrJoin(code, " "));
  }
  for (const auto& [id, code] : codes) {
    ASSIGN_OR_RETURN(
        Statement confirm,
        db.Prepare("UPDATE bucket SET code = ?, machine = ?, checks = ? WHERE id = ?"));
    RETURN_IF_ERROR(confirm.Bind(code).Bind(bucket.machine).Bind(bucket.checks).Bind(id).Run());
  }
  return transaction.Commit();
}

absl::Status DeleteBuckets(Database& db, absl::string_view family_text, const SizeBucket& bucket) {
  ASSIGN_OR_RETURN(Statement drop, db.Prepare(absl::StrCat("DELETE FROM bucket", kOfVariant)));
  return BindVariant(drop, family_text, bucket).Run();
}

absl::Status DoubtBuckets(Database& db, absl::string_view key, absl::string_view trace,
                          absl::string_view config) {
  ASSIGN_OR_RETURN(Statement drop, db.Prepare("DELETE FROM bucket WHERE key = ? AND trace = ? AND "
                                              "config = ?"));
  RETURN_IF_ERROR(drop.Bind(key).Bind(trace).Bind(config).Run());
  ASSIGN_OR_RETURN(Statement doubt,
                   db.Prepare("UPDATE bucket SET code = '' WHERE trace = ? AND config = ?"));
  return doubt.Bind(trace).Bind(config).Run();
}

absl::StatusOr<std::vector<SizeBucket>> ReadBuckets(
    Database& db, absl::string_view family_text,
    const std::function<void(const absl::Status& why)>& ignore) {
  std::vector<SizeBucket> buckets;
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version < kFirstVersion) return buckets;
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT ", kColumns,
                                           " FROM bucket WHERE family = (SELECT key FROM family "
                                           "WHERE key = ? AND key_text = ?) AND key IN (SELECT "
                                           "key FROM decision) ORDER BY id")));
  find.Bind(Fingerprint(family_text)).Bind(family_text);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return buckets;
    absl::StatusOr<SizeBucket> bucket = BucketAt(find);
    if (bucket.ok())
      buckets.push_back(*std::move(bucket));
    else
      ignore(bucket.status());
  }
}

absl::StatusOr<std::vector<FamilyBucket>> ReadAllBuckets(Database& db) {
  return ReadWhere(db, "1", "");
}

absl::StatusOr<std::vector<FamilyBucket>> ReadBucketsOfKey(Database& db, absl::string_view key) {
  return ReadWhere(db, "key = ?", key);
}

absl::StatusOr<bool> AddBucket(Database& db, const FamilyBucket& added) {
  const std::string family = Fingerprint(added.family_text);
  ASSIGN_OR_RETURN(const std::vector<FamilyBucket> stored, ReadWhere(db, "family = ?", family));
  for (const FamilyBucket& other : stored) {
    if (CommonOf(other.bucket.box, added.bucket.box).has_value()) return false;
  }
  RETURN_IF_ERROR(InsertFamily(db, added.family_text));
  RETURN_IF_ERROR(Insert(db, family, added.bucket));
  return true;
}

std::string Encode(const SizeBucket& bucket) {
  Packer out;
  out.Text(Text(bucket.box)).Text(bucket.key).Text(bucket.trace).Text(bucket.schedule);
  out.Text(Text(bucket.config));
  for (const SizeBucket::End& end : {bucket.first, bucket.last})
    out.Int(end.size).Real(end.us).Real(end.baseline_us);
  out.Real(bucket.bracket).Text(absl::StrJoin(bucket.code, " "));
  return out.Text(bucket.machine).Text(bucket.checks).bytes();
}

absl::StatusOr<SizeBucket> DecodeBucket(absl::string_view bytes) {
  Unpacker in(bytes);
  SizeBucket bucket;
  const std::string box = in.Text();
  bucket.key = in.Text();
  bucket.trace = in.Text();
  bucket.schedule = in.Text();
  const std::string config = in.Text();
  for (SizeBucket::End* end : {&bucket.first, &bucket.last}) {
    end->size = in.Int();
    end->us = in.Real();
    end->baseline_us = in.Real();
  }
  bucket.bracket = in.Real();
  bucket.code = absl::StrSplit(in.Text(), ' ', absl::SkipEmpty());
  bucket.machine = in.Text();
  bucket.checks = in.Text();
  RETURN_IF_ERROR(in.Done());
  ASSIGN_OR_RETURN(bucket.box, ParseSizeRanges(box));
  ASSIGN_OR_RETURN(bucket.config, ParseConfig(config));
  RETURN_IF_ERROR(Validate(bucket));
  return bucket;
}

}  // namespace coconet
