#include "autotune/store/tuning_cache.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/cache_rows.h"
#include "autotune/store/database.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {

struct TuningCache::Rep {
  OpenCacheFile file;
  bool stores;
};

TuningCache::TuningCache(std::string file, Warn warn)
    : file_(std::move(file)), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](absl::string_view) {};
}

TuningCache::~TuningCache() = default;

std::unique_ptr<TuningCache> TuningCache::Open(const std::string& file, Warn warn) {
  std::unique_ptr<TuningCache> cache(new TuningCache(file, std::move(warn)));
  if (file == ":none:") return cache;
  if (file.empty()) {
    cache->warn_("no place for a tuning cache (set COCONET_CACHE_DIR): what is tuned is not kept");
    return cache;
  }
  absl::StatusOr<OpenCacheFile> opened = OpenCache(file, cache->warn_);
  if (!opened.ok()) {
    cache->GiveUp(opened.status());
    return cache;
  }
  const bool stores = opened->access == Access::kReadWrite;
  if (!stores)
    cache->warn_(absl::StrCat("tuning cache ", file, " is read-only: what is tuned is not kept"));
  cache->rep_.reset(new Rep{*std::move(opened), stores});
  return cache;
}

void TuningCache::GiveUp(const absl::Status& why) {
  warn_(absl::StrCat("tuning cache ", file_, " ", why.message(), ": what is tuned is not kept"));
  rep_.reset();
}

void TuningCache::CheckStored(const absl::Status& stored) {
  if (stored.ok()) return;
  if (absl::IsDataLoss(stored)) return GiveUp(stored);
  warn_(absl::StrCat("tuning cache ", file_, " cannot be written (", stored.message(),
                     "): what is tuned is not kept"));
  rep_->stores = false;
}

bool TuningCache::stores() const { return rep_ != nullptr && rep_->stores; }

bool TuningCache::IsReady() {
  if (!stores() || InodeOf(file_) == rep_->file.inode) return stores();
  warn_(absl::StrCat("tuning cache ", file_, " was removed while it was open: it is begun anew"));
  rep_.reset();
  absl::StatusOr<OpenCacheFile> opened = OpenCache(file_, warn_);
  if (!opened.ok()) {
    GiveUp(opened.status());
    return false;
  }
  const bool stores = opened->access == Access::kReadWrite;
  rep_.reset(new Rep{*std::move(opened), stores});
  return stores;
}

std::optional<TuningRecord> TuningCache::Find(const std::string& key_text) {
  std::optional<TuningRecord> record = FindByKey(Fingerprint(key_text));
  // Another text with the same digest is a collision or a forgery: a miss.
  if (record.has_value() && record->key_text != key_text) return std::nullopt;
  return record;
}

std::optional<TuningRecord> TuningCache::FindByKey(const std::string& key_prefix) {
  if (rep_ == nullptr) return std::nullopt;
  absl::StatusOr<std::optional<TuningRecord>> record = ReadRecord(rep_->file.db, key_prefix);
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
  absl::StatusOr<std::vector<std::string>> keys = ReadKeysOfVariants(rep_->file.db);
  if (keys.ok()) return *std::move(keys);
  GiveUp(keys.status());
  return {};
}

std::vector<TuningRecord> TuningCache::List() {
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<std::string>> keys = ReadKeys(rep_->file.db);
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
  absl::StatusOr<std::vector<VariantResult>> variants = ReadVariants(rep_->file.db, key);
  if (variants.ok()) return *std::move(variants);
  warn_(absl::StrCat("tuning cache ", file_, ": the variants of ", key.substr(0, 12), ": ",
                     variants.status().message()));
  return {};
}

std::vector<VariantResult> TuningCache::Failures(const std::string& key) {
  if (rep_ == nullptr) return {};
  if (IsReady()) CheckStored(CountDeaths(rep_->file.db, key));
  if (rep_ == nullptr) return {};
  absl::StatusOr<std::vector<VariantResult>> failures = ReadFailures(rep_->file.db, key);
  if (failures.ok()) return *std::move(failures);
  GiveUp(failures.status());
  return {};
}

void TuningCache::Begin(const std::string& key, const VariantResult& variant) {
  if (IsReady()) CheckStored(MarkInFlight(rep_->file.db, key, variant));
}

void TuningCache::End(const std::string& key, const VariantResult& variant) {
  if (IsReady()) CheckStored(ClearInFlight(rep_->file.db, key, variant));
}

void TuningCache::Fail(const std::string& key, const VariantResult& variant) {
  if (IsReady()) CheckStored(WriteFailure(rep_->file.db, key, variant));
}

void TuningCache::AddTrust(const std::string& key, const VariantResult& variant,
                           const Trust& trust) {
  if (IsReady()) CheckStored(WriteTrust(rep_->file.db, key, variant, trust));
}

void TuningCache::Store(const TuningRecord& record, absl::Span<const VariantResult> variants) {
  if (IsReady()) CheckStored(WriteRecord(rep_->file.db, record, variants));
}

void TuningCache::Distrust(const std::string& key) {
  if (IsReady()) CheckStored(ForgetTrust(rep_->file.db, key));
}

void TuningCache::Retune(const std::string& key) {
  if (IsReady()) CheckStored(MarkIncomplete(rep_->file.db, key));
}

void TuningCache::MarkStale(const std::string& key, const std::string& soft) {
  if (IsReady()) CheckStored(coconet::MarkStale(rep_->file.db, key, soft));
}

void TuningCache::Forgive(const std::string& key) {
  if (IsReady()) CheckStored(ForgetFailures(rep_->file.db, key));
}

void TuningCache::Forget(const std::string& key) {
  if (IsReady()) CheckStored(DeleteKey(rep_->file.db, key));
}

}  // namespace coconet
