#include "autotune/store/transfer/diff.h"

#include <map>
#include <utility>

#include "absl/strings/string_view.h"
#include "autotune/store/record_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::StatusOr<std::map<std::string, TuningRecord>> RecordsOf(Database& db) {
  std::map<std::string, TuningRecord> records;
  RETURN_IF_ERROR(ReadRecords(db, [&](RecordRow row) {
    if (row.record.ok()) records.emplace(row.key, *std::move(row.record));
  }));
  return records;
}

/// How much longer `pick` takes than the record's winner, by the variants of that record's cache.
absl::StatusOr<std::optional<double>> CostOf(const VariantResult& pick, Database& db,
                                             const TuningRecord& record) {
  const double best_us = record.best.timing.median_us;
  absl::StatusOr<std::vector<VariantResult>> variants = ReadVariants(db, record.key);
  if (absl::IsInvalidArgument(variants.status())) return std::nullopt;
  RETURN_IF_ERROR(variants.status());
  for (const VariantResult& v : *variants) {
    if (!SameVariant(v, pick) || v.timing.samples < 1 || !Validate(v).ok() || !(best_us > 0))
      continue;
    return v.timing.median_us / best_us - 1;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<BucketPair>> BucketPairsOf(Database& a, Database& b) {
  ASSIGN_OR_RETURN(const std::vector<FamilyBucket> of_a, ReadAllBuckets(a));
  ASSIGN_OR_RETURN(const std::vector<FamilyBucket> of_b, ReadAllBuckets(b));
  std::vector<BucketPair> pairs;
  for (const FamilyBucket& mine : of_a) {
    for (const FamilyBucket& theirs : of_b) {
      if (mine.family_text != theirs.family_text) continue;
      std::optional<SizeRanges> common = CommonOf(mine.bucket.box, theirs.bucket.box);
      if (!common.has_value()) continue;
      pairs.push_back(
          {mine.family_text, *std::move(common), mine.bucket, theirs.bucket,
           mine.bucket.trace == theirs.bucket.trace && mine.bucket.config == theirs.bucket.config});
    }
  }
  return pairs;
}

}  // namespace

absl::StatusOr<CacheDiff> DiffOf(Database& a, Database& b) {
  ASSIGN_OR_RETURN(Transaction reading_a, Transaction::BeginRead(a));
  ASSIGN_OR_RETURN(Transaction reading_b, Transaction::BeginRead(b));
  ASSIGN_OR_RETURN(auto of_a, RecordsOf(a));
  ASSIGN_OR_RETURN(auto of_b, RecordsOf(b));
  CacheDiff diff;
  for (auto& [key, record] : of_a) {
    const auto other = of_b.find(key);
    if (other == of_b.end()) {
      diff.only_a.push_back(std::move(record));
      continue;
    }
    RecordPair pair{std::move(record), std::move(other->second)};
    of_b.erase(other);
    pair.same_winner = SameVariant(pair.a.best, pair.b.best);
    ASSIGN_OR_RETURN(pair.a_in_b, CostOf(pair.a.best, b, pair.b));
    ASSIGN_OR_RETURN(pair.b_in_a, CostOf(pair.b.best, a, pair.a));
    diff.both.push_back(std::move(pair));
  }
  for (auto& [key, record] : of_b) diff.only_b.push_back(std::move(record));
  ASSIGN_OR_RETURN(diff.sizes, BucketPairsOf(a, b));
  return diff;
}

}  // namespace coconet
