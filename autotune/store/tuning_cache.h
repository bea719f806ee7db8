#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/calibration_rows.h"
#include "autotune/store/database.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/history/speed_up.h"
#include "autotune/store/layers/foreign_cache.h"
#include "autotune/store/layers/layers.h"
#include "autotune/store/record.h"
#include "autotune/store/record_rows.h"
#include "autotune/store/upkeep/prune.h"

namespace coconet {

/// Keeps the tuner's results while it works. Implemented by TuningCache, and by fakes in tests.
class TuningJournal {
 public:
  virtual ~TuningJournal() = default;
  /// Variants that are left out because of earlier runs under this key, with the reason.
  virtual std::vector<VariantResult> Failures(const std::string& key) = 0;
  /// All variants with a stored result under this key, the fastest first, variants without a time
  /// last.
  virtual std::vector<VariantResult> Variants(const std::string& key) = 0;
  /// Called before the first run of a variant, and after it: if the process died in between, the
  /// variant may have killed it.
  virtual void Begin(const std::string& key, const VariantResult& variant) = 0;
  virtual void End(const std::string& key, const VariantResult& variant) = 0;
  /// Called once per variant and run, with a verdict that FailsForGood or MayPass.
  virtual void Fail(const std::string& key, const VariantResult& variant) = 0;
  /// Stores a tuned program with all its variants. An incomplete record replaces neither a complete
  /// one nor a faster incomplete one whose best variant was not timed again.
  virtual void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) = 0;
  /// What earlier runs have measured under this key, the newest first.
  virtual std::vector<Measured> History(const std::string& key) = 0;
  /// Adds what this run has measured.
  virtual void Remember(const std::string& key, const Measured& measured) = 0;
};

/// A record, and where it was found.
struct LayeredRecord {
  TuningRecord record;
  Layer layer = Layer::kUser;
  std::string file;
  bool shadowed = false;  // a record of another layer is used instead
  int64_t used_s = 0;     // Unix time of a job's last use, to the day; 0: not known
};

/// The SQLite file of a user's tuned programs, and files of other layers that are only read. Opened
/// and used by rank 0's thread only, after MPI_Init. Safe for many processes at once and under kill
/// -9. A damaged file is set aside, with a warning, and a new one begun. After any other error it
/// warns once, and then stores and finds nothing, so that no caller handles errors of the cache.
///
/// What is stored goes to the user's file. A record is that of the first layer that has one, but an
/// incomplete one of the job's layer gives way to a complete one of the user's, and one of another
/// layer whose variant has failed here is not used. Records of other layers bring no verifications:
/// those made here are kept in the user's file.
class TuningCache final : public TuningJournal {
 public:
  using Warn = std::function<void(absl::string_view)>;

  enum class Use : uint8_t {
    kKeep,  // a missing file is made; warns if nothing can be stored
    kRead,  // read-only; warns if the file is missing, not if it cannot be written
  };
  /// With `file` ":none:" it stores and finds nothing, without a warning.
  static std::unique_ptr<TuningCache> Open(const std::string& file, Warn warn,
                                           Use use = Use::kKeep);
  static std::unique_ptr<TuningCache> Open(const CacheLayers& layers, Warn warn,
                                           Use use = Use::kKeep);
  ~TuningCache() override;

  const std::string& file() const { return file_; }
  /// Looks for damage in the whole file, once, in a time that grows with its size. To be called
  /// before a tuning, which takes longer; a job that takes a record reads only that.
  void CheckWhole();
  /// False when nothing is stored: no file, a read-only or damaged one, a newer schema, a full
  /// disk.
  bool stores() const;

  /// The record of this key text, for a job, with the pinned variant as best if one is pinned: such
  /// a record counts as complete. An invalid row is a miss, with a warning.
  std::optional<TuningRecord> Find(const std::string& key_text);
  /// A record of the user's file.
  std::optional<TuningRecord> FindByKey(const std::string& key_prefix);
  /// All keys with a stored variant in the user's file.
  std::vector<std::string> Keys();
  /// The keys of all records with their texts, the newest first of each layer.
  std::vector<KeyOfRecord> KeyTexts();
  /// All records of the user's file, the newest first.
  std::vector<TuningRecord> List();
  /// All records of all layers, layer by layer, the newest first; pinned variants as best.
  std::vector<LayeredRecord> ListLayers();

