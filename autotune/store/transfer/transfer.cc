#include "autotune/store/transfer/transfer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/failure_rows.h"
#include "autotune/store/record_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

enum class Line : uint8_t { kRead, kTooLong, kEnd };

Line NextLine(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& buffer = *in.rdbuf();
  constexpr auto kEof = std::char_traits<char>::eof();
  auto c = buffer.sbumpc();
  if (c == kEof) return Line::kEnd;
  for (; c != kEof && c != '\n'; c = buffer.sbumpc()) {
    if (line.size() == kLongestLine) return Line::kTooLong;
    line += static_cast<char>(c);
  }
  return Line::kRead;
}

/// Records on their way to a cache, in a temporary database.
class Staging {
 public:
  static absl::StatusOr<Staging> Make(const ImportTerms& terms) {
    ASSIGN_OR_RETURN(Database db, Database::Open("", Access::kReadWrite));
    RETURN_IF_ERROR(Migrate(db));
    auto held = std::make_unique<Database>(std::move(db));
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*held));
    return Staging(terms, std::move(held), std::move(transaction));
  }

  /// Takes a record, or notes why it is rejected. An error is one of the temporary database.
  absl::Status Add(int64_t line, absl::StatusOr<ExportedRecord> offered) {
    ++summary_.offered;
    absl::Status valid = offered.status();
    if (valid.ok()) valid = CheckImported(*offered, terms_.check_trace);
    if (!valid.ok()) {
      Reject(line, valid.message());
      return absl::OkStatus();
    }
    const std::string& key = offered->record.key;
    ASSIGN_OR_RETURN(const std::optional<TuningRecord> staged, ReadRecord(*db_, key));
    if (staged.has_value() && !Displaces(offered->record, *staged)) {
      Reject(line, absl::StrCat("a record of ", key.substr(0, 12), " before it is as good"));
      return absl::OkStatus();
    }
    lines_[key] = line;
    return WriteImported(*db_, *offered);
  }

  /// Moves what was staged to `into`, all or nothing.
  absl::StatusOr<ImportSummary> Commit(Database& into) && {
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(into));
    std::vector<TuningRecord> staged;
    RETURN_IF_ERROR(ReadRecords(*db_, [&](RecordRow row) {
      if (row.record.ok()) staged.push_back(*std::move(row.record));
    }));
    for (TuningRecord& record : staged) {
      record.imported = true;
      RETURN_IF_ERROR(Move(into, record));
    }
    if (!terms_.dry_run) RETURN_IF_ERROR(transaction.Commit());
    absl::c_stable_sort(summary_.rejected,
                        [](const auto& a, const auto& b) { return a.line < b.line; });
    return std::move(summary_);
  }

 private:
  Staging(const ImportTerms& terms, std::unique_ptr<Database> db, Transaction transaction)
      : terms_(terms), db_(std::move(db)), transaction_(std::move(transaction)) {}

  void Reject(int64_t line, absl::string_view reason) {
    summary_.rejected.push_back({line, std::string(reason)});
  }

  absl::Status Move(Database& into, const TuningRecord& record) {
    absl::StatusOr<std::optional<TuningRecord>> stored = ReadRecord(into, record.key);
    // A stored row that makes no sense is replaced.
    if (!stored.ok() && !absl::IsInvalidArgument(stored.status())) return stored.status();
    const bool replaces = stored.ok() && stored->has_value();
    ASSIGN_OR_RETURN(ExportedRecord exported, ReadExported(*db_, record));
    ASSIGN_OR_RETURN(const std::vector<VariantResult> failed, ReadFailed(into, record.key));
    const auto has_failed = [&](const VariantResult& v) {
      return absl::c_any_of(failed, [&](const VariantResult& f) { return SameVariant(f, v); });
    };
    if (replaces && !Displaces(record, **stored)) {
      ++((*stored)->complete && !(*stored)->imported ? summary_.kept_certified : summary_.kept);
      return AddBuckets(into, exported.buckets, has_failed);
    }
    for (const VariantResult* v : {&record.best, &record.baseline}) {
      if (!has_failed(*v)) continue;
      Reject(lines_[record.key], absl::StrCat(Words(*v), " has failed here"));
      return absl::OkStatus();
    }
    std::vector<VariantResult>& variants = exported.variants;
    variants.erase(std::remove_if(variants.begin(), variants.end(), has_failed), variants.end());
    const std::vector<FamilyBucket> buckets = std::exchange(exported.buckets, {});
    RETURN_IF_ERROR(WriteImported(into, exported));
    ++(replaces ? summary_.replaced : summary_.added);
    return AddBuckets(into, buckets, has_failed);
  }

  /// Adds the buckets of a record that is in the cache.
  absl::Status AddBuckets(Database& into, const std::vector<FamilyBucket>& buckets,
                          absl::FunctionRef<bool(const VariantResult&)> has_failed) {
    for (const FamilyBucket& of : buckets) {
      if (has_failed({.trace = of.bucket.trace, .config = of.bucket.config})) continue;
      ASSIGN_OR_RETURN(const bool added, AddBucket(into, of));
      summary_.buckets += added ? 1 : 0;
    }
    return absl::OkStatus();
  }

  const ImportTerms& terms_;
  std::unique_ptr<Database> db_;
  Transaction transaction_;  // of the temporary database; never committed, since that is all it is
  std::map<std::string, int64_t> lines_;  // by key
  ImportSummary summary_;
};

}  // namespace

