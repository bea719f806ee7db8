#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/store/database.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/families/size_ranges.h"
#include "autotune/store/record.h"

namespace coconet {

/// The records that two caches have of one key.
struct RecordPair {
  TuningRecord a, b;
  bool same_winner = false;
  /// What it costs to run the winner of the one cache where the other was tuned: its time there
  /// over that of the winner there, less 1; 0.03: 3 % more. None if it has no time there.
  std::optional<double> a_in_b, b_in_a;
};

/// Sizes of a family for which both caches have a bucket.
struct BucketPair {
  std::string family_text;
  SizeRanges box;
  SizeBucket a, b;
  bool same_variant = false;
};

struct CacheDiff {
  std::vector<RecordPair> both;
  std::vector<TuningRecord> only_a, only_b;
  std::vector<BucketPair> sizes;
};

/// Compares the records of two tuning caches, key by key. Invalid rows are left out.
absl::StatusOr<CacheDiff> DiffOf(Database& a, Database& b);

}  // namespace coconet
