// libFuzzer's entry: the input is the rows of a tuning cache (fuzz.h), whatever their types, as a
// file from another source may hold them. Calls every function of the cache that a job calls.

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/database.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "tests/fuzz/fuzz.h"

namespace coconet {
namespace {

struct Table {
  char letter;
  const char* name;
  const char* columns;
};
/// As in the schema, without types and checks, which another writer need not keep.
constexpr Table kTables[] = {
    {'e', "env", "id INTEGER PRIMARY KEY, text"},
    {'p', "program", "id INTEGER PRIMARY KEY, text"},
    {'v', "variant",
     "id INTEGER PRIMARY KEY, key, trace, config, schedule, protocol, verdict, reason, median_us, "
     "low_us, high_us, samples, bytes, updated_s, failed_runs, deaths, UNIQUE(key, trace, config)"},
    {'d', "decision",
     "key, env, program, best, baseline, runner_up, necessary_bytes, variants, complete, "
     "created_s"},
    {'f', "in_flight", "variant, process, since_s"},
    {'t', "trust",
     "variant, fingerprint, machine, checks, verified_s, PRIMARY KEY(variant, fingerprint, "
     "machine)"},
};

const Table* TableOf(absl::string_view letter) {
  for (const Table& table : kTables) {
    if (letter.size() == 1 && letter[0] == table.letter) return &table;
  }
  return nullptr;
}

using Row = std::vector<std::string>;  // the table's letter, then its fields

std::vector<Row> RowsOf(absl::string_view input) {
  std::vector<Row> rows;
  for (absl::string_view row : absl::StrSplit(input, kEndOfRow, absl::SkipEmpty()))
    rows.push_back(absl::StrSplit(row, kEndOfField));
  return rows;
}

/// The text in the first row of a table of texts.
std::string FirstText(const std::vector<Row>& rows, absl::string_view letter) {
  for (const Row& row : rows) {
    if (row.size() >= 3 && row[0] == letter && absl::StartsWith(row[2], "s"))
      return row[2].substr(1);
  }
  return "";
}

void Bind(Statement& statement, absl::string_view field, const std::string& key) {
  int64_t number = 0;
  double real = 0;
  const absl::string_view value = field.substr(field.empty() ? 0 : 1);
  switch (field.empty() ? 'n' : field[0]) {
    case 'i':
      if (absl::SimpleAtoi(value, &number)) statement.Bind(number);
      break;
    case 'r':
      if (absl::SimpleAtod(value, &real)) statement.Bind(real);
      break;
    case 'k':
      statement.Bind(key);
      break;
    case 's':
    case 'b':
      statement.Bind(value);
      break;
    default:
      break;
  }
}

/// What stands for the field in SQL: NULL needs no value, a blob a cast.
std::string PlaceOf(absl::string_view field) {
  int64_t number = 0;
  double real = 0;
  const char type = field.empty() ? 'n' : field[0];
  const absl::string_view value = field.substr(field.empty() ? 0 : 1);
  const bool binds = type == 's' || type == 'b' || type == 'k' ||
                     (type == 'i' && absl::SimpleAtoi(value, &number)) ||
                     (type == 'r' && absl::SimpleAtod(value, &real));
  return !binds ? "NULL" : type == 'b' ? "CAST(? AS BLOB)" : "?";
}

/// Inserts the row; rows that SQLite refuses are left out.
absl::Status Insert(Database& db, const Row& row, const std::string& key) {
  const Table* const table = TableOf(row[0]);
  if (table == nullptr) return absl::OkStatus();
  std::vector<std::string> places;
  for (size_t i = 1; i < row.size(); ++i) places.push_back(PlaceOf(row[i]));
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare(absl::StrCat("INSERT OR IGNORE INTO ", table->name, " VALUES (",
                                           absl::StrJoin(places, ", "), ")")));
  for (size_t i = 1; i < row.size(); ++i) {
    if (places[i - 1] != "NULL") Bind(insert, row[i], key);
  }
  return insert.Run();
}

/// A cache file in memory, whose rows are exchanged from input to input.
class FuzzedCache {
 public:
  FuzzedCache()
      : folder_(absl::StrCat(std::filesystem::temp_directory_path().string(), "/row_fuzzer-",
                             getpid())),
        file_(folder_ + "/tuning.db") {
    std::filesystem::create_directory(folder_);
    absl::StatusOr<Database> db = Database::Open(file_, Access::kReadWrite);
    Expect(db.ok(), db.status().ToString());
    writer_ = std::make_unique<Database>(*std::move(db));
    std::string sql =
        absl::StrCat("PRAGMA synchronous=OFF; PRAGMA application_id=", kCacheApplicationId,
                     "; PRAGMA user_version=", kCacheSchemaVersion, ";");
    for (const Table& table : kTables)
      absl::StrAppend(&sql, "CREATE TABLE ", table.name, "(", table.columns, ");");
    const absl::Status made = writer_->Execute(sql.c_str());
    Expect(made.ok(), made.ToString());
    std::filesystem::permissions(file_, std::filesystem::perms(0600));
  }
  ~FuzzedCache() { std::filesystem::remove_all(folder_); }

