#include "runtime/node/loops/exchanged_block.h"

#include "runtime/node/loops/stream_copy.h"

namespace coconet {

using Exchanged = CollectiveStep::Exchanged;

ExchangedBlock::ExchangedBlock(const CollectiveStep& step, Side side, int rank, int peer,
                               const int32_t* counts) {
  const auto element = static_cast<int64_t>(SizeOf(step.dtype));
  const Exchanged& x = step.exchanged;
  if (x.outer == 0) {
    outers_ = step.count > 0 ? 1 : 0;
    rows_ = 1;
    run_ = std::max<int64_t>(step.count * element, 1);
    first_ = peer * step.count * element;
    return;
  }
  const bool has_low = (side == Side::kBefore) == x.from_low;  // `rank` has a slice over `low`
  const int of_low = has_low ? rank : peer, of_high = has_low ? peer : rank;
  const int64_t low_stored = has_low ? x.low.per : x.low.total,
                high_stored = has_low ? x.high.total : x.high.per;
  const int64_t lows = std::max<int64_t>(std::min(x.low_end, x.low.On(of_low)) - x.low_begin, 0);
  const int64_t first_low = x.low_begin + (has_low ? 0 : x.low.Begin(of_low)),
                first_high = has_low ? x.high.Begin(of_high) : 0;
  row_stride_ = high_stored * x.inner * element;
  outer_stride_ = low_stored * x.middle * row_stride_;
  first_ = x.outer_begin * outer_stride_ + first_low * x.middle * row_stride_ +
           first_high * x.inner * element;
  outers_ = x.outer_end - x.outer_begin;
  rows_ = lows * x.middle;
  run_ = x.high.On(of_high) * x.inner * element;
  if (bytes() == 0) {
    outers_ = 0;
    rows_ = run_ = 1;
    return;
  }
  if (run_ == row_stride_) {  // the rows are contiguous
    run_ *= rows_;
    rows_ = 1;
  }
  if (rows_ == 1 && run_ == outer_stride_) {
    run_ *= outers_;
    outers_ = 1;
  }
  if (counts == nullptr || step.rows.leaving < 0) return;
  counts_ = counts;
  row_ = step.rows.row * element;
  group_ = step.rows.capacity * row_;
}

int64_t ExchangedBlock::BytesInUse() const {
  if (counts_ == nullptr) return bytes();
  int64_t in_use = 0;
  for (int64_t place = 0; place < bytes(); place += group_) in_use += InUse(OffsetOf(place));
  return in_use;
}

void CopyBlock(const ExchangedBlock& from, const void* in, const ExchangedBlock& to, void* out,
               bool streams) {
  to.ForEach(0, to.BytesInUse(), [&](int64_t offset, int64_t bytes, int64_t place) {
    char* run = static_cast<char*>(out) + offset;
    from.ForEach(place, place + bytes, [&](int64_t there, int64_t part, int64_t begin) {
      CopyBytes(run + (begin - place), static_cast<const char*>(in) + there, part, streams);
    });
  });
  if (streams) StreamFence();
}

}  // namespace coconet
