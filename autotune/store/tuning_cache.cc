#include "autotune/store/tuning_cache.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/failure_rows.h"
#include "autotune/store/history/history_rows.h"
#include "autotune/store/upkeep/use_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {

struct TuningCache::Rep {
  OpenCacheFile file;
  bool stores;
  bool checked;  // the whole of it
};

TuningCache::TuningCache(CacheLayers layers, Warn warn)
    : layers_(std::move(layers)), file_(layers_.user), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](absl::string_view) {};
}

TuningCache::~TuningCache() = default;

std::unique_ptr<TuningCache> TuningCache::Open(const std::string& file, Warn warn, Use use) {
  CacheLayers only;
  only.user = file;
  return Open(only, std::move(warn), use);
}

std::unique_ptr<TuningCache> TuningCache::Open(const CacheLayers& layers, Warn warn, Use use) {
  std::unique_ptr<TuningCache> cache(new TuningCache(layers, std::move(warn)));
  const std::string& file = cache->file_;
  if (!layers.warning.empty()) cache->warn_(layers.warning);
  if (file == ":none:") return cache;
  for (const ForeignFile& foreign : layers.foreign)
    cache->foreign_.push_back(ForeignCache::Open(foreign, cache->warn_));
  if (file.empty()) {
    cache->warn_("no place for a tuning cache (set COCONET_CACHE_DIR): what is tuned is not kept");
    return cache;
  }
  if (layers.read_only && InodeOf(file) == 0) return cache;  // the user wants no new one
  if (use == Use::kRead && InodeOf(file) == 0) {
    if (cache->foreign_.empty()) cache->warn_(absl::StrCat("there is no tuning cache ", file));
    return cache;
  }
  cache->OpenFile(Check::kSchema);
  if (use == Use::kKeep && !layers.read_only && cache->rep_ != nullptr && !cache->stores())
    cache->warn_(absl::StrCat("tuning cache ", file, " is read-only: what is tuned is not kept"));
  return cache;
}

void TuningCache::OpenFile(Check check) {
  rep_.reset();
  if (layers_.read_only) {
    absl::StatusOr<Database> db = OpenUnchanged(file_, /*foreign=*/false);
    if (!db.ok()) return GiveUp(db.status());
    OpenCacheFile opened{FileLock(), *std::move(db), Access::kReadOnly, InodeOf(file_)};
    rep_.reset(new Rep{std::move(opened), /*stores=*/false, /*checked=*/true});
    return;
  }
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
  std::optional<Taken> taken = Take(Fingerprint(key_text));
  // Another text with the same digest is a collision or a forgery: a miss.
  if (!taken.has_value() || taken->record.key_text != key_text) return std::nullopt;
  const std::string& key = taken->record.key;
  if (taken->from != nullptr && rep_ != nullptr) {
    absl::StatusOr<std::vector<Trust>> trust =
        FromFile([&](Database& db) { return ReadTrust(db, key, taken->record.best); });
    if (trust.ok()) taken->record.trust = *std::move(trust);
  }
  // That a use could not be noted is no reason to store nothing from now on.
  if (taken->from == nullptr && IsReady()) NoteUse(rep_->file.db, key).IgnoreError();
  return std::move(taken->record);
}

std::optional<TuningCache::Taken> TuningCache::Take(const std::string& key) {
  std::optional<Taken> best;
  const auto offer = [&](std::optional<TuningRecord> record, ForeignCache* from) {
    if (!record.has_value() || (from != nullptr && HasFailedHere(key, record->best))) return;
    best = Taken{*std::move(record), from};
  };
  for (const std::unique_ptr<ForeignCache>& job : foreign_) {
    if (job->file().layer == Layer::kJob) offer(job->Find(key), job.get());
  }
  if (best.has_value() && best->record.complete) return best;
  std::optional<TuningRecord> own = FindOwn(key);
  if (own.has_value() && (!best.has_value() || own->complete)) offer(std::move(own), nullptr);
  for (const std::unique_ptr<ForeignCache>& lower : foreign_) {
    if (best.has_value()) break;
    if (lower->file().layer > Layer::kUser) offer(lower->Find(key), lower.get());
  }
  return best;
}

std::optional<TuningRecord> TuningCache::FindOwn(const std::string& key) {
  std::optional<TuningRecord> record = FindByKey(key);
  if (record.has_value()) ApplyPin(*record);
  return record;
}

