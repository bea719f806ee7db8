#include "autotune/session/online/record_writer.h"

#include <memory>

#include "autotune/session/online/candidates.h"
#include "autotune/store/tuning_cache.h"

namespace coconet {

RecordWriter::RecordWriter(std::string file, std::vector<VariantResult> known)
    : file_(std::move(file)), known_(std::move(known)), thread_([this] { Run(); }) {}

RecordWriter::~RecordWriter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RecordWriter::Write(TuningRecord record, std::vector<VariantResult> results) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_.emplace(std::move(record), std::move(results));
  }
  changed_.notify_one();
}

std::vector<std::string> RecordWriter::TakeWarnings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(warnings_, {});
}

void RecordWriter::Run() {
  std::unique_ptr<TuningCache> cache;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || next_.has_value(); });
    if (!next_.has_value()) return;
    const auto [record, results] = *std::exchange(next_, std::nullopt);
    lock.unlock();
    if (cache == nullptr) {
      cache = TuningCache::Open(file_, [this](absl::string_view text) {
        const std::lock_guard<std::mutex> warning(mutex_);
        warnings_.emplace_back(text);
      });
    }
    std::vector<VariantResult> variants = known_;
    for (const VariantResult& result : results) PutResult(result, variants);
    cache->Store(record, variants);
    lock.lock();
  }
}

}  // namespace coconet
