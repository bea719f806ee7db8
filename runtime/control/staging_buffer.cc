#include "runtime/control/staging_buffer.h"

#include <utility>

#include "coconet/base/status.h"

namespace coconet {

StagingBuffer::StagingBuffer(std::vector<std::shared_ptr<Region>> regions, int64_t offset,
                             int64_t bytes, const Members& group, int rank, Board board,
                             WaitTerms terms)
    : regions_(std::move(regions)),
      offset_(offset),
      bytes_(bytes),
      window_((bytes - kCounterBytes) / 4 / 64 * 64),
      group_(group),
      rank_(rank),
      board_(std::move(board)),
      terms_(terms) {
  static_assert(std::atomic<unsigned>::is_always_lock_free, "processes share it");
  for (int i = 0; i < group.size; ++i)
    bases_.push_back(static_cast<char*>(regions_[group.Rank(i)]->base()) + offset);
}

absl::Status StagingBuffer::Populate() {
  if (populated_) return absl::OkStatus();
  absl::Status done = regions_[rank_]->Populate(offset_, bytes_);
  populated_ = done.ok();
  if (!done.ok()) board_.Leave(rank_, done);
  return done;
}

absl::Status StagingBuffer::Meet(absl::string_view what, std::atomic<unsigned> Counters::* counter,
                                 bool is_behind_counts) {
  const auto counters = [&](int index) { return reinterpret_cast<Counters*>(bases_[index]); };
  const auto of = [&](int index) -> std::atomic<unsigned>& { return counters(index)->*counter; };
  const auto step_of = [&](int index) -> std::atomic<uint64_t>& {
    return counters(index)->step[epoch_ % 2];
  };
  const int mine = group_.Index(rank_);
  step_of(mine).store(step_, std::memory_order_relaxed);
  of(mine).store(epoch_, std::memory_order_release);
  for (int i = 0; i < group_.size; ++i) {
    if (group_.Rank(i) == rank_) continue;
    RETURN_IF_ERROR(
        AwaitPeer(board_, terms_, rank_, group_.Rank(i), of(i), epoch_, what, is_behind_counts));
    if (step_of(i).load(std::memory_order_relaxed) != step_)
      return board_.Mismatched(rank_, group_.Rank(i));
  }
  return absl::OkStatus();
}

}  // namespace coconet
