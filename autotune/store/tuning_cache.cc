#include "autotune/store/tuning_cache.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/failure_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {

struct TuningCache::Rep {
  OpenCacheFile file;
  bool stores;
  bool checked;  // the whole of it
};

TuningCache::TuningCache(std::string file, Warn warn)
    : file_(std::move(file)), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](absl::string_view) {};
}

TuningCache::~TuningCache() = default;

std::unique_ptr<TuningCache> TuningCache::Open(const std::string& file, Warn warn, Use use) {
  std::unique_ptr<TuningCache> cache(new TuningCache(file, std::move(warn)));
  if (file == ":none:") return cache;
  if (file.empty()) {
    cache->warn_("no place for a tuning cache (set COCONET_CACHE_DIR): what is tuned is not kept");
    return cache;
  }
  if (use == Use::kRead && InodeOf(file) == 0) {
    cache->warn_(absl::StrCat("there is no tuning cache ", file));
    return cache;
  }
  cache->OpenFile(Check::kSchema);
  if (use == Use::kKeep && cache->rep_ != nullptr && !cache->stores())
    cache->warn_(absl::StrCat("tuning cache ", file, " is read-only: what is tuned is not kept"));
  return cache;
}

void TuningCache::OpenFile(Check check) {
  rep_.reset();
  absl::StatusOr<OpenCacheFile> opened = OpenCache(file_, check, warn_);
  if (!opened.ok()) return GiveUp(opened.status());
  const bool stores = opened->access == Access::kReadWrite;
  rep_.reset(new Rep{*std::move(opened), stores, check == Check::kWhole});
}

void TuningCache::CheckWhole() {
  if (rep_ == nullptr || rep_->checked) return;
  rep_->checked = true;
  if (absl::IsDataLoss(CheckPages(rep_->file.db))) OpenFile(Check::kWhole);
}

void TuningCache::GiveUp(const absl::Status& why) {
  warn_(absl::StrCat("tuning cache ", file_, " ", why.message(), ": what is tuned is not kept"));
  rep_.reset();
}

template <class Read>
auto TuningCache::FromFile(Read read) -> decltype(read(std::declval<Database&>())) {
  auto found = read(rep_->file.db);
  if (!absl::IsDataLoss(found.status())) return found;
  OpenFile(Check::kWhole);
  return rep_ == nullptr ? found : read(rep_->file.db);
}

template <class Write>
void TuningCache::ToFile(Write write) {
  if (!IsReady()) return;
  absl::Status stored = write(rep_->file.db);
  if (absl::IsDataLoss(stored)) {
    OpenFile(Check::kWhole);
    if (!stores()) return;
    stored = write(rep_->file.db);
  }
  if (stored.ok()) return;
  warn_(absl::StrCat("tuning cache ", file_, " cannot be written (", stored.message(),
                     "): what is tuned is not kept"));
  rep_->stores = false;
}

bool TuningCache::stores() const { return rep_ != nullptr && rep_->stores; }

bool TuningCache::IsReady() {
  if (!stores() || InodeOf(file_) == rep_->file.inode) return stores();
  warn_(absl::StrCat("tuning cache ", file_, " was removed while it was open: it is begun anew"));
  OpenFile(Check::kSchema);
  return stores();
}

std::optional<TuningRecord> TuningCache::Find(const std::string& key_text) {
  std::optional<TuningRecord> record = FindByKey(Fingerprint(key_text));
  // Another text with the same digest is a collision or a forgery: a miss.
  if (record.has_value() && record->key_text != key_text) return std::nullopt;
  return record;
}

std::optional<TuningRecord> TuningCache::FindByKey(const std::string& key_prefix) {
  if (rep_ == nullptr) return std::nullopt;
  absl::StatusOr<std::optional<TuningRecord>> record =
      FromFile([&](Database& db) { return ReadRecord(db, key_prefix); });
  if (record.ok()) return *std::move(record);
  if (absl::IsInvalidArgument(record.status())) {
    warn_(absl::StrCat("tuning cache ", file_, ": the record ", key_prefix.substr(0, 12),
                       " makes no sense (", record.status().message(), ") and is ignored"));
  } else {
    GiveUp(record.status());
  }
  return std::nullopt;
}

