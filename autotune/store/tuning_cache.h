#ifndef COCONET_AUTOTUNE_STORE_TUNING_CACHE_H_
#define COCONET_AUTOTUNE_STORE_TUNING_CACHE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// What the tuner notes down while it works. Implemented by TuningCache, and by fakes.
class TuningJournal {
 public:
  virtual ~TuningJournal() = default;
  /// Variants that failed under this key, and those that a process ran when it died: trace, config,
  /// verdict and reason are filled in.
  virtual std::vector<VariantResult> Failures(const std::string& key) = 0;
  /// Before the first run of a variant, and after it with its verdict.
  virtual void Begin(const std::string& key, const VariantResult& variant) = 0;
  virtual void End(const std::string& key, const VariantResult& variant) = 0;
  /// Keeps a tuned program with all its variants; a complete record is not replaced by an
  /// incomplete one, nor an incomplete one by an incomplete slower one.
  virtual void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) = 0;
};

/// The SQLite file that remembers tuned programs. Opened by rank 0 only, after MPI_Init, used by
/// its thread. Safe for many processes at once and under kill -9. Whatever goes wrong with it is
/// said once to `warn`, and from then on it remembers nothing: no caller has to handle an error of
/// the cache.
class TuningCache final : public TuningJournal {
 public:
  using Warn = std::function<void(absl::string_view)>;

  /// `file` ":none:": remembers nothing, and says nothing about it.
  static std::unique_ptr<TuningCache> Open(const std::string& file, Warn warn);
  ~TuningCache() override;

  const std::string& file() const { return file_; }
  /// False when what is stored is lost: no file, a read-only or damaged one, a newer schema, a full
  /// disk.
  bool stores() const;

  /// The record for exactly this key text. A row that makes no sense is a miss, and said.
  std::optional<TuningRecord> Find(const std::string& key_text);
  std::optional<TuningRecord> FindByKey(const std::string& key_prefix);
  /// All records, the newest first.
  std::vector<TuningRecord> List();
  /// All variants of a key, the fastest first, those without a time last.
  std::vector<VariantResult> Variants(const std::string& key);

  std::vector<VariantResult> Failures(const std::string& key) override;
  void Begin(const std::string& key, const VariantResult& variant) override;
  void End(const std::string& key, const VariantResult& variant) override;
  void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) override;

 private:
  struct Rep;
  TuningCache(std::string file, Warn warn);
  /// Warns once and gives the cache up.
  void GiveUp(const absl::Status& why);
  void CannotStore(const absl::Status& why);

  std::string file_;
  Warn warn_;
  std::unique_ptr<Rep> rep_;  // null: remembers nothing
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_TUNING_CACHE_H_