void TuningCache::ApplyPin(TuningRecord& record) {
  if (rep_ == nullptr) return;
  absl::StatusOr<std::optional<VariantResult>> pin =
      FromFile([&](Database& db) { return ReadPin(db, record.key); });
  if (!pin.ok()) {
    warn_(absl::StrCat("tuning cache ", file_, ": the variant that is pinned for ",
                       record.key.substr(0, 12), " is not used: ", pin.status().message()));
    return;
  }
  if (!pin->has_value()) return;
  if (absl::StatusOr<std::vector<Trust>> trust =
          FromFile([&](Database& db) { return ReadTrust(db, record.key, **pin); });
      trust.ok())
    record.trust = *std::move(trust);
  else
    record.trust.clear();
  record.best = **std::move(pin);
  record.pinned = record.complete = true;
}

bool TuningCache::HasFailedHere(const std::string& key, const VariantResult& variant) {
  if (rep_ == nullptr) return false;
  const absl::StatusOr<std::vector<VariantResult>> failures =
      FromFile([&](Database& db) { return ReadFailures(db, key); });
  return failures.ok() && absl::c_any_of(*failures, [&](const VariantResult& failed) {
           return SameVariant(failed, variant);
         });
}

void TuningCache::Adopt(const std::string& key) {
  if (!stores()) return;
  std::optional<Taken> taken = Take(key);
  if (!taken.has_value() || taken->from == nullptr) return;
  std::vector<VariantResult> variants = taken->from->Variants(key);
  for (const VariantResult* v : {&taken->record.best, &taken->record.baseline}) {
    if (!absl::c_linear_search(variants, *v)) variants.push_back(*v);
  }
  taken->record.imported = true;
  ToFile([&](Database& db) { return WriteRecord(db, taken->record, variants); });
}

std::optional<TuningRecord> TuningCache::FindByKey(const std::string& key_prefix) {
  if (rep_ == nullptr) return std::nullopt;
  absl::StatusOr<std::optional<TuningRecord>> record =
      FromFile([&](Database& db) { return ReadRecord(db, key_prefix); });
  if (record.ok()) return *std::move(record);
  if (absl::IsInvalidArgument(record.status()))
    Ignore(key_prefix, record.status());
  else
    GiveUp(record.status());
  return std::nullopt;
}

void TuningCache::Ignore(absl::string_view key, const absl::Status& why) {
  warn_(absl::StrCat("tuning cache ", file_, ": the record ", key.substr(0, 12),
                     " makes no sense (", why.message(), ") and is ignored"));
}

std::vector<std::string> TuningCache::Keys() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<std::string>> keys = FromFile(ReadKeysOfVariants);
  if (keys.ok()) return *std::move(keys);
  GiveUp(keys.status());
  return {};
}

std::vector<KeyOfRecord> TuningCache::KeyTexts() {
  std::vector<KeyOfRecord> all;
  if (rep_ != nullptr) {
    absl::StatusOr<std::vector<KeyOfRecord>> keys = FromFile(ReadKeyTexts);
    if (keys.ok())
      all = *std::move(keys);
    else
      GiveUp(keys.status());
  }
  for (const std::unique_ptr<ForeignCache>& foreign : foreign_)
    absl::c_move(foreign->KeyTexts(), std::back_inserter(all));
  return all;
}

std::vector<TuningRecord> TuningCache::List() {
  if (rep_ == nullptr) return {};
  std::vector<TuningRecord> records;
  std::vector<RecordRow> invalid;
  const absl::StatusOr<bool> read = FromFile([&](Database& db) -> absl::StatusOr<bool> {
    records.clear();
    invalid.clear();
    RETURN_IF_ERROR(ReadRecords(db, [&](RecordRow row) {
      if (row.record.ok())
        records.push_back(*std::move(row.record));
      else
        invalid.push_back(std::move(row));
    }));
    return true;
  });
  for (const RecordRow& row : invalid) Ignore(row.key, row.record.status());
  if (read.ok()) return records;
  GiveUp(read.status());
  return {};
}

std::vector<LayeredRecord> TuningCache::ListLayers() {
  std::vector<LayeredRecord> all;
  const auto add_foreign = [&](bool above) {
    for (const std::unique_ptr<ForeignCache>& foreign : foreign_) {
      const auto& [layer, file] = foreign->file();
      if ((layer < Layer::kUser) != above) continue;
      for (TuningRecord& record : foreign->List()) all.push_back({std::move(record), layer, file});
    }
  };
  add_foreign(true);
  for (TuningRecord& record : List()) {
    ApplyPin(record);
    LayeredRecord& added = all.emplace_back(LayeredRecord{std::move(record), Layer::kUser, file_});
    if (rep_ == nullptr) continue;
    const absl::StatusOr<int64_t> used =
        FromFile([&](Database& db) { return ReadLastUse(db, added.record.key); });
    if (used.ok()) added.used_s = *used;
  }
  add_foreign(false);
  if (foreign_.empty()) return all;
  for (LayeredRecord& listed : all) {
    const std::optional<Taken> taken = Take(listed.record.key);
    const Layer used =
        !taken.has_value() || taken->from == nullptr ? Layer::kUser : taken->from->file().layer;
    listed.shadowed = used != listed.layer;
  }
  return all;
}