std::vector<std::string> TuningCache::Keys() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<std::string>> keys = FromFile(ReadKeysOfVariants);
  if (keys.ok()) return *std::move(keys);
  GiveUp(keys.status());
  return {};
}

std::vector<KeyOfRecord> TuningCache::KeyTexts() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<KeyOfRecord>> keys = FromFile(ReadKeyTexts);
  if (keys.ok()) return *std::move(keys);
  GiveUp(keys.status());
  return {};
}

std::vector<TuningRecord> TuningCache::List() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<std::string>> keys = FromFile(ReadKeys);
  if (!keys.ok()) {
    GiveUp(keys.status());
    return {};
  }
  std::vector<TuningRecord> records;
  for (const std::string& key : *keys) {
    if (std::optional<TuningRecord> record = FindByKey(key)) records.push_back(*std::move(record));
  }
  return records;
}

std::vector<VariantResult> TuningCache::Variants(const std::string& key) {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<VariantResult>> variants =
      FromFile([&](Database& db) { return ReadVariants(db, key); });
  if (variants.ok()) return *std::move(variants);
  warn_(absl::StrCat("tuning cache ", file_, ": the variants of ", key.substr(0, 12), ": ",
                     variants.status().message()));
  return {};
}

std::vector<VariantResult> TuningCache::Failures(const std::string& key) {
  if (rep_ == nullptr) return {};
  ToFile([&](Database& db) { return CountDeaths(db, key); });
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<VariantResult>> failures =
      FromFile([&](Database& db) { return ReadFailures(db, key); });
  if (failures.ok()) return *std::move(failures);
  GiveUp(failures.status());
  return {};
}

void TuningCache::Begin(const std::string& key, const VariantResult& variant) {
  ToFile([&](Database& db) { return MarkInFlight(db, key, variant); });
}

void TuningCache::End(const std::string& key, const VariantResult& variant) {
  ToFile([&](Database& db) { return ClearInFlight(db, key, variant); });
}

void TuningCache::Fail(const std::string& key, const VariantResult& variant) {
  ToFile([&](Database& db) { return WriteFailure(db, key, variant); });
}

void TuningCache::AddTrust(const std::string& key, const VariantResult& variant,
                           const Trust& trust) {
  ToFile([&](Database& db) { return WriteTrust(db, key, variant, trust); });
}

void TuningCache::Store(const TuningRecord& record, absl::Span<const VariantResult> variants) {
  ToFile([&](Database& db) { return WriteRecord(db, record, variants); });
}

void TuningCache::Distrust(const std::string& key) {
  ToFile([&](Database& db) { return ForgetTrust(db, key); });
}

void TuningCache::Retune(const std::string& key) {
  ToFile([&](Database& db) { return MarkIncomplete(db, key); });
}

void TuningCache::MarkStale(const std::string& key, const std::string& soft) {
  ToFile([&](Database& db) { return coconet::MarkStale(db, key, soft); });
}

void TuningCache::Forgive(const std::string& key) {
  ToFile([&](Database& db) { return ForgetFailures(db, key); });
}

std::optional<Calibration> TuningCache::FindCalibration(const std::string& key_text) {
  if (rep_ == nullptr) return std::nullopt;
  absl::StatusOr<std::optional<Calibration>> found =
      FromFile([&](Database& db) { return ReadCalibration(db, Fingerprint(key_text)); });
  if (!found.ok()) {
    GiveUp(found.status());
    return std::nullopt;
  }
  return *std::move(found);
}

std::vector<Calibration> TuningCache::Calibrations() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<Calibration>> all = FromFile(ReadCalibrations);
  if (all.ok()) return *std::move(all);
  GiveUp(all.status());
  return {};
}

void TuningCache::StoreCalibration(const Calibration& calibration) {
  ToFile([&](Database& db) { return WriteCalibration(db, calibration); });
}

std::vector<Prediction> TuningCache::Predictions(const std::string& calibration) {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<Prediction>> all =
      FromFile([&](Database& db) { return ReadPredictions(db, calibration); });
  if (all.ok()) return *std::move(all);
  GiveUp(all.status());
  return {};
}

void TuningCache::AddPredictions(absl::Span<const Prediction> predictions) {
  ToFile([&](Database& db) { return WritePredictions(db, predictions); });
}

void TuningCache::Forget(const std::string& key) {
  ToFile([&](Database& db) { return DeleteKey(db, key); });
}

}  // namespace coconet