bool Displaces(const TuningRecord& offered, const TuningRecord& stored) {
  if (stored.complete && !stored.imported) return false;
  const auto merit = [](const TuningRecord& r) {
    return std::tuple(r.complete, r.search.runs, r.best.timing.samples, r.created_s);
  };
  return merit(offered) > merit(stored);
}

absl::StatusOr<int64_t> ExportTo(std::ostream& out, Database& db,
                                 absl::FunctionRef<bool(const TuningRecord&)> wanted) {
  // One transaction, so that records and variants are of one state.
  ASSIGN_OR_RETURN(Transaction reading, Transaction::BeginRead(db));
  out << HeaderLine() << "\n";
  std::vector<TuningRecord> records;
  absl::Status invalid;
  RETURN_IF_ERROR(ReadRecords(db, [&](RecordRow row) {
    if (!row.record.ok())
      invalid = WithContext(row.record.status(), absl::StrCat("record ", row.key.substr(0, 12)));
    else if (wanted(*row.record))
      records.push_back(*std::move(row.record));
  }));
  RETURN_IF_ERROR(invalid);
  for (const TuningRecord& record : records) {
    ASSIGN_OR_RETURN(const ExportedRecord exported, ReadExported(db, record));
    out << RecordLine(exported) << "\n";
  }
  out.flush();
  if (!out) return absl::InternalError("the export cannot be written");
  return static_cast<int64_t>(records.size());
}

absl::StatusOr<ImportSummary> ImportFrom(Database& into, std::istream& in,
                                         const ImportTerms& terms) {
  std::string line;
  const Line first = NextLine(in, line);
  RETURN_IF_ERROR(CheckHeaderLine(first == Line::kRead ? line : ""));
  ASSIGN_OR_RETURN(Staging staging, Staging::Make(terms));
  for (int64_t number = 2;; ++number) {
    switch (NextLine(in, line)) {
      case Line::kEnd:
        if (in.bad()) return absl::InvalidArgumentError("the export cannot be read");
        return std::move(staging).Commit(into);
      case Line::kTooLong:
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, ": longer than ", kLongestLine, " bytes"));
      case Line::kRead:
        if (line.empty()) break;
        RETURN_IF_ERROR(staging.Add(number, ParseRecordLine(line)));
        break;
    }
  }
}

absl::StatusOr<ImportSummary> MergeFrom(Database& into, Database& from, const ImportTerms& terms) {
  RETURN_IF_ERROR(CheckPages(from));
  ASSIGN_OR_RETURN(Transaction reading, Transaction::BeginRead(from));
  ASSIGN_OR_RETURN(Staging staging, Staging::Make(terms));
  std::vector<RecordRow> rows;
  RETURN_IF_ERROR(ReadRecords(from, [&](RecordRow row) { rows.push_back(std::move(row)); }));
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StatusOr<ExportedRecord> exported =
        rows[i].record.ok() ? ReadExported(from, *rows[i].record)
                            : absl::StatusOr<ExportedRecord>(rows[i].record.status());
    if (absl::IsDataLoss(exported.status())) return exported.status();
    RETURN_IF_ERROR(staging.Add(static_cast<int64_t>(i) + 1, std::move(exported)));
  }
  return std::move(staging).Commit(into);
}

}  // namespace coconet
