#include "runtime/processes/collectives/node_communicator.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "runtime/node/loops/exchanged_block.h"
#include "runtime/node/loops/reduce.h"

namespace coconet {
namespace {

/// Up to this size every rank reduces all elements itself, which saves one synchronisation.
constexpr int64_t kOneShotBytes = int64_t{8} << 10;

}  // namespace

NodeCommunicator::NodeCommunicator(const Members& group, std::unique_ptr<StagingBuffer> staging,
                                   std::unique_ptr<PeerTraffic> traffic, int rank,
                                   const Members& column)
    : ProcessCommunicator(std::move(traffic), rank, column),
      index_(group.Index(rank)),
      size_(group.size),
      staging_(std::move(staging)),
      sources_(group.size) {}

// A half is reused two windows later. By then all ranks have shown the window in between, so none
// reads this one any more.
absl::Status NodeCommunicator::InWindows(const Call& call, int blocks,
                                         absl::FunctionRef<void(const Window&)> show,
                                         absl::FunctionRef<absl::Status(const Window&)> take) {
  RETURN_IF_ERROR(CheckAllHere(staging_->board(), world_rank_, call.what));
  RETURN_IF_ERROR(staging_->Populate());
  const int64_t most = std::max<int64_t>(
      staging_->window() / (blocks * call.element) / kSliceAlign * kSliceAlign, 1);
  int64_t begin = 0;
  do {  // at least once: also an empty collective synchronises its ranks
    const int64_t count = std::min(most, call.count - begin);
    const Window window{.begin = begin, .count = count, .bytes = count * call.element};
    staging_->Next();
    show(window);
    RETURN_IF_ERROR(staging_->AwaitShown(call.what));
    RETURN_IF_ERROR(take(window));
    begin += count;
  } while (begin < call.count);
  return absl::OkStatus();
}

absl::Status NodeCommunicator::ReduceAll(const Call& call, int root) {
  const bool keeps = root < 0 || root == index_;
  const bool one_shot = call.bytes <= kOneShotBytes;
  const auto show = [&](const Window& w) {
    const Slicing slices = SliceExtent(w.count, size_);
    const char* from = call.in + w.begin * call.element;
    for (int peer = 0; peer < size_; ++peer) {
      const Range theirs = slices.Of(peer);
      if (peer == index_ && !one_shot) continue;  // no peer reads it
      std::memcpy(staging_->Shown(index_) + theirs.begin * call.element,
                  from + theirs.begin * call.element, theirs.size() * call.element);
    }
  };
  const auto reduce = [&](const Window& w, const Range& part, char* to) {
    for (int peer = 0; peer < size_; ++peer) {
      const char* base = peer == index_ ? call.in + w.begin * call.element : staging_->Shown(peer);
      sources_[peer] = base + part.begin * call.element;
    }
    ReduceInto({to}, sources_, part.size(), call.step.dtype, call.step.reduce);
  };
  return InWindows(call, 1, show, [&](const Window& w) -> absl::Status {
    char* to = call.out + w.begin * call.element;
    if (one_shot) {
      if (keeps) reduce(w, {0, w.count}, to);
      return absl::OkStatus();
    }
    const Slicing slices = SliceExtent(w.count, size_);
    const Range mine = slices.Of(index_);
    reduce(w, mine, staging_->Reduced(index_) + mine.begin * call.element);
    RETURN_IF_ERROR(staging_->AwaitReduced(call.what));
    for (int peer = 0; keeps && peer < size_; ++peer) {
      const Range theirs = slices.Of(peer);
      std::memcpy(to + theirs.begin * call.element,
                  staging_->Reduced(peer) + theirs.begin * call.element,
                  theirs.size() * call.element);
    }
    return absl::OkStatus();
  });
}

absl::Status NodeCommunicator::RunInGroup(const Call& call) {
  using Kind = CollectiveStep::Kind;
  if (size_ == 1) {
    CopyUnlessSame(call.out, call.in, call.bytes);
    return absl::OkStatus();
  }
  switch (call.step.kind) {
    case Kind::kAllReduce:
      return ReduceAll(call, /*root=*/-1);
    case Kind::kReduce:
      RETURN_IF_ERROR(ReduceAll(call, call.step.root));
      if (index_ != call.step.root) std::memset(call.out, 0, call.bytes);
      return absl::OkStatus();
    case Kind::kReduceScatter:
      return ReduceScatter(call);
    case Kind::kAllGather:
      return AllGather(call);
    case Kind::kBroadcast:
      return Broadcast(call);
    case Kind::kAllToAll:
    case Kind::kSend:
      break;
  }
  CC_CHECK(false);
}

absl::Status NodeCommunicator::ReduceScatter(const Call& call) {
  const auto block = [&](int of, const Window& w) {
    return call.in + (of * call.step.Stride() + w.begin) * call.element;
  };
  const auto show = [&](const Window& w) {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != index_)
        std::memcpy(staging_->Shown(index_) + peer * w.bytes, block(peer, w), w.bytes);
    }
  };
  return InWindows(call, size_, show, [&](const Window& w) {
    for (int peer = 0; peer < size_; ++peer)
      sources_[peer] = peer == index_ ? block(index_, w) : staging_->Shown(peer) + index_ * w.bytes;
    ReduceInto({call.out + w.begin * call.element}, sources_, w.count, call.step.dtype,
               call.step.reduce);
    return absl::OkStatus();
  });
}

