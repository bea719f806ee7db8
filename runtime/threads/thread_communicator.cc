#include "runtime/threads/thread_communicator.h"

#include <cstring>

#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "runtime/node/loops/exchanged_block.h"
#include "runtime/node/loops/reduce.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

const void* At(const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; }
void* At(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

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

absl::Status ThreadCommunicator::Run(const CollectiveStep& step, const void* in, void* out) {
  if (step.kind == Kind::kSend) return Send(step, in, out);
  if (step.kind == Kind::kAllToAll) return AllToAlls({{&step, in, out}});
  if (size_ == 1) {
    CopyUnlessSame(out, in, step.count * static_cast<int64_t>(SizeOf(step.dtype)));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, step.Call()));
  Compute(step, out);
  return End(step.Call());
}

absl::Status ThreadCommunicator::AllToAlls(absl::Span<const AllToAllCall> calls) {
  for (const AllToAllCall& call : calls) {
    RETURN_IF_ERROR(Begin(call.in, call.out, call.step->Call()));
    for (int peer = 0; peer < size_; ++peer) {
      using Side = ExchangedBlock::Side;
      CopyBlock({*call.step, Side::kBefore, peer, index_}, ins_[peer],
                {*call.step, Side::kAfter, index_, peer, call.arriving}, call.out);
    }
    RETURN_IF_ERROR(End(call.step->Call()));
  }
  return absl::OkStatus();
}

void ThreadCommunicator::Compute(const CollectiveStep& step, void* out) {
  const int64_t element = static_cast<int64_t>(SizeOf(step.dtype)), bytes = step.count * element,
                stride = step.Stride() * element;
  const Range mine = SliceExtent(step.count, size_).Of(index_);
  switch (step.kind) {
    case Kind::kAllReduce:
      for (const void*& theirs : ins_) theirs = At(theirs, mine.begin * element);
      for (void*& theirs : outs_) theirs = At(theirs, mine.begin * element);
      return ReduceInto(outs_, ins_, mine.size(), step.dtype, step.reduce);
    case Kind::kReduceScatter:
      for (const void*& theirs : ins_) theirs = At(theirs, index_ * stride);
      return ReduceInto({out}, ins_, step.count, step.dtype, step.reduce);
    case Kind::kAllGather:
      for (void* theirs : outs_) std::memcpy(At(theirs, index_ * stride), ins_[index_], bytes);
      return;
    case Kind::kBroadcast:
      return CopyUnlessSame(out, ins_[step.root], bytes);
    case Kind::kReduce:
      for (const void*& theirs : ins_) theirs = At(theirs, mine.begin * element);
      ReduceInto({At(outs_[step.root], mine.begin * element)}, ins_, mine.size(), step.dtype,
                 step.reduce);
      if (index_ != step.root) std::memset(out, 0, bytes);
      return;
    case Kind::kAllToAll:
    case Kind::kSend:
      break;
  }
  CC_CHECK(false);
}

absl::Status ThreadCommunicator::Send(const CollectiveStep& step, const void* in, void* out) {
  const int64_t bytes = step.count * static_cast<int64_t>(SizeOf(step.dtype));
  RETURN_IF_ERROR(Open(column_, in, out, "Send"));
  const int stage = column_.members.Index(rank_), before = stage - step.shift,
            after = stage + step.shift;
  const auto exists = [&](int other) { return other >= 0 && other < column_.members.size; };
  if (exists(before)) {
    RETURN_IF_ERROR(Await(column_, before, &Desks::Desk::ready, "Send"));
    // A rank that has left may free its buffers.
    if (absl::Status all = CheckAllHere(board_, rank_, "Send"); !all.ok())
      return Retreat(column_, all);
    RETURN_IF_ERROR(CheckStep(column_, before));
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
    RETURN_IF_ERROR(CheckStep(group_, peer));
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
  own.step = step_;
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

absl::Status ThreadCommunicator::CheckStep(const Table& table, int index) {
  if (table.Of(index).step == step_) return absl::OkStatus();
  return Retreat(table, board_.Mismatched(rank_, table.members.Rank(index)));
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
