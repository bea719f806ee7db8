#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/database.h"
#include "autotune/store/families/size_ranges.h"
#include "jit/config/config.h"

namespace coconet {

// Families of programs that differ in sizes alone, and the buckets of their sizes, in a tuning
// cache (cache_file.h).

/// A range of sizes in which one variant of a family is the fastest, as far as is known.
struct SizeBucket {
  SizeRanges box;
  /// The key of the record at a tuned size, whose winner is the bucket's variant.
  std::string key;
  std::string trace;     // VariantResult::trace
  std::string schedule;  // in words
  Config config;
  /// The times of the variant and of the plain schedule at a tuned size in the bucket: that of the
  /// symbol whose sizes differ most.
  struct End {
    int64_t size = 1;
    double us = 1, baseline_us = 1;
    bool operator==(const End&) const = default;
  };
  End first, last;  // the smallest, and the greatest such size
  /// The factor within which the crossover below the bucket was found; 1: the bucket begins where
  /// what was tuned does.
  double bracket = 1;
  /// What was verified, where, and how: FamilyCode of the lowered variant at each such size, the
  /// MachineDigest, words. Empty `code`: nothing is known to be right.
  std::vector<std::string> code;
  std::string machine, checks;
  bool operator==(const SizeBucket&) const = default;
};

/// Checks each field on its own; whether trace and config fit the program, replaying them shows.
absl::Status Validate(const SizeBucket& bucket);

/// Adds buckets, in a transaction. The family's buckets that overlap one of these keep their other
/// sizes. InvalidArgument if one makes no sense.
absl::Status WriteBuckets(Database& db, absl::string_view family_text,
                          absl::Span<const SizeBucket> buckets);

/// Adds what was verified of a bucket's variant, in a transaction, to the family's buckets with the
/// same record and variant. What was verified on another machine goes.
absl::Status ConfirmBuckets(Database& db, absl::string_view family_text, const SizeBucket& bucket);

/// Deletes the family's buckets with the same record and variant.
absl::Status DeleteBuckets(Database& db, absl::string_view family_text, const SizeBucket& bucket);

/// A variant has failed for good at a size, whose record has this key: the buckets with the record
/// go, and nothing is known to be right of others with the variant. A part of the caller's
/// transaction.
absl::Status DoubtBuckets(Database& db, absl::string_view key, absl::string_view trace,
                          absl::string_view config);

/// The buckets of a family whose records are in the file, by the order of their making. Rows that
/// make no sense are left out, and `ignore` is called with why. A file of an earlier version has
/// none; nor has one in which another text has the same digest.
absl::StatusOr<std::vector<SizeBucket>> ReadBuckets(
    Database& db, absl::string_view family_text,
    const std::function<void(const absl::Status& why)>& ignore);

/// A bucket with the text of its family.
struct FamilyBucket {
  std::string family_text;
  SizeBucket bucket;
  bool operator==(const FamilyBucket&) const = default;
};
/// All buckets, or those of a record's key, whose records are in the file, by the order of their
/// making. Rows that make no sense are left out. A file of an earlier version has none.
absl::StatusOr<std::vector<FamilyBucket>> ReadAllBuckets(Database& db);
absl::StatusOr<std::vector<FamilyBucket>> ReadBucketsOfKey(Database& db, absl::string_view key);
/// Adds a bucket that is valid, as a part of the caller's transaction, unless one of its family has
/// some of its sizes. Returns whether it was added.
absl::StatusOr<bool> AddBucket(Database& db, const FamilyBucket& added);

/// For messages between ranks.
std::string Encode(const SizeBucket& bucket);
absl::StatusOr<SizeBucket> DecodeBucket(absl::string_view bytes);

}  // namespace coconet
