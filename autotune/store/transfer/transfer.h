#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"
#include "autotune/store/transfer/record_line.h"

namespace coconet {

struct ImportTerms {
  bool dry_run = false;  // only says what would be done
  TraceCheck check_trace;
};

/// What became of the records that were offered.
struct ImportSummary {
  int64_t offered = 0, added = 0, replaced = 0;
  int64_t kept = 0;            // the stored record was as good
  int64_t kept_certified = 0;  // the stored record is complete and was measured here
  int64_t buckets = 0;         // of sizes, added; none takes the place of a stored one
  struct Rejected {
    int64_t line = 0;  // of the text; of another cache: the number of the record, from 1 on
    std::string reason;
  };
  std::vector<Rejected> rejected;
};

/// Whether an offered record, which was imported, takes the place of a stored one: if that was
/// complete and measured here, never; else if it is complete and the other is not, or, if they are
/// alike in that, has more runs, then more samples, then is newer.
bool Displaces(const TuningRecord& offered, const TuningRecord& stored);

/// Writes the header, and a line for each record that `wanted` accepts; returns their number.
/// InvalidArgument for an invalid row, Internal if `out` cannot be written.
absl::StatusOr<int64_t> ExportTo(std::ostream& out, Database& db,
                                 absl::FunctionRef<bool(const TuningRecord&)> wanted);

/// Reads an export, stages its records in a temporary database, and commits those that are valid to
/// `into` in one transaction. Verifications are not taken, so that what is imported is verified
/// before it runs. InvalidArgument or FailedPrecondition if the text is no export that this version
/// understands: nothing is committed.
absl::StatusOr<ImportSummary> ImportFrom(Database& into, std::istream& in,
                                         const ImportTerms& terms);
/// The same with the records of another tuning cache. DataLoss if that is damaged.
absl::StatusOr<ImportSummary> MergeFrom(Database& into, Database& from, const ImportTerms& terms);

}  // namespace coconet
