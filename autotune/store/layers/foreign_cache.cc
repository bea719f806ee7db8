#include "autotune/store/layers/foreign_cache.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/upkeep/use_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"

namespace coconet {

std::unique_ptr<ForeignCache> ForeignCache::Open(ForeignFile file, Warn warn) {
  std::unique_ptr<ForeignCache> cache(new ForeignCache(std::move(file), std::move(warn)));
  absl::StatusOr<Database> db = OpenUnchanged(cache->file_.file, /*foreign=*/true);
  if (db.ok())
    cache->db_ = *std::move(db);
  else
    cache->Say(absl::StrCat(db.status().message(), ": it is not used"));
  return cache;
}

void ForeignCache::Say(absl::string_view what) const {
  warn_(absl::StrCat("tuning cache of the ", Name(file_.layer), ", ", file_.file, ", ", what));
}

template <class Read>
auto ForeignCache::FromFile(Read read) ->
    typename decltype(read(std::declval<Database&>()))::value_type {
  if (!db_.has_value()) return {};
  auto found = read(*db_);
  if (absl::IsDataLoss(found.status())) {
    absl::StatusOr<Database> anew = OpenUnchanged(file_.file, /*foreign=*/true);
    if (anew.ok()) {
      db_ = *std::move(anew);
      found = read(*db_);
    }
  }
  if (found.ok()) return *std::move(found);
  Say(absl::StrCat(found.status().message(), ": it is not used any more"));
  db_.reset();
  return {};
}

std::optional<TuningRecord> ForeignCache::Find(const std::string& key) {
  return FromFile([&](Database& db) -> absl::StatusOr<std::optional<TuningRecord>> {
    absl::StatusOr<std::optional<TuningRecord>> record = ReadRecord(db, key);
    if (absl::IsInvalidArgument(record.status())) {
      Say(absl::StrCat("has a record ", key.substr(0, 12), " that makes no sense (",
                       record.status().message(), "): it is ignored"));
      return std::nullopt;
    }
    if (!record.ok() || !record->has_value()) return record;
    (*record)->trust.clear();
    absl::StatusOr<std::optional<VariantResult>> pin = ReadPin(db, key);
    if (absl::IsDataLoss(pin.status())) return pin.status();
    if (pin.ok() && pin->has_value()) {
      (*record)->best = **std::move(pin);
      (*record)->pinned = (*record)->complete = true;
    }
    return record;
  });
}

std::vector<VariantResult> ForeignCache::Variants(const std::string& key) {
  return FromFile([&](Database& db) -> absl::StatusOr<std::vector<VariantResult>> {
    absl::StatusOr<std::vector<VariantResult>> variants = ReadVariants(db, key);
    if (absl::IsInvalidArgument(variants.status())) return std::vector<VariantResult>();
    RETURN_IF_ERROR(variants.status());
    std::vector<VariantResult> valid = WithoutFailures(*std::move(variants));
    valid.erase(std::remove_if(valid.begin(), valid.end(),
                               [](const VariantResult& v) { return !Validate(v).ok(); }),
                valid.end());
    return valid;
  });
}

std::vector<KeyOfRecord> ForeignCache::KeyTexts() { return FromFile(ReadKeyTexts); }

std::vector<TuningRecord> ForeignCache::List() {
  return FromFile([&](Database& db) -> absl::StatusOr<std::vector<TuningRecord>> {
    std::vector<TuningRecord> records;
    RETURN_IF_ERROR(ReadRecords(db, [&](RecordRow row) {
      if (!row.record.ok()) {
        Say(absl::StrCat("has a record ", row.key.substr(0, 12), " that makes no sense (",
                         row.record.status().message(), "): it is ignored"));
        return;
      }
      row.record->trust.clear();
      records.push_back(*std::move(row.record));
    }));
    return records;
  });
}

std::vector<VariantResult> WithoutFailures(std::vector<VariantResult> variants) {
  variants.erase(std::remove_if(variants.begin(), variants.end(),
                                [](const VariantResult& v) { return FailsForGood(v.verdict); }),
                 variants.end());
  return variants;
}

}  // namespace coconet