  /// Records that a stored variant was verified once more.
  void AddTrust(const std::string& key, const VariantResult& variant, const Trust& trust);
  /// The next job that takes the key's record verifies it first.
  void Distrust(const std::string& key);
  /// The next job that takes the key's record tunes again, with its best among what is timed.
  void Retune(const std::string& key);
  /// The record was tuned with other minor versions than `soft`: the next job that takes it
  /// continues tuning.
  void MarkStale(const std::string& key, const std::string& soft);
  /// The next tuning under the key leaves no variant out because of earlier runs.
  void Forgive(const std::string& key);
  /// Deletes the key's record and variants from the user's file.
  void Forget(const std::string& key);
  /// Makes jobs run this stored variant of the key instead of the fastest, once it is verified.
  absl::Status Pin(const std::string& key, const VariantResult& variant);
  /// Returns whether something was pinned.
  absl::StatusOr<bool> Unpin(const std::string& key);
  /// Prune (upkeep/prune.h); also gives the space back to the file system.
  absl::StatusOr<Pruned> PruneNow(const PruneTerms& terms);
  /// The database of the user's file; null if it is not open.
  Database* db();
  const std::vector<std::unique_ptr<ForeignCache>>& foreign() const { return foreign_; }

  /// The buckets that jobs here have found for a family of programs, by the order of their making;
  /// notes a use of their records. An invalid row is left out, with a warning.
  std::vector<SizeBucket> FindBuckets(const std::string& family_text);
  void StoreBuckets(const std::string& family_text, absl::Span<const SizeBucket> buckets);
  /// ConfirmBuckets, and DeleteBuckets (families/bucket_rows.h).
  void ConfirmBucket(const std::string& family_text, const SizeBucket& bucket);
  void ForgetBucket(const std::string& family_text, const SizeBucket& bucket);

  /// The rates of this key text; none if there are none, or if they cannot be read.
  std::optional<Calibration> FindCalibration(const std::string& key_text);
  std::vector<Calibration> Calibrations();
  void StoreCalibration(const Calibration& calibration);
  /// The predictions of a calibration's key; "": all. The newest first.
  std::vector<Prediction> Predictions(const std::string& calibration);
  void AddPredictions(absl::Span<const Prediction> predictions);

  /// Variants that failed permanently; that failed in three successive runs with transient
  /// failures; and that were in flight when a process died: after one death for a day, after two
  /// for good.
  std::vector<VariantResult> Failures(const std::string& key) override;
  std::vector<VariantResult> Variants(const std::string& key) override;
  void Begin(const std::string& key, const VariantResult& variant) override;
  void End(const std::string& key, const VariantResult& variant) override;
  /// Deletes a record whose best variant, or baseline, failed for good.
  void Fail(const std::string& key, const VariantResult& variant) override;
  void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) override;
  std::vector<Measured> History(const std::string& key) override;
  void Remember(const std::string& key, const Measured& measured) override;

 private:
  struct Rep;
  /// A record that a job takes, and the layer's cache; null: it is the user's.
  struct Taken {
    TuningRecord record;
    ForeignCache* from = nullptr;
  };
  TuningCache(CacheLayers layers, Warn warn);
  std::optional<Taken> Take(const std::string& key);
  /// The user's record, with the pinned variant as best.
  std::optional<TuningRecord> FindOwn(const std::string& key);
  void ApplyPin(TuningRecord& record);
  /// Whether the variant is left out because of earlier runs here.
  bool HasFailedHere(const std::string& key, const VariantResult& variant);
  /// Copies the record that a job takes to the user's file if it is of another layer.
  void Adopt(const std::string& key);
  void KeepWithinLimit(const std::string& key);
  void OpenFile(Check check);
  /// Opens the file anew if it was removed or replaced since. Returns whether anything is stored.
  bool IsReady();
  /// Warns that a row is invalid.
  void Ignore(absl::string_view key, const absl::Status& why);
  /// Warns, and ignores the cache from now on.
  void GiveUp(const absl::Status& why);
  /// `read(db)`; if the file is damaged, on the new file.
  template <class Read>
  auto FromFile(Read read) -> decltype(read(std::declval<Database&>()));
  /// `write(db)`; if the file is damaged, to the new file. If something could not be stored, warns,
  /// and stores nothing from now on.
  template <class Write>
  void ToFile(Write write);

  const CacheLayers layers_;
  const std::string file_;
  Warn warn_;
  std::vector<std::unique_ptr<ForeignCache>> foreign_;
  std::unique_ptr<Rep> rep_;  // null: stores and finds nothing
};

}  // namespace coconet
