#include "autotune/measure/verifier.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "autotune/measure/arena.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kPoison = 0xFF;  // a NaN in every float type

/// Bytes of a buffer, and kGuardBytes behind them where its memory is so long.
int64_t GuardedBytes(const Memory& memory, const Buffer& buffer) {
  return std::min(memory.bytes(), BytesOf(buffer) + kGuardBytes);
}

/// Writes test data to inputs and states, and NaNs to everything else, padding and guards included.
absl::Status Prepare(const Rank& rank, Instance& instance, const TestData& data) {
  const Plan& plan = *instance.plan;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferRole role = plan.buffers[i].role;
    if (role != BufferRole::kTemp && role != BufferRole::kOutput) continue;
    const int64_t bytes = GuardedBytes(*instance.buffers[i], plan.buffers[i]);
    HostView view = HostView::Blank(*instance.buffers[i], bytes);
    std::memset(view.data(), kPoison, bytes);
    RETURN_IF_ERROR(view.Store());
  }
  for (const PlacedTensor& t : instance.tensors) {
    if (t.role == BufferRole::kOutput) continue;
    const Part part = PartOf(t.type, plan.ranks, rank.stage_rank());
    const int64_t data_bytes =
        part.runs == 1 ? part.run * static_cast<int64_t>(SizeOf(t.type.dtype)) : 0;
    Memory& memory = *instance.buffers[t.buffer];
    const int64_t bytes = GuardedBytes(memory, plan.buffers[t.buffer]);
    HostView view = HostView::Blank(memory, bytes);
    std::memset(view.data() + data_bytes, kPoison, bytes - data_bytes);
    data.Fill(t.name, rank.rank(), part, view.data());
    RETURN_IF_ERROR(view.Store());
  }
  return absl::OkStatus();
}

/// The memory of a tensor's buffer as the host sees it.
absl::StatusOr<HostView> ViewOf(const Instance& instance, const PlacedTensor& t) {
  return HostView::Of(*instance.buffers[t.buffer], BytesOf(instance.plan->buffers[t.buffer]));
}

/// Hashes in four chains, which hide the latency of multiplications.
uint64_t HashOf(const void* bytes, int64_t count) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // no difference is lost by multiplying with it
  uint64_t lanes[4] = {1, 2, 3, static_cast<uint64_t>(count)};
  const char* at = static_cast<const char*>(bytes);
  for (; count > 0; at += sizeof(lanes), count -= sizeof(lanes)) {
    uint64_t words[4] = {};
    std::memcpy(words, at, std::min<int64_t>(count, sizeof(words)));
    for (int i = 0; i < 4; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * kOdd;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  uint64_t hash = 0;
  for (uint64_t lane : lanes) hash = (hash ^ lane) * kOdd;
  return hash ^ hash >> 32;
}

bool IsResult(const PlacedTensor& t) { return t.role == BufferRole::kOutput || t.updated; }

/// Name and digest of each Replicated result on this rank.
absl::Status PackReplicas(Packer& out, const Instance& instance) {
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsResult(t) || t.type.layout.kind != Layout::Kind::kReplicated) continue;
    const int64_t bytes = NumElements(t.type.shape) * static_cast<int64_t>(SizeOf(t.type.dtype));
    ASSIGN_OR_RETURN(HostView view, HostView::Of(*instance.buffers[t.buffer], bytes));
    out.Text(t.name).Int(static_cast<int64_t>(HashOf(view.data(), bytes)));
  }
  return absl::OkStatus();
}

/// Collective. Combines the ranks' findings, and compares replicas.
absl::StatusOr<std::optional<Failure>> Settle(Rank& rank, const Instance& instance,
                                              const absl::Status& mine) {
  Packer replicas;
  absl::Status found = mine;
  found.Update(PackReplicas(replicas, instance));
  Packer message;
  PackStatus(message, found);
  message.Text(replicas.bytes());
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(message.bytes()));
  std::vector<std::string> held;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status status = UnpackStatus(in);
    held.push_back(in.Text());
    RETURN_IF_ERROR(in.Done());
    if (!status.ok())
      return Failure{Verdict::kWrongAnswer, absl::StrCat("rank ", r, ": ", status.message())};
  }
  for (size_t r = 1; r < held.size(); ++r) {
    const size_t root = r - r % rank.stage_size();
    if (held[r] == held[root]) continue;
    Unpacker first(held[root]), other(held[r]);
    std::string name = first.Text();
    for (other.Text(); first.Int() == other.Int(); other.Text()) name = first.Text();
    return Failure{Verdict::kWrongAnswer,
                   absl::StrCat(name, ": the replicas of ranks ", root, " and ", r, " differ")};
  }
  return std::nullopt;
}

