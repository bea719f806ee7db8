#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/record.h"

namespace coconet {

// Records as lines of text, for other caches: a header, then one object of JSON per line.

inline constexpr int64_t kTransferVersion = 1;
/// The most bytes of a line.
inline constexpr size_t kLongestLine = 32 << 20;

/// All that is exported of a key. What is added here goes through ReadExported, RecordLine,
/// ParseRecordLine and WriteImported, and nowhere else.
struct ExportedRecord {
  TuningRecord record;
  std::vector<VariantResult> variants;  // with the record's best and baseline
  std::vector<Measured> history;        // the newest first
  std::vector<FamilyBucket> buckets;    // that run the record's winner
};

/// OK if a trace is one that could be replayed.
using TraceCheck = std::function<absl::Status(absl::string_view trace)>;

/// All of a stored record's key. Errors as of ReadRecord and ReadVariants.
absl::StatusOr<ExportedRecord> ReadExported(Database& db, const TuningRecord& record);
/// Replaces the key's record, as a part of the caller's transaction.
absl::Status WriteImported(Database& db, const ExportedRecord& exported);

/// Checks each field of a record from elsewhere; takes away what is not believed: verifications,
/// those of its buckets, too, and variants that failed there. InvalidArgument says what makes no
/// sense.
absl::Status CheckImported(ExportedRecord& exported, const TraceCheck& check_trace);

/// The first line of an export, and whether a line is one that this version understands:
/// InvalidArgument if it is none, FailedPrecondition for another version.
std::string HeaderLine();
absl::Status CheckHeaderLine(absl::string_view line);

/// A record as a line, without its verifications. A record without buckets has no such field, so
/// that versions without buckets read it.
std::string RecordLine(const ExportedRecord& exported);
/// Reads such a line, from any source, without CheckImported. InvalidArgument names the field.
absl::StatusOr<ExportedRecord> ParseRecordLine(absl::string_view line);

}  // namespace coconet