absl::Status NodeCommunicator::AllGather(const Call& call) {
  const auto show = [&](const Window& w) {
    std::memcpy(staging_->Shown(index_), call.in + w.begin * call.element, w.bytes);
  };
  return InWindows(call, 1, show, [&](const Window& w) {
    for (int peer = 0; peer < size_; ++peer) {
      std::memcpy(call.out + (peer * call.step.Stride() + w.begin) * call.element,
                  staging_->Shown(peer), w.bytes);
    }
    return absl::OkStatus();
  });
}

absl::Status NodeCommunicator::Broadcast(const Call& call) {
  const int root = call.step.root;
  if (index_ == root) CopyUnlessSame(call.out, call.in, call.bytes);
  const auto show = [&](const Window& w) {
    if (index_ == root)
      std::memcpy(staging_->Shown(root), call.in + w.begin * call.element, w.bytes);
  };
  return InWindows(call, 1, show, [&](const Window& w) {
    if (index_ != root)
      std::memcpy(call.out + w.begin * call.element, staging_->Shown(root), w.bytes);
    return absl::OkStatus();
  });
}

absl::Status NodeCommunicator::AllToAlls(absl::Span<const AllToAllCall> calls) {
  for (const AllToAllCall& call : calls) RETURN_IF_ERROR(AllToAll(call));
  return absl::OkStatus();
}

absl::Status NodeCommunicator::AllToAll(const AllToAllCall& all_to_all) {
  using Side = ExchangedBlock::Side;
  const CollectiveStep& step = *all_to_all.step;
  const Call call{step, static_cast<const char*>(all_to_all.in),
                  static_cast<char*>(all_to_all.out)};
  const auto copy_own = [&] {
    CopyBlock({step, Side::kBefore, index_, index_}, call.in,
              {step, Side::kAfter, index_, index_, all_to_all.arriving}, call.out);
    return absl::OkStatus();
  };
  if (size_ == 1) return copy_own();
  const auto bytes_of = [&](const Window& w) {
    return Range{w.begin * call.element, w.begin * call.element + w.bytes};
  };
  const auto show = [&](const Window& w) {
    const Range window = bytes_of(w);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == index_) continue;
      char* to = staging_->Shown(index_) + peer * w.bytes;
      ExchangedBlock(step, Side::kBefore, index_, peer, all_to_all.leaving)
          .ForEach(window.begin, window.end, [&](int64_t offset, int64_t bytes, int64_t) {
            std::memcpy(to, call.in + offset, bytes);
            to += bytes;
          });
    }
  };
  RETURN_IF_ERROR(InWindows(call, size_, show, [&](const Window& w) {
    const Range window = bytes_of(w);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == index_) continue;
      const char* from = staging_->Shown(peer) + index_ * w.bytes;
      ExchangedBlock(step, Side::kAfter, index_, peer, all_to_all.arriving)
          .ForEach(window.begin, window.end, [&](int64_t offset, int64_t bytes, int64_t) {
            std::memcpy(call.out + offset, from, bytes);
            from += bytes;
          });
    }
    return absl::OkStatus();
  }));
  return copy_own();
}

}  // namespace coconet
