#include "runtime/host/thread_communicator.h"

#include <cstring>

#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "runtime/host/reduce.h"

namespace coconet {
namespace {

const void* At(const void* base, int64_t bytes) { return static_cast<const char*>(base) + bytes; }
void* At(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

void CopyUnlessSame(void* out, const void* in, int64_t bytes) {
  if (out != in) std::memcpy(out, in, bytes);
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(int rank, std::shared_ptr<Desks> desks, Board board, WaitTerms terms)
    : rank_(rank),
      size_(board.ranks()),
      desks_(std::move(desks)),
      board_(board),
      terms_(terms),
      ins_(size_),
      outs_(size_) {}

absl::Status ThreadCommunicator::AllReduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind) {
  const int64_t element = static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, count * element);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "AllReduce"));
  const Range mine = SliceExtent(count, size_).Of(rank_);
  for (int peer = 0; peer < size_; ++peer) {
    ins_[peer] = At(ins_[peer], mine.begin * element);
    outs_[peer] = At(outs_[peer], mine.begin * element);
  }
  ReduceInto(outs_, ins_, mine.size(), dtype, kind);
  return End("AllReduce");
}

absl::Status ThreadCommunicator::ReduceScatter(const void* in, void* out, int64_t count, DType dtype,
                                               ReduceKind kind) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "ReduceScatter"));
  for (const void*& theirs : ins_) theirs = At(theirs, rank_ * bytes);
  ReduceInto({out}, ins_, count, dtype, kind);
  return End("ReduceScatter");
}

absl::Status ThreadCommunicator::AllGather(const void* in, void* out, int64_t count, DType dtype) {
  const int64_t bytes = count * static_cast<int64_t>(SizeOf(dtype));
  if (size_ == 1) {
    CopyUnlessSame(out, in, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Begin(in, out, "AllGather"));
  for (void* theirs : outs_) std::memcpy(At(theirs, rank_ * bytes), in, bytes);
  return End("AllGather");
}

absl::Status ThreadCommunicator::Begin(const void* in, void* out, absl::string_view what) {
  RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
  ++call_;
  Desks::Desk& own = desks_->of[rank_];
  own.in = in;
  own.out = out;
  own.ready.store(call_, std::memory_order_seq_cst);
  RETURN_IF_ERROR(AwaitAll(&Desks::Desk::ready, what));
  // A rank that left owns its memory again.
  if (absl::Status all = CheckAllHere(board_, rank_, what); !all.ok()) return Retreat(all);
  for (int peer = 0; peer < size_; ++peer) {
    ins_[peer] = desks_->of[peer].in;
    outs_[peer] = desks_->of[peer].out;
  }
  return absl::OkStatus();
}

absl::Status ThreadCommunicator::End(absl::string_view what) {
  desks_->of[rank_].done.store(call_, std::memory_order_release);
  return AwaitAll(&Desks::Desk::done, what);
}

absl::Status ThreadCommunicator::AwaitAll(std::atomic<unsigned> Desks::Desk::*flag, absl::string_view what) {
  for (int peer = 0; peer < size_; ++peer) {
    const absl::Status status = AwaitPeer(board_, terms_, rank_, peer, desks_->of[peer].*flag, call_, what);
    if (!status.ok()) return Retreat(status);
  }
  return absl::OkStatus();
}

absl::Status ThreadCommunicator::Retreat(const absl::Status& why) {
  // Sequentially consistent, like the peers' stores to `ready`: one that is not ready below will see that this rank
  // left.
  board_.Leave(rank_, why);
  for (int peer = 0; peer < size_; ++peer) {
    const Desks::Desk& theirs = desks_->of[peer];
    if (!Reached(theirs.ready.load(std::memory_order_seq_cst), call_)) continue;
    WaitUntil(
        terms_, [&] { return Reached(theirs.done.load(std::memory_order_acquire), call_); },
        [&] { return !board_.IsHere(peer); });
  }
  return why;
}

}  // namespace coconet
