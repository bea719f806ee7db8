#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "autotune/session/load/loading.h"
#include "autotune/store/families/bucket_rows.h"

namespace coconet {

/// Collective. A bucket's variant at the program's sizes, with a record that is in no cache and has
/// no times. It is verified here unless the same code of its family was (FamilyCode); the cache,
/// and `bucket`, then know that. None, with a warning, if it does not hold for these sizes, needs
/// too much memory, or fails; then the cache forgets the bucket.
absl::StatusOr<std::optional<Winner>> BucketWinner(const Loading& loading,
                                                   const std::string& family_text,
                                                   SizeBucket& bucket);

}  // namespace coconet
