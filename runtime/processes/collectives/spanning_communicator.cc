#include "runtime/processes/collectives/spanning_communicator.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"
#include "runtime/node/loops/exchanged_block.h"
#include "runtime/node/loops/reduce.h"
#include "runtime/node/loops/stream_copy.h"

namespace coconet {
namespace {

using Pieces = absl::Span<const absl::Span<const char>>;

/// The range of block `index`, for blocks of `count` elements, `stride` apart.
Range Block(int64_t count, int64_t stride, int index) {
  return {index * stride, index * stride + count};
}

/// The stream of the bytes in use of all calls' blocks, one after the other, between this rank and
/// `peer`: calls take(call, offset, bytes) for each run of memory that holds some of the `bytes`
/// from `begin` on.
template <class BlockOf, class Take>
void ForEachRun(absl::Span<const AllToAllCall> calls, BlockOf block_of, int peer, int64_t begin,
                int64_t bytes, Take take) {
  int64_t end = begin + bytes;
  for (const AllToAllCall& call : calls) {
    if (end <= 0) return;
    const ExchangedBlock block = block_of(call, peer);
    block.ForEach(std::max<int64_t>(begin, 0), end,
                  [&](int64_t offset, int64_t run, int64_t) { take(call, offset, run); });
    const int64_t in_use = block.BytesInUse();
    begin -= in_use;
    end -= in_use;
  }
}

/// The operands of calls, one after the other, as one run of bytes: calls take(call, offset, bytes,
/// done) for each part of the `bytes` from `begin` on that lies in one call, `done` bytes after
/// `begin`.
template <class Take>
void ForEachRun(absl::Span<const AllReduceCall> calls, int64_t element, int64_t begin,
                int64_t bytes, Take take) {
  int64_t at = 0;  // of the call's first byte, from `begin` on
  for (const AllReduceCall& call : calls) {
    const int64_t size = call.count * element;
    const int64_t from = std::max<int64_t>(begin - at, 0), to = std::min(begin + bytes - at, size);
    if (from < to) take(call, from, to - from, at + from - begin);
    at += size;
  }
}

}  // namespace

SpanningCommunicator::SpanningCommunicator(const Mesh& mesh, Group group, int rank,
                                           std::unique_ptr<PeerTraffic> traffic)
    : ProcessCommunicator(std::move(traffic), rank, Column(mesh, rank)) {
  const auto line = [&](const Members& members) { return Line{members, members.Index(rank)}; };
  group_ = line(GroupOf(mesh, group, rank));
  across_ = line(GroupOf(mesh, Group::kAcross, rank));
  local_ = group == Group::kStage ? line(GroupOf(mesh, Group::kNode, rank)) : line({.first = rank});
}

absl::Status SpanningCommunicator::RunInGroup(const Call& call) {
  using Kind = CollectiveStep::Kind;
  const bool is_root = group_.index == call.step.root;
  switch (call.step.kind) {
    case Kind::kAllReduce:
      RETURN_IF_ERROR(ReduceSlices(call));
      return GatherSlices(call);
    case Kind::kReduceScatter:
      return ReduceScatter(call);
    case Kind::kAllGather:
      return AllGather(call);
    case Kind::kBroadcast:
      if (is_root) CopyUnlessSame(call.out, call.in, call.bytes);
      RETURN_IF_ERROR(ScatterSlices(call));
      return GatherSlices(call);
    case Kind::kReduce:
      RETURN_IF_ERROR(ReduceSlices(call));
      RETURN_IF_ERROR(CollectSlices(call));
      if (!is_root) std::memset(call.out, 0, call.bytes);
      return absl::OkStatus();
    case Kind::kAllToAll:
    case Kind::kSend:
      break;
  }
  CC_CHECK(false);
}

absl::Status SpanningCommunicator::ReduceScatter(const Call& call) {
  const int64_t count = call.count, stride = call.step.Stride();
  const int nodes = across_.members.size, ranks = local_.members.size;
  if (ranks == 1)
    return ReduceParts(
        call, across_, call.in, [&](int node) { return Block(count, stride, node); }, call.out);
  if (static_cast<int64_t>(blocks_.size()) < nodes * call.bytes) blocks_.resize(nodes * call.bytes);
  for (int node = 0; node < nodes; ++node) {
    const auto of_node = [&](int local) { return Block(count, stride, node * ranks + local); };
    RETURN_IF_ERROR(
        ReduceParts(call, local_, call.in, of_node, blocks_.data() + node * call.bytes));
  }
  return ReduceParts(
      call, across_, blocks_.data(), [&](int node) { return Block(count, count, node); }, call.out);
}

absl::Status SpanningCommunicator::AllGather(const Call& call) {
  const int nodes = across_.members.size, ranks = local_.members.size;
  const auto block = [&](int index) { return Block(call.count, call.step.Stride(), index); };
  const auto of_node = [&](int node, int local) { return block(node * ranks + local); };
  std::memcpy(call.out + block(group_.index).begin * call.element, call.in, call.bytes);
  RETURN_IF_ERROR(
      GatherParts(call, across_, call.out, [&](int node) { return of_node(node, local_.index); }));
  for (int node = 0; node < nodes; ++node) {
    RETURN_IF_ERROR(
        GatherParts(call, local_, call.out, [&](int local) { return of_node(node, local); }));
  }
  return absl::OkStatus();
}

absl::Status SpanningCommunicator::AllToAlls(absl::Span<const AllToAllCall> calls) {
  const int own = group_.index;
  const auto leaving = [own](const AllToAllCall& call, int peer) {
    return ExchangedBlock(*call.step, ExchangedBlock::Side::kBefore, own, peer, call.leaving);
  };
  const auto arriving = [own](const AllToAllCall& call, int peer) {
    return ExchangedBlock(*call.step, ExchangedBlock::Side::kAfter, own, peer, call.arriving);
  };
  const auto peer_of = [own](size_t stream) {
    const int index = static_cast<int>(stream);
    return index < own ? index : index + 1;
  };
  streams_.Clear(group_.members.size - 1);
  int64_t result = 0;  // bytes
  for (int peer = 0; peer < group_.members.size; ++peer) {
    int64_t sent = 0, received = 0;
    for (const AllToAllCall& call : calls) {
      sent += leaving(call, peer).BytesInUse();
      received += arriving(call, peer).BytesInUse();
    }
    result += received;
    if (peer == own) continue;
    streams_.outs.push_back({group_.members.Rank(peer), nullptr, sent});
    streams_.ins.push_back({group_.members.Rank(peer), received});
  }
  const bool streams = result >= kStreamedBytes;
  const auto fill = [&](size_t stream, int64_t begin, absl::Span<char> place) {
    ForEachRun(
        calls, leaving, peer_of(stream), begin, std::ssize(place),
        [to = place.data()](const AllToAllCall& call, int64_t offset, int64_t bytes) mutable {
          std::memcpy(to, static_cast<const char*>(call.in) + offset, bytes);
          to += bytes;
        });
  };
  const auto take = [&](int64_t begin, Pieces pieces) {
    for (size_t stream = 0; stream < pieces.size(); ++stream) {
      ForEachRun(calls, arriving, peer_of(stream), begin, std::ssize(pieces[stream]),
                 [&, from = pieces[stream].data()](const AllToAllCall& call, int64_t offset,
                                                   int64_t bytes) mutable {
                   CopyBytes(static_cast<char*>(call.out) + offset, from, bytes, streams);
                   from += bytes;
                 });
    }
  };
  for (const AllToAllCall& call : calls) {
    CopyBlock({*call.step, ExchangedBlock::Side::kBefore, own, own}, call.in, arriving(call, own),
              call.out, streams);
  }
  const absl::Status moved = traffic_->Move(calls[0].step->Call(), streams_, fill, take);
  if (streams) StreamFence();
  return moved;
}

absl::Status SpanningCommunicator::AllReduces(absl::Span<const AllReduceCall> calls, DType dtype,
                                              ReduceKind kind) {
  if (local_.members.size > 1) return Communicator::AllReduces(calls, dtype, kind);
  const CollectiveStep step{
      .kind = CollectiveStep::Kind::kAllReduce, .reduce = kind, .dtype = dtype};
  const auto element = static_cast<int64_t>(coconet::SizeOf(dtype));
  int64_t elements = 0;
  for (const AllReduceCall& call : calls) elements += call.count;
  const Slicing slices = SliceExtent(elements, across_.members.size);
  const Range mine = slices.Of(across_.index);
  const auto peer_of = [&](size_t stream) {
    const int index = static_cast<int>(stream);
    return index < across_.index ? index : index + 1;
  };
  // Streams without data get their bytes from the calls, by `fill`.
  const auto pair = [&](absl::FunctionRef<Range(int)> sent,
                        absl::FunctionRef<Range(int)> received) {
    streams_.Clear(across_.members.size - 1);
    for (int peer = 0; peer < across_.members.size; ++peer) {
      if (peer == across_.index) continue;
      const int rank = across_.members.Rank(peer);
      streams_.outs.push_back({rank, nullptr, sent(peer).size() * element});
      streams_.ins.push_back({rank, received(peer).size() * element});
    }
  };
  const auto own = [&](int /*peer*/) { return mine; };
  const auto theirs = [&](int peer) { return slices.Of(peer); };
  pair(theirs, own);
  sources_.resize(across_.members.size);
  const auto send = [&](size_t stream, int64_t begin, absl::Span<char> place) {
    ForEachRun(
        calls, element, slices.Of(peer_of(stream)).begin * element + begin, std::ssize(place),
        [&](const AllReduceCall& call, int64_t offset, int64_t bytes, int64_t done) {
          std::memcpy(place.data() + done, static_cast<const char*>(call.in) + offset, bytes);
        });
  };
  const auto reduce = [&](int64_t begin, Pieces pieces) {
    ForEachRun(calls, element, mine.begin * element + begin, std::ssize(pieces[0]),
               [&](const AllReduceCall& call, int64_t offset, int64_t bytes, int64_t done) {
                 for (int peer = 0, i = 0; peer < across_.members.size; ++peer) {
                   sources_[peer] = peer == across_.index
                                        ? static_cast<const char*>(call.in) + offset
                                        : pieces[i++].data() + done;
                 }
                 ReduceInto({static_cast<char*>(call.out) + offset}, sources_, bytes / element,
                            dtype, kind);
               });
  };
  RETURN_IF_ERROR(traffic_->Move(step.Call(), streams_, send, reduce));
  pair(own, theirs);
  const auto spread = [&](size_t /*stream*/, int64_t begin, absl::Span<char> place) {
    ForEachRun(calls, element, mine.begin * element + begin, std::ssize(place),
               [&](const AllReduceCall& call, int64_t offset, int64_t bytes, int64_t done) {
                 std::memcpy(place.data() + done, static_cast<char*>(call.out) + offset, bytes);
               });
  };
  const auto gather = [&](int64_t begin, Pieces pieces) {
    for (size_t stream = 0; stream < pieces.size(); ++stream) {
      ForEachRun(calls, element, slices.Of(peer_of(stream)).begin * element + begin,
                 std::ssize(pieces[stream]),
                 [&](const AllReduceCall& call, int64_t offset, int64_t bytes, int64_t done) {
                   std::memcpy(static_cast<char*>(call.out) + offset, pieces[stream].data() + done,
                               bytes);
                 });
    }
  };
  return traffic_->Move(step.Call(), streams_, spread, gather);
}

absl::Status SpanningCommunicator::Trade(const Call& call, const Line& line, const char* in,
                                         PartOf sent, char* out, PartOf received) {
  Pair(call, line, in, sent, [&](int peer) { return received(peer).size(); });
  return traffic_->Move(call.what, streams_, [&](int64_t begin, Pieces pieces) {
    for (int peer = 0, i = 0; peer < line.members.size; ++peer) {
      if (peer == line.index) continue;
      std::memcpy(out + received(peer).begin * call.element + begin, pieces[i].data(),
                  pieces[i].size());
      ++i;
    }
  });
}

void SpanningCommunicator::Pair(const Call& call, const Line& line, const char* in, PartOf sent,
                                absl::FunctionRef<int64_t(int)> received) {
  streams_.Clear(line.members.size - 1);
  for (int peer = 0; peer < line.members.size; ++peer) {
    if (peer == line.index) continue;
    const Range part = sent(peer);
    streams_.outs.push_back(
        {line.members.Rank(peer), in + part.begin * call.element, part.size() * call.element});
    streams_.ins.push_back({line.members.Rank(peer), received(peer) * call.element});
  }
}

absl::Status SpanningCommunicator::ReduceParts(const Call& call, const Line& line, const char* in,
                                               PartOf part, char* out) {
  const Range mine = part(line.index);
  const int64_t bytes = mine.size() * call.element;
  const char* own = in + mine.begin * call.element;
  if (line.members.size == 1) {
    CopyUnlessSame(out, own, bytes);
    return absl::OkStatus();
  }
  Pair(call, line, in, part, [&](int /*peer*/) { return mine.size(); });
  sources_.resize(line.members.size);
  return traffic_->Move(call.what, streams_, [&](int64_t begin, Pieces pieces) {
    const int64_t elements = static_cast<int64_t>(pieces[0].size()) / call.element;
    if (elements == 0) return;  // this rank has received everything, but is still sending
    for (int peer = 0, i = 0; peer < line.members.size; ++peer)
      sources_[peer] = peer == line.index ? own + begin : pieces[i++].data();
    ReduceInto({out + begin}, sources_, elements, call.step.dtype, call.step.reduce);
  });
}

absl::Status SpanningCommunicator::GatherParts(const Call& call, const Line& line, char* inout,
                                               PartOf part) {
  if (line.members.size == 1) return absl::OkStatus();
  const Range mine = part(line.index);
  return Trade(call, line, inout, [&](int /*peer*/) { return mine; }, inout, part);
}

absl::Status SpanningCommunicator::ReduceSlices(const Call& call) {
  const Slicing of_node = SliceExtent(call.count, local_.members.size);
  const Range mine = of_node.Of(local_.index);
  const Slicing of_rank = SliceExtent(mine.size(), across_.members.size);
  char* slice = call.out + mine.begin * call.element;
  const bool alone = local_.members.size == 1;
  if (!alone)
    RETURN_IF_ERROR(
        ReduceParts(call, local_, call.in, [&](int i) { return of_node.Of(i); }, slice));
  return ReduceParts(
      call, across_, alone ? call.in : slice, [&](int i) { return of_rank.Of(i); },
      slice + of_rank.Of(across_.index).begin * call.element);
}

absl::Status SpanningCommunicator::GatherSlices(const Call& call) {
  const Slicing of_node = SliceExtent(call.count, local_.members.size);
  const Range mine = of_node.Of(local_.index);
  const Slicing of_rank = SliceExtent(mine.size(), across_.members.size);
  RETURN_IF_ERROR(GatherParts(call, across_, call.out + mine.begin * call.element,
                              [&](int i) { return of_rank.Of(i); }));
  return GatherParts(call, local_, call.out, [&](int i) { return of_node.Of(i); });
}

absl::Status SpanningCommunicator::ScatterSlices(const Call& call) {
  const Members& members = group_.members;
  const int root = call.step.root;
  const Range mine = SliceOf(call.count, group_.index);
  streams_.Clear(members.size - 1);
  if (group_.index != root)
    streams_.ins.push_back({members.Rank(root), mine.size() * call.element});
  for (int peer = 0; group_.index == root && peer < members.size; ++peer) {
    if (peer == root) continue;
    const Range theirs = SliceOf(call.count, peer);
    streams_.outs.push_back(
        {members.Rank(peer), call.out + theirs.begin * call.element, theirs.size() * call.element});
  }
  return traffic_->Move(call.what, streams_, [&](int64_t begin, Pieces pieces) {
    for (const auto& piece : pieces)
      std::memcpy(call.out + mine.begin * call.element + begin, piece.data(), piece.size());
  });
}

absl::Status SpanningCommunicator::CollectSlices(const Call& call) {
  const Members& members = group_.members;
  const int root = call.step.root;
  const Range mine = SliceOf(call.count, group_.index);
  streams_.Clear(members.size - 1);
  if (group_.index != root) {
    streams_.outs.push_back(
        {members.Rank(root), call.out + mine.begin * call.element, mine.size() * call.element});
  }
  for (int peer = 0; group_.index == root && peer < members.size; ++peer) {
    if (peer != root)
      streams_.ins.push_back({members.Rank(peer), SliceOf(call.count, peer).size() * call.element});
  }
  return traffic_->Move(call.what, streams_, [&](int64_t begin, Pieces pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Range theirs = SliceOf(call.count, members.Index(streams_.ins[i].peer));
      std::memcpy(call.out + theirs.begin * call.element + begin, pieces[i].data(),
                  pieces[i].size());
    }
  });
}

Range SpanningCommunicator::SliceOf(int64_t count, int index) const {
  const int ranks = local_.members.size;
  const Range of_node = SliceExtent(count, ranks).Of(index % ranks);
  const Range of_rank = SliceExtent(of_node.size(), across_.members.size).Of(index / ranks);
  return {of_node.begin + of_rank.begin, of_node.begin + of_rank.end};
}

}  // namespace coconet
