#include "runtime/processes/collectives/process_communicator.h"

#include <cstring>

namespace coconet {

absl::Status ProcessCommunicator::Run(const CollectiveStep& step, const void* in, void* out) {
  if (step.kind == CollectiveStep::Kind::kAllToAll) return AllToAlls({{&step, in, out}});
  const Call call{step, static_cast<const char*>(in), static_cast<char*>(out)};
  return step.kind == CollectiveStep::Kind::kSend ? Send(call, step.shift) : RunInGroup(call);
}

absl::Status ProcessCommunicator::Send(const Call& call, int shift) {
  const int stage = column_.Index(world_rank_), before = stage - shift, after = stage + shift;
  const auto exists = [&](int other) { return other >= 0 && other < column_.size; };
  streams_.Clear(1);
  if (exists(after)) streams_.outs.push_back({column_.Rank(after), call.in, call.bytes});
  if (exists(before)) {
    streams_.ins.push_back({column_.Rank(before), call.bytes});
  } else {
    std::memset(call.out, 0, call.bytes);
  }
  return traffic_->Move(call.what, streams_,
                        [&](int64_t begin, absl::Span<const absl::Span<const char>> pieces) {
                          for (absl::Span<const char> piece : pieces)
                            std::memcpy(call.out + begin, piece.data(), piece.size());
                        });
}

}  // namespace coconet
