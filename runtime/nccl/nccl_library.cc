#include "runtime/nccl/nccl_library.h"

#include "coconet/base/status.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

/// NCCL has no integers of 16 bits, and only its later versions have floats of 8: their bits are
/// moved, and Takes refuses to reduce them.
ncclDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF16:
    case DType::kI16:
    case DType::kU16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI8:
      return ncclInt8;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
    case DType::kBool:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return ncclUint8;
    case DType::kU32:
      return ncclUint32;
    case DType::kU64:
      return ncclUint64;
  }
  CC_CHECK(false);
}

ncclRedOp_t OpOf(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::kSum:
      return dtype == DType::kBool ? ncclMax : ncclSum;  // on 0 and 1 the maximum is the or
    case ReduceKind::kMax:
      return ncclMax;
    case ReduceKind::kMin:
      return ncclMin;
  }
  CC_CHECK(false);
}

absl::string_view CallOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "ncclAllReduce";
    case Kind::kReduceScatter:
      return "ncclReduceScatter";
    case Kind::kAllGather:
      return "ncclAllGather";
    case Kind::kBroadcast:
      return "ncclBroadcast";
    case Kind::kReduce:
      return "ncclReduce";
    case Kind::kAllToAll:
      return "ncclSend and ncclRecv";
    case Kind::kSend:
      return "ncclSend and ncclRecv";
  }
  CC_CHECK(false);
}

bool Reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

size_t Bytes(const CollectiveStep& step) {
  return static_cast<size_t>(step.count) * SizeOf(step.dtype);
}

}  // namespace

bool NcclLibrary::Takes(const CollectiveStep& step) const {
  if (!Reduces(step.kind)) return true;
  if (step.dtype == DType::kI16 || step.dtype == DType::kU16 || IsFloat8(step.dtype)) return false;
  // NCCL's minimum and maximum of a number and a NaN are the number.
  if (step.reduce != ReduceKind::kSum) return !IsFloat(step.dtype) || step.no_nans;
  if (step.dtype != DType::kF16 && step.dtype != DType::kBF16) return true;
  if (step.rounds_each) return true;
  const NcclLink* link = LinkOf(step);
  return link == nullptr || link->size() == 2;
}

NcclLink* NcclLibrary::LinkOf(const CollectiveStep& step) const {
  return step.kind == Kind::kSend ? links_.column.get()
                                  : links_.of_group[static_cast<size_t>(step.group)].get();
}

absl::Status NcclLibrary::Enqueue(const CollectiveStep& step, const void* in, void* out,
                                  CUstream stream, const std::function<bool()>& stopped) {
  RETURN_IF_ERROR(aborted_);
  if (step.count == 0) return absl::OkStatus();
  const Operands at{static_cast<const char*>(in), static_cast<char*>(out), stream};
  NcclLink* link = LinkOf(step);
  if (link != nullptr) {
    RETURN_IF_ERROR(Begin(step, *link, at));
    RETURN_IF_ERROR(link->Settle(CallOf(step.kind), stopped));
  }
  return EnqueueOwn(step, link, at);
}

