#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/session/sizes/tuned_sizes.h"
#include "autotune/store/families/bucket_rows.h"
#include "coconet/base/table.h"

namespace coconet {

// What `sweep` prints of a program that it has tuned over ranges of sizes.

/// A line per bucket: its sizes, the variant, its time and its gain over the plain schedule at the
/// first and the last tuned size, and within which factor the crossover below was found.
std::string BucketTable(absl::Span<const SizeBucket> buckets, absl::string_view main_symbol,
                        size_t widest = TableColumn::kWhole);

/// The buckets, the crossovers and the tuned sizes as a JSON object.
std::string BucketJson(const TunedSizes& tuned, absl::string_view program, int ranks,
                       double seconds);

}  // namespace coconet