std::vector<VariantResult> TuningCache::Variants(const std::string& key) {
  if (!foreign_.empty()) {
    const std::optional<Taken> taken = Take(key);
    if (taken.has_value() && taken->from != nullptr) return taken->from->Variants(key);
  }
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
  KeepWithinLimit(record.key);
}

std::vector<Measured> TuningCache::History(const std::string& key) {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<Measured>> history =
      FromFile([&](Database& db) { return ReadHistory(db, key); });
  if (history.ok()) return *std::move(history);
  warn_(absl::StrCat("tuning cache ", file_, ": the history of ", key.substr(0, 12), ": ",
                     history.status().message()));
  return {};
}

void TuningCache::Remember(const std::string& key, const Measured& measured) {
  ToFile([&](Database& db) { return WriteHistory(db, key, measured); });
}

void TuningCache::KeepWithinLimit(const std::string& key) {
  if (!stores() || layers_.limit <= 0) return;
  const absl::StatusOr<int64_t> bytes = BytesInUse(rep_->file.db);
  if (!bytes.ok() || *bytes <= layers_.limit) return;
  // A tenth below, so that not each record that is stored makes another one go.
  const int64_t target = layers_.limit - layers_.limit / 10;
  ToFile([&](Database& db) -> absl::Status {
    ASSIGN_OR_RETURN(const Pruned pruned, Prune(db, {.bytes = target, .keep = key}));
    if (!pruned.keys.empty()) {
      warn_(absl::StrCat("tuning cache ", file_, " has grown beyond COCONET_CACHE_LIMIT, ",
                         layers_.limit, " bytes: deleted the ", pruned.keys.size(),
                         " records that were not used for the longest time"));
    }
    return absl::OkStatus();
  });
}

void TuningCache::Distrust(const std::string& key) {
  ToFile([&](Database& db) { return ForgetTrust(db, key); });
}

void TuningCache::Retune(const std::string& key) {
  Adopt(key);
  ToFile([&](Database& db) { return MarkIncomplete(db, key); });
}

void TuningCache::MarkStale(const std::string& key, const std::string& soft) {
  Adopt(key);
  ToFile([&](Database& db) { return coconet::MarkStale(db, key, soft); });
}

void TuningCache::Forgive(const std::string& key) {
  ToFile([&](Database& db) { return ForgetFailures(db, key); });
}

std::vector<SizeBucket> TuningCache::FindBuckets(const std::string& family_text) {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<SizeBucket>> buckets = FromFile([&](Database& db) {
    return ReadBuckets(db, family_text, [&](const absl::Status& why) {
      warn_(absl::StrCat("tuning cache ", file_, ": a bucket of sizes makes no sense (",
                         why.message(), ") and is ignored"));
    });
  });
  if (!buckets.ok()) {
    GiveUp(buckets.status());
    return {};
  }
  for (const SizeBucket& bucket : *buckets) {
    if (IsReady()) NoteUse(rep_->file.db, bucket.key).IgnoreError();
  }
  return *std::move(buckets);
}

void TuningCache::StoreBuckets(const std::string& family_text,
                               absl::Span<const SizeBucket> buckets) {
  ToFile([&](Database& db) { return WriteBuckets(db, family_text, buckets); });
}

void TuningCache::ConfirmBucket(const std::string& family_text, const SizeBucket& bucket) {
  ToFile([&](Database& db) { return ConfirmBuckets(db, family_text, bucket); });
}

void TuningCache::ForgetBucket(const std::string& family_text, const SizeBucket& bucket) {
  ToFile([&](Database& db) { return DeleteBuckets(db, family_text, bucket); });
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

absl::Status TuningCache::Pin(const std::string& key, const VariantResult& variant) {
  Adopt(key);
  if (!IsReady()) return absl::FailedPreconditionError("the tuning cache cannot be written");
  return WritePin(rep_->file.db, key, variant);
}

absl::StatusOr<bool> TuningCache::Unpin(const std::string& key) {
  if (!IsReady()) return absl::FailedPreconditionError("the tuning cache cannot be written");
  return DeletePin(rep_->file.db, key);
}

absl::StatusOr<Pruned> TuningCache::PruneNow(const PruneTerms& terms) {
  if (!IsReady()) return absl::FailedPreconditionError("the tuning cache cannot be written");
  ASSIGN_OR_RETURN(Pruned pruned, Prune(rep_->file.db, terms));
  if (terms.dry_run) return pruned;
  RETURN_IF_ERROR(WithContext(rep_->file.db.Shrink(), "deleted, but the file keeps its size"));
  return pruned;
}

Database* TuningCache::db() { return rep_ == nullptr ? nullptr : &rep_->file.db; }

}  // namespace coconet