absl::Status NcclLibrary::Begin(const CollectiveStep& step, const NcclLink& link,
                                const Operands& at) const {
  const auto count = static_cast<size_t>(step.count);
  const size_t stride = static_cast<size_t>(step.Stride()) * SizeOf(step.dtype);
  const ncclDataType_t type = TypeOf(step.dtype);
  const ncclRedOp_t op = OpOf(step.reduce, step.dtype);
  const bool dense = step.Stride() == step.count;
  const bool sends = step.kind == Kind::kAllToAll || step.kind == Kind::kSend;
  absl::Status status;
  const auto note = [&](ncclResult_t result, absl::string_view call) {
    status.Update(ToStatusOfBegun(nccl_, result, call));
  };
  const auto send = [&](int peer, size_t offset) {
    note(nccl_.Send(at.in + offset, count, type, peer, link.comm(), at.stream), "ncclSend");
  };
  const auto receive = [&](int peer, size_t offset) {
    note(nccl_.Recv(at.out + offset, count, type, peer, link.comm(), at.stream), "ncclRecv");
  };
  const auto reduce = [&](int root, size_t offset) {
    note(nccl_.Reduce(at.in + offset, at.out, count, type, op, root, link.comm(), at.stream),
         "ncclReduce");
  };
  const auto broadcast = [&](int root, size_t offset) {
    note(nccl_.Broadcast(at.in, at.out + offset, count, type, root, link.comm(), at.stream),
         "ncclBroadcast");
  };
  // Several calls that wait for each other are one group.
  if (sends || !dense)
    RETURN_IF_ERROR(ToStatusOfBegun(nccl_, nccl_.GroupStart(), "ncclGroupStart"));
  switch (step.kind) {
    case Kind::kAllReduce:
      note(nccl_.AllReduce(at.in, at.out, count, type, op, link.comm(), at.stream),
           "ncclAllReduce");
      break;
    case Kind::kBroadcast:
      broadcast(step.root, 0);
      break;
    case Kind::kReduce:
      reduce(step.root, 0);
      break;
    case Kind::kReduceScatter:
      if (dense)
        note(nccl_.ReduceScatter(at.in, at.out, count, type, op, link.comm(), at.stream),
             "ncclReduceScatter");
      for (int root = 0; !dense && root < link.size(); ++root) reduce(root, root * stride);
      break;
    case Kind::kAllGather:
      if (dense)
        note(nccl_.AllGather(at.in, at.out, count, type, link.comm(), at.stream), "ncclAllGather");
      for (int root = 0; !dense && root < link.size(); ++root) broadcast(root, root * stride);
      break;
    case Kind::kAllToAll:
      for (int peer = 0; peer < link.size(); ++peer) {
        send(peer, peer * Bytes(step));
        receive(peer, peer * Bytes(step));
      }
      break;
    case Kind::kSend:
      const int before = link.index() - step.shift, after = link.index() + step.shift;
      const auto exists = [&](int stage) { return stage >= 0 && stage < link.size(); };
      if (exists(after)) send(after, 0);
      if (exists(before)) receive(before, 0);
      break;
  }
  // Also after an error, because it ends the thread's group.
  if (sends || !dense) note(nccl_.GroupEnd(), "ncclGroupEnd");
  return status;
}

absl::Status NcclLibrary::EnqueueOwn(const CollectiveStep& step, const NcclLink* link,
                                     const Operands& at) const {
  const auto out = reinterpret_cast<CUdeviceptr>(at.out);
  const auto zero = [&] {
    return ToStatus(driver_, driver_.MemsetD8Async(out, 0, Bytes(step), at.stream),
                    "cuMemsetD8Async");
  };
  if (step.kind == Kind::kSend) {
    const int stages = link == nullptr ? 1 : link->size(),
              before = (link == nullptr ? 0 : link->index()) - step.shift;
    return before < 0 || before >= stages ? zero() : absl::OkStatus();
  }
  if (link != nullptr)
    return step.kind == Kind::kReduce && link->index() != step.root ? zero() : absl::OkStatus();
  if (at.in == at.out) return absl::OkStatus();
  return ToStatus(
      driver_,
      driver_.MemcpyAsync(out, reinterpret_cast<CUdeviceptr>(at.in), Bytes(step), at.stream),
      "cuMemcpyAsync");
}

absl::Status NcclLibrary::Check() {
  RETURN_IF_ERROR(aborted_);
  for (const std::shared_ptr<NcclLink>& link : links_.of_group) {
    if (link != nullptr) RETURN_IF_ERROR(link->Check());
  }
  return links_.column == nullptr ? absl::OkStatus() : links_.column->Check();
}

void NcclLibrary::Abort(const absl::Status& why) {
  if (!aborted_.ok()) return;
  aborted_ = absl::AbortedError(absl::StrCat("NCCL was aborted: ", why.message()));
  for (const std::shared_ptr<NcclLink>& link : links_.of_group) {
    if (link != nullptr) link->Abort();
  }
  if (links_.column != nullptr) links_.column->Abort();
}

}  // namespace coconet
