#include "runtime/threads/thread_communicator.h"

#include <cstring>

#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "runtime/node/reduce.h"

namespace coconet {
namespace {

const void* At(const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; }
void* At(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

void CopyUnlessSame(void* out, const void* in, int64_t bytes) {
  if (out != in) std::memcpy(out, in, bytes);
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(const Mesh& mesh, Group group, int rank,
                                       std::shared_ptr<Desks> desks, Board board, WaitTerms terms)
    : rank_(rank),
      size_(GroupOf(mesh, group, rank).size),
      index_(GroupOf(mesh, group, rank).Index(rank)),
      desks_(std::move(desks)),
      group_{.members = GroupOf(mesh, group, rank), .desks = &desks_->of_group},
      column_{.members = Column(mesh, rank), .desks = &desks_->of_column},
      board_(board),
      terms_(terms),
      ins_(size_),
      outs_(size_) {}

absl::Status ThreadCommunicator::AllReduce(const void* in, void* out, int64_t count, DType dtype,
                                           ReduceKind kind) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "AllReduce"));
  const Range mine = SliceExtent(count, size_).Of(index_);
  for (int peer = 0; peer < size_; ++peer) {
    ins_[peer] = At(ins_[peer], mine.begin * element);
    outs_[peer] = At(outs_[peer], mine.begin * element);
  }
  ReduceInto(outs_, ins_, mine.size(), dtype, kind);
  return End("AllReduce");
}

absl::Status ThreadCommunicator::ReduceScatter(const void* in, void* out, int64_t count,
                                               DType dtype, ReduceKind kind, int64_t stride) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype)), bytes = count * element;
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "ReduceScatter"));
  for (const void*& theirs : ins_) theirs = At(theirs, index_ * stride * element);
  ReduceInto({out}, ins_, count, dtype, kind);
  return End("ReduceScatter");
}

absl::Status ThreadCommunicator::AllGather(const void* in, void* out, int64_t count, DType dtype,
                                           int64_t stride) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype)), bytes = count * element;
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "AllGather"));
  for (void* theirs : outs_) std::memcpy(At(theirs, index_ * stride * element), in, bytes);
  return End("AllGather");
}

absl::Status ThreadCommunicator::Broadcast(const void* in, void* out, int64_t count, DType dtype,
                                           int root) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "Broadcast"));
  CopyUnlessSame(out, ins_[root], bytes);
  return End("Broadcast");
}

absl::Status ThreadCommunicator::Reduce(const void* in, void* out, int64_t count, DType dtype,
                                        ReduceKind kind, int root) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "Reduce"));
  const Range mine = SliceExtent(count, size_).Of(index_);
  for (const void*& theirs : ins_) theirs = At(theirs, mine.begin * element);
  ReduceInto({At(outs_[root], mine.begin * element)}, ins_, mine.size(), dtype, kind);
  if (index_ != root) std::memset(out, 0, count * element);
  return End("Reduce");
}

absl::Status ThreadCommunicator::AllToAll(const void* in, void* out, int64_t count, DType dtype) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "AllToAll"));
  for (int peer = 0; peer < size_; ++peer)
    std::memcpy(At(out, peer * bytes), At(ins_[peer], index_ * bytes), bytes);
  return End("AllToAll");
}

absl::Status ThreadCommunicator::Send(const void* in, void* out, int64_t count, DType dtype,
                                      int shift) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  RETURN_IF_ERROR(Open(column_, in, out, "Send"));
  const int stage = column_.members.Index(rank_), before = stage - shift, after = stage + shift;
  const auto exists = [&](int other) { return other >= 0 && other < column_.members.size; };
  if (exists(before)) {
    RETURN_IF_ERROR(Await(column_, before, &Desks::Desk::ready, "Send"));
    // A rank that has left may free its buffers.
    if (absl::Status all = CheckAllHere(board_, rank_, "Send"); !all.ok())
      return Retreat(column_, all);
    std::memcpy(out, column_.Of(before).in, bytes);
  } else {
    std::memset(out, 0, bytes);
  }
  column_.Of(stage).done.store(column_.call, std::memory_order_release);
  return exists(after) ? Await(column_, after, &Desks::Desk::done, "Send") : absl::OkStatus();
}

absl::Status ThreadCommunicator::Begin(const void* in, void* out, absl::string_view what) {
  RETURN_IF_ERROR(Open(group_, in, out, what));
  RETURN_IF_ERROR(AwaitAll(&Desks::Desk::ready, what));
  // A rank that has left may free its buffers.
  if (absl::Status all = CheckAllHere(board_, rank_, what); !all.ok()) return Retreat(group_, all);
  for (int peer = 0; peer < size_; ++peer) {
    ins_[peer] = group_.Of(peer).in;
    outs_[peer] = group_.Of(peer).out;
  }
  return absl::OkStatus();
}

absl::Status ThreadCommunicator::End(absl::string_view what) {
  group_.Of(index_).done.store(group_.call, std::memory_order_release);
  return AwaitAll(&Desks::Desk::done, what);
}

absl::Status ThreadCommunicator::Open(Table& table, const void* in, void* out,
                                      absl::string_view what) {
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
  ++table.call;
  Desks::Desk& own = table.Of(table.members.Index(rank_));
  own.in = in;
  own.out = out;
  own.ready.store(table.call, std::memory_order_seq_cst);
  return absl::OkStatus();
}

absl::Status ThreadCommunicator::Await(const Table& table, int index,
                                       std::atomic<unsigned> Desks::Desk::* flag,
                                       absl::string_view what) {
  const absl::Status status = AwaitPeer(board_, terms_, rank_, table.members.Rank(index),
                                        table.Of(index).*flag, table.call, what);
  return status.ok() ? status : Retreat(table, status);
}

absl::Status ThreadCommunicator::AwaitAll(std::atomic<unsigned> Desks::Desk::* flag,
                                          absl::string_view what) {
  for (int peer = 0; peer < size_; ++peer) RETURN_IF_ERROR(Await(group_, peer, flag, what));
  return absl::OkStatus();
}

absl::Status ThreadCommunicator::Retreat(const Table& table, const absl::Status& why) {
  // Sequentially consistent, like the peers' stores to `ready`: a peer that is not ready below will
  // see that this rank left.
  board_.Leave(rank_, why);
  for (int peer = 0; peer < table.members.size; ++peer) {
    const Desks::Desk& theirs = table.Of(peer);
    if (!Reached(theirs.ready.load(std::memory_order_seq_cst), table.call)) continue;
    WaitUntil(
        terms_, [&] { return Reached(theirs.done.load(std::memory_order_acquire), table.call); },
        [&] { return !board_.IsHere(table.members.Rank(peer)); });
  }
  return why;
}

}  // namespace coconet
