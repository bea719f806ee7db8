#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/plan.h"

namespace coconet {

/// The block of elements that one rank sends another in a kAllToAll, as one of the two ranks stores
/// it. Both go through the elements in the same order, row-major, but in different runs of
/// contiguous memory. Offsets and lengths are in bytes; offsets are from the operand's address.
class ExchangedBlock {
 public:
  /// Which operand the block lies in: the sender's before the step, or the receiver's after it.
  enum class Side : uint8_t { kBefore, kAfter };

  /// `rank` has the operand on `side`, `peer` is the other one; numbers in the step's group.
  /// `counts`: of step.rows, on that side of `rank`, which must outlive this; null: all rows are in
  /// use.
  ExchangedBlock(const CollectiveStep& step, Side side, int rank, int peer,
                 const int32_t* counts = nullptr);

  /// Bytes of all rows, and of the rows in use.
  int64_t bytes() const { return outers_ * rows_ * run_; }
  int64_t BytesInUse() const;

  /// Goes through bytes [begin, end) of the bytes in use: calls `take(offset, bytes, place)` for
  /// each run of memory, where `place` is the run's begin among the bytes of all rows.
  template <class Take>
  void ForEach(int64_t begin, int64_t end, Take take) const {
    if (counts_ == nullptr) return ForEachRun(begin, end, take);
    int64_t before = 0;  // bytes in use of the groups before
    for (int64_t place = 0; place < bytes() && before < end; place += group_) {
      const int64_t offset = OffsetOf(place), in_use = InUse(offset);
      const int64_t from = std::max(begin - before, int64_t{0}),
                    to = std::min(end - before, in_use);
      if (from < to) take(offset + from, to - from, place + from);
      before += in_use;
    }
  }

 private:
  template <class Take>
  void ForEachRun(int64_t begin, int64_t end, Take take) const {
    for (int64_t place = begin; place < std::min(end, bytes());) {
      const int64_t run = std::min(end, place / run_ * run_ + run_) - place;
      take(OffsetOf(place), run, place);
      place += run;
    }
  }
  int64_t OffsetOf(int64_t place) const {
    const int64_t run = place / run_;
    return first_ + run / rows_ * outer_stride_ + run % rows_ * row_stride_ + place % run_;
  }
  /// Bytes in use of the group of rows at `offset`.
  int64_t InUse(int64_t offset) const {
    return std::clamp<int64_t>(counts_[offset / group_] * row_, 0, group_);
  }

  int64_t outers_ = 0, rows_ = 0, run_ = 0;  // a run per outer index and row
  int64_t first_ = 0, outer_stride_ = 0, row_stride_ = 0;
  const int32_t* counts_ = nullptr;
  int64_t group_ = 0, row_ = 0;  // bytes, with counts
};

/// Copies one block from where it lies before the step to where it lies after it: from operand `in`
/// to operand `out`, the bytes in use of `to`. `from` has no counts. `streams`: see CopyBytes.
void CopyBlock(const ExchangedBlock& from, const void* in, const ExchangedBlock& to, void* out,
               bool streams = false);

}  // namespace coconet
