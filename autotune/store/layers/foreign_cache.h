#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/layers/layers.h"
#include "autotune/store/record.h"
#include "autotune/store/record_rows.h"

namespace coconet {

/// A tuning cache of another layer, which is only read, and whose rows are checked one by one. What
/// it says of verifications, and of variants that failed, is not taken: a record's variant is
/// verified here before it runs. After an error it warns once, and then finds nothing.
class ForeignCache {
 public:
  using Warn = std::function<void(absl::string_view)>;
  /// Never null.
  static std::unique_ptr<ForeignCache> Open(ForeignFile file, Warn warn);

  const ForeignFile& file() const { return file_; }
  /// The record of this key, with the pinned variant as best if the file has one. An invalid row is
  /// a miss, with a warning.
  std::optional<TuningRecord> Find(const std::string& key);
  /// As TuningCache::Variants, without variants that failed.
  std::vector<VariantResult> Variants(const std::string& key);
  std::vector<KeyOfRecord> KeyTexts();
  /// All records, the newest first.
  std::vector<TuningRecord> List();
  /// The database; null if nothing is found.
  Database* db() { return db_.has_value() ? &*db_ : nullptr; }

 private:
  ForeignCache(ForeignFile file, Warn warn) : file_(std::move(file)), warn_(std::move(warn)) {}
  void Say(absl::string_view what) const;
  /// `read(db)`, once more on the file opened anew if another process has changed it meanwhile. An
  /// empty result after an error.
  template <class Read>
  auto FromFile(Read read) -> typename decltype(read(std::declval<Database&>()))::value_type;

  const ForeignFile file_;
  const Warn warn_;
  std::optional<Database> db_;
};

/// The variants that did not fail for good.
std::vector<VariantResult> WithoutFailures(std::vector<VariantResult> variants);

}  // namespace coconet
