#include "autotune/store/tuning_cache.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/database.h"
#include "autotune/store/tuning_rows.h"
#include "coconet/base/fingerprint.h"

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

void TuningCache::CannotStore(const absl::Status& why) {
  if (absl::IsDataLoss(why)) return GiveUp(why);
  warn_(absl::StrCat("tuning cache ", file_, " cannot be written (", why.message(),
                     "): what is tuned is not kept"));
  rep_->stores = false;
}

bool TuningCache::stores() const { return rep_ != nullptr && rep_->stores; }

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
  absl::StatusOr<std::vector<VariantResult>> failures = ReadFailures(rep_->file.db, key);
  if (failures.ok()) return *std::move(failures);
  GiveUp(failures.status());
  return {};
}

void TuningCache::Begin(const std::string& key, const VariantResult& variant) {
  if (!stores()) return;
  if (absl::Status marked = MarkInFlight(rep_->file.db, key, variant); !marked.ok())
    CannotStore(marked);
}

void TuningCache::End(const std::string& key, const VariantResult& variant) {
  if (!stores()) return;
  if (absl::Status cleared = ClearInFlight(rep_->file.db, key, variant); !cleared.ok())
    CannotStore(cleared);
}

void TuningCache::Store(const TuningRecord& record, absl::Span<const VariantResult> variants) {
  if (!stores()) return;
  if (absl::Status written = WriteRecord(rep_->file.db, record, variants); !written.ok())
    CannotStore(written);
}

}  // namespace coconet
