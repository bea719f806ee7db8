#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autotune/store/record.h"

namespace coconet {

/// Stores records in a tuning cache from a thread of its own, since a step cannot wait for a file.
/// Used by one thread. What was given to Write is stored when the writer is destroyed.
class RecordWriter {
 public:
  /// `file`: the user's tuning cache (TuningCache::file). `known`: the results of other variants.
  RecordWriter(std::string file, std::vector<VariantResult> known);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Stores this soon, with what is known of other variants, instead of what has not been stored
  /// yet.
  void Write(TuningRecord record, std::vector<VariantResult> results);
  /// What the cache has warned of since the last call.
  std::vector<std::string> TakeWarnings();

 private:
  void Run();

  const std::string file_;
  const std::vector<VariantResult> known_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<std::pair<TuningRecord, std::vector<VariantResult>>> next_;
  std::vector<std::string> warnings_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace coconet
