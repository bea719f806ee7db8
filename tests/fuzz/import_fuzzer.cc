// libFuzzer's entry: the input is an export of tuning records, as another machine may send it. What
// is imported is valid, is not verified, and leaves what was measured here as it is.

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "autotune/store/cache_file.h"
#include "autotune/store/database.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/record_rows.h"
#include "autotune/store/transfer/transfer.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/json.h"
#include "coconet/base/status.h"
#include "coconet/schedule/transformation.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

/// A complete record that was measured here.
TuningRecord Mine() {
  TuningRecord mine;
  mine.key_text = "key: 1\nprogram: mine\n";
  mine.key = Fingerprint(mine.key_text);
  mine.best.verdict = Verdict::kMeasured;
  mine.best.timing = {10, 9, 11, 20};
  mine.baseline = mine.best;
  mine.variants = 1;
  mine.complete = true;
  mine.created_s = 1;
  return mine;
}

Database CacheWithMine() {
  absl::StatusOr<Database> db = Database::Open("", Access::kReadWrite);
  Expect(db.ok(), db.status().ToString());
  const absl::Status migrated = Migrate(*db);
  Expect(migrated.ok(), migrated.ToString());
  const TuningRecord mine = Mine();
  const absl::Status written = WriteRecord(*db, mine, {&mine.best, 1});
  Expect(written.ok(), written.ToString());
  return *std::move(db);
}

void CheckStored(Database& db) {
  bool has_mine = false;
  const absl::Status read = ReadRecords(db, [&](RecordRow row) {
    Expect(row.record.ok(), "an invalid record was imported");
    const TuningRecord& record = *row.record;
    has_mine = has_mine || record == Mine();
    Expect(record.imported ? record.trust.empty() : record.key == Mine().key,
           "an import that is believed");
    const absl::StatusOr<std::vector<VariantResult>> variants = ReadVariants(db, record.key);
    Expect(variants.ok(), variants.status().ToString());
    for (const VariantResult& v : *variants)
      Expect(Validate(v).ok() && !FailsForGood(v.verdict), "an invalid variant was imported");
    if (!record.imported) return;
    absl::StatusOr<std::vector<FamilyBucket>> buckets = ReadBucketsOfKey(db, record.key);
    Expect(buckets.ok(), buckets.status().ToString());
    for (const FamilyBucket& of : *buckets)
      Expect(Validate(of.bucket).ok() && of.bucket.code.empty(), "a bucket that is believed");
    const absl::StatusOr<ExportedRecord> again =
        ParseRecordLine(RecordLine({record, *variants, {}, *buckets}));
    Expect(again.ok() && again->variants == *variants && again->buckets == *buckets,
           "a record that cannot be exported again");
  });
  Expect(read.ok(), read.ToString());
  Expect(db.QueryInt("SELECT count(*) FROM bucket WHERE key NOT IN (SELECT key FROM decision)")
                 .value() == 0,
         "a bucket without its record");
  Expect(has_mine, "a record that was measured here is gone");
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<JsonObject> object = ParseJsonObject(text);
  if (object.ok()) {
    const absl::StatusOr<JsonObject> again = ParseJsonObject(object->Text().text);
    Expect(again.ok() && again->fields().size() == object->fields().size(),
           "an object that cannot be read again");
  }
  static Database& db = *new Database(CacheWithMine());
  std::istringstream in(text);
  const ImportTerms terms{false,
                          [](absl::string_view trace) { return ParseTrace(trace).status(); }};
  const absl::StatusOr<ImportSummary> summary = ImportFrom(db, in, terms);
  if (!summary.ok()) {
    Expect(
        absl::IsInvalidArgument(summary.status()) || absl::IsFailedPrecondition(summary.status()),
        summary.status().ToString());
    return 0;
  }
  for (const ImportSummary::Rejected& rejected : summary->rejected)
    Expect(rejected.line > 1 && !rejected.reason.empty(), "a line is rejected without a reason");
  if (summary->added + summary->replaced == 0) return 0;
  CheckStored(db);
  std::vector<std::string> others;
  const absl::Status read = ReadRecords(db, [&](RecordRow row) {
    if (row.key != Mine().key) others.push_back(row.key);
  });
  Expect(read.ok(), read.ToString());
  for (const std::string& key : others) Expect(DeleteKey(db, key).ok(), "it cannot be deleted");
  Expect(db.QueryInt("SELECT count(*) FROM family").value() == 0, "a family without a record");
  return 0;
}