/// Collective. Runs one step, which all ranks start together.
absl::StatusOr<std::optional<Failure>> RunStep(Rank& rank, Instance& instance) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  Packer message;
  PackStatus(message, instance.bound->Run());
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(message.bytes()));
  std::optional<Failure> failure;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status status = UnpackStatus(in);
    RETURN_IF_ERROR(in.Done());
    if (absl::IsDataLoss(status)) return WithContext(status, absl::StrCat("rank ", r));
    // Aborted means that a peer failed: its own error says more.
    if (status.ok() || (failure.has_value() && absl::IsAborted(status))) continue;
    failure = Failure{Verdict::kRunError, absl::StrCat("rank ", r, ": ", status.message())};
    if (!absl::IsAborted(status)) return failure;
  }
  return failure;
}

/// That no step wrote behind a buffer.
absl::Status CheckGuards(const Instance& instance) {
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    const Buffer& buffer = instance.plan->buffers[i];
    if (buffer.role == BufferRole::kSync) continue;
    Memory& memory = *instance.buffers[i];
    const int64_t begin = BytesOf(buffer), bytes = GuardedBytes(memory, buffer) - begin;
    char guard[kGuardBytes];
    if (memory.space() == nullptr) {
      std::memcpy(guard, static_cast<const char*>(memory.own()) + begin, bytes);
    } else if (bytes > 0) {
      RETURN_IF_ERROR(memory.Read(begin, bytes, guard));
    }
    const char* const changed = std::find_if(
        guard, guard + bytes, [](char byte) { return byte != static_cast<char>(kPoison); });
    if (changed != guard + bytes)
      return absl::InvalidArgumentError(absl::StrCat(buffer.name, ": byte ", changed - guard,
                                                     " behind its ", begin, " was written"));
  }
  return absl::OkStatus();
}

absl::Status CheckUnchanged(const Rank& rank, const Instance& instance, const TestData& data) {
  for (const PlacedTensor& t : instance.tensors) {
    if (t.role == BufferRole::kOutput || t.updated) continue;
    const Part part = PartOf(t.type, instance.plan->ranks, rank.stage_rank());
    ASSIGN_OR_RETURN(HostView view, ViewOf(instance, t));
    const int64_t at = data.FirstChange(t.name, rank.rank(), part, view.data());
    if (at >= 0)
      return absl::InvalidArgumentError(
          absl::StrCat(t.name, "[", part.Global(at), "] was changed; it is only read"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<Failure>> VerifyStep(Rank& rank, Instance& instance,
                                                  Reference& reference) {
  RETURN_IF_ERROR(rank.exchange().Agree(Prepare(rank, instance, reference.data())));
  ASSIGN_OR_RETURN(std::optional<Failure> failure, RunStep(rank, instance));
  if (failure.has_value()) return failure;
  absl::Status found = CheckGuards(instance);
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsResult(t)) continue;
    absl::StatusOr<HostView> view = ViewOf(instance, t);
    found.Update(view.ok() ? reference.Check(t, view->data()) : view.status());
  }
  return Settle(rank, instance, found);
}

absl::StatusOr<std::optional<Failure>> VerifyRepeat(Rank& rank, Instance& instance,
                                                    const Reference& reference) {
  ASSIGN_OR_RETURN(std::optional<Failure> failure, RunStep(rank, instance));
  if (failure.has_value()) return failure;
  absl::Status found = CheckGuards(instance);
  found.Update(CheckUnchanged(rank, instance, reference.data()));
  return Settle(rank, instance, found);
}

}  // namespace coconet
