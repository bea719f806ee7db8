#include "runtime/mpi/collectives/mpi_sender.h"

#include <cstring>

namespace coconet {

absl::Status MpiSender::Send(const void* in, void* out, int64_t count, DType dtype, int shift) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  const int stage = column_.Index(world_rank_), before = stage - shift, after = stage + shift;
  const auto exists = [&](int other) { return other >= 0 && other < column_.size; };
  streams_.Clear(1);
  if (exists(after))
    streams_.outs.push_back({column_.Rank(after), static_cast<const char*>(in), bytes});
  if (exists(before)) {
    streams_.ins.push_back({column_.Rank(before), bytes});
  } else {
    std::memset(out, 0, bytes);
  }
  return traffic_->Move(
      "Send", streams_, [&](int64_t begin, absl::Span<const absl::Span<const char>> pieces) {
        for (absl::Span<const char> piece : pieces)
          std::memcpy(static_cast<char*>(out) + begin, piece.data(), piece.size());
      });
}

}  // namespace coconet