  TuningCache& Holding(const std::vector<Row>& rows, const std::string& key) {
    absl::StatusOr<Transaction> transaction = Transaction::Begin(*writer_);
    Expect(transaction.ok(), transaction.status().ToString());
    for (const Table& table : kTables) {
      const absl::Status cleared =
          writer_->Execute(absl::StrCat("DELETE FROM ", table.name).c_str());
      Expect(cleared.ok(), cleared.ToString());
    }
    for (const Row& row : rows) Insert(*writer_, row, key).IgnoreError();
    const absl::Status committed = transaction->Commit();
    Expect(committed.ok(), committed.ToString());
    if (cache_ == nullptr || !cache_->stores())
      cache_ = TuningCache::Open(file_, [](absl::string_view words) {
        Expect(!words.empty(), "a warning without words");
      });
    Expect(cache_->stores(), "the cache cannot be opened");
    return *cache_;
  }

 private:
  const std::string folder_, file_;
  std::unique_ptr<Database> writer_;
  std::unique_ptr<TuningCache> cache_;
};

FuzzedCache& OpenedCache() {
  static FuzzedCache cache;
  return cache;
}

/// What a hit does with a record (ProgramLoader): it holds for the program, or is refused.
void ReplayRecord(const TuningRecord& record) {
  Expect(Validate(record).ok(), "a record was read that is not valid");
  const absl::StatusOr<TuningRecord> sent = DecodeRecord(Encode(record));
  Expect(sent.ok() && *sent == record, "a record that other ranks cannot read");
  const absl::StatusOr<std::vector<Transformation>> trace = ParseTrace(record.best.trace);
  if (!trace.ok()) return;
  const uint64_t hash = HashOf(record.key_text + record.best.trace);
  const absl::StatusOr<Schedule> schedule = Replay(FuzzedPrograms()[0], *trace);
  ExpectNoneOfOurs(schedule.status());
  if (schedule.ok() && hash % 4 == 0)
    LowerFuzzed(*schedule, record.best.config, WorldAt(hash >> 16));
}

/// What the commands ask.
void List(TuningCache& cache, const std::string& key) {
  for (const TuningRecord& record : cache.List())
    Expect(Validate(record).ok(), "a record was listed that is not valid");
  cache.FindByKey(key.substr(0, 3));
  for (const std::string& some : cache.Keys()) cache.Variants(some);
}

/// What a job that tunes writes of one variant.
void Tell(TuningCache& cache, const std::string& key, VariantResult v) {
  cache.Begin(key, v);
  cache.End(key, v);
  cache.AddTrust(key, v, {.fingerprint = "f", .machine = "m", .checks = "c", .verified_s = 1});
  v.verdict = Verdict::kTimedOut;
  v.reason = "late";
  cache.Fail(key, v);
}

void Forget(TuningCache& cache, const std::string& key_text, const std::string& key) {
  cache.Distrust(key);
  cache.Retune(key);
  cache.Forgive(key);
  cache.Forget(key);
  Expect(!cache.stores() || !cache.Find(key_text).has_value(), "a record is found after Forget");
}

/// What a job asks first, and something of the rest: all of it takes long.
void Ask(TuningCache& cache, const std::string& key_text, const std::string& key, uint64_t hash) {
  const std::optional<TuningRecord> record = cache.Find(key_text);
  if (record.has_value()) ReplayRecord(*record);
  for (const VariantResult& failed : cache.Failures(key))
    Expect(!failed.reason.empty(), "a variant is left out without a reason");
  const std::vector<VariantResult> variants = cache.Variants(key);
  for (const VariantResult& v : variants) Expect(!Words(v).empty(), "a variant without words");
  switch (hash % 4) {
    case 0:
      return List(cache, key);
    case 1:
      if (!variants.empty()) Tell(cache, key, variants.front());
      return;
    case 2:
      if (record.has_value()) cache.Store(*record, {&record->best, 1});
      return;
    default:
      return Forget(cache, key_text, key);
  }
}

}  // namespace
}  // namespace coconet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coconet;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<TuningRecord> message = DecodeRecord(input);
  if (message.ok() && Validate(*message).ok()) ReplayRecord(*message);
  const std::vector<Row> rows = RowsOf(input);
  const std::string key_text = FirstText(rows, "e") + FirstText(rows, "p");
  const std::string key = Fingerprint(key_text);
  Ask(OpenedCache().Holding(rows, key), key_text, key, HashOf(input) >> 7);
  return 0;
}
