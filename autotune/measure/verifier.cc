#include "autotune/measure/verifier.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/arena.h"
#include "autotune/measure/poison.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Bytes of a buffer, and kGuardBytes behind them where its memory is so long.
int64_t GuardedBytes(const Rank& rank, const Memory& memory, const Buffer& buffer) {
  return std::min(memory.bytes(), BytesOn(rank, buffer) + kGuardBytes);
}

/// Writes the rank's elements of an input or state, and poison behind them.
absl::Status WriteTensor(const Rank& rank, Instance& instance, const PlacedTensor& t,
                         const TestData& data) {
  const Plan& plan = *instance.plan;
  const Part part = PartOf(t.type, plan.ranks, rank.stage_rank());
  const int64_t data_bytes =
      part.runs == 1 ? part.run * static_cast<int64_t>(SizeOf(t.type.dtype)) : 0;
  Memory& memory = *instance.buffers[t.buffer];
  const int64_t bytes = GuardedBytes(rank, memory, plan.buffers[t.buffer]);
  HostView view = HostView::Blank(memory, bytes);
  Poison(t.type.dtype, data_bytes,
         {view.data() + data_bytes, static_cast<size_t>(bytes - data_bytes)});
  data.Fill(t.name, rank.rank(), part, view.data());
  return view.Store();
}

/// Bytes of poison that are copied to a GPU, which repeats them: a multiple of their period.
constexpr int64_t kPoisonWritten = int64_t{1} << 20;

absl::Status PoisonAll(const Rank& rank, Instance& instance, size_t number) {
  const Buffer& buffer = instance.plan->buffers[number];
  Memory& memory = *instance.buffers[number];
  const int64_t bytes = GuardedBytes(rank, memory, buffer),
                written = memory.space() == nullptr ? bytes : std::min(bytes, kPoisonWritten);
  HostView view = HostView::Blank(memory, written);
  Poison(buffer.dtype, 0, {view.data(), static_cast<size_t>(written)});
  RETURN_IF_ERROR(view.Store());
  return written == bytes ? absl::OkStatus() : memory.Repeat(written, bytes);
}

/// Writes what the program's caller may write between steps: test data to inputs and states, poison
/// to outputs.
absl::Status WriteForStep(const Rank& rank, Instance& instance, const PlacedTensor& t,
                          const TestData& data) {
  return t.role == BufferRole::kOutput ? PoisonAll(rank, instance, t.buffer)
                                       : WriteTensor(rank, instance, t, data);
}
absl::Status WriteTensors(const Rank& rank, Instance& instance, const TestData& data) {
  for (const PlacedTensor& t : instance.tensors)
    RETURN_IF_ERROR(WriteForStep(rank, instance, t, data));
  return absl::OkStatus();
}

/// WriteTensors before the first step, and poison in temporaries. Cancelled where the reference has
/// to stop.
absl::Status Prepare(const Rank& rank, Instance& instance, const Reference& reference) {
  for (size_t i = 0; i < instance.plan->buffers.size(); ++i) {
    RETURN_IF_ERROR(reference.GoOn());
    if (instance.plan->buffers[i].role == BufferRole::kTemp)
      RETURN_IF_ERROR(PoisonAll(rank, instance, i));
  }
  const TestData& data = reference.data();
  for (const PlacedTensor& t : instance.tensors) {
    RETURN_IF_ERROR(reference.GoOn());
    RETURN_IF_ERROR(WriteForStep(rank, instance, t, data));
  }
  return absl::OkStatus();
}

/// The memory of a tensor's buffer as the host sees it.
absl::StatusOr<HostView> ViewOf(const Rank& rank, const Instance& instance, const PlacedTensor& t) {
  return HostView::Of(*instance.buffers[t.buffer], BytesOn(rank, instance.plan->buffers[t.buffer]));
}

/// Bytes from which on a tensor that is only read is digested in a GPU's memory, not copied.
constexpr int64_t kLong = int64_t{1} << 20;
constexpr int64_t kHashed = 4096;  // bytes that are hashed together

/// Hashes in four chains, which hide the latency of multiplications.
class Hash {
 public:
  void Add(const char* bytes, int64_t count) {
    for (; count > 0; bytes += sizeof(lanes_), count -= sizeof(lanes_)) {
      uint64_t words[4] = {};
      std::memcpy(words, bytes, std::min<int64_t>(count, sizeof(words)));
      for (int i = 0; i < 4; ++i) {
        lanes_[i] = (lanes_[i] ^ words[i]) * kOdd;
        lanes_[i] ^= lanes_[i] >> 32;
      }
    }
  }
  uint64_t Value() const {
    uint64_t hash = 0;
    for (uint64_t lane : lanes_) hash = (hash ^ lane) * kOdd;
    return hash ^ hash >> 32;
  }

 private:
  static constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // multiplying with it loses no difference
  uint64_t lanes_[4] = {1, 2, 3, 4};
};

/// Hash of floats of `Bits`, in which all NaNs are one. `greatest`: the bits of the greatest
/// number, infinity included; those of NaNs are above it.
template <class Bits>
uint64_t HashOfFloats(const char* bytes, int64_t count, Bits greatest) {
  constexpr auto kMagnitude = static_cast<Bits>(~Bits{0} >> 1);
  constexpr int64_t kElements = kHashed / static_cast<int64_t>(sizeof(Bits));
  Hash hash;
  Bits block[kElements];
  for (int64_t at = 0; at < count; at += kElements) {
    const int64_t n = std::min(kElements, count - at);
    std::memcpy(block, bytes + at * sizeof(Bits), n * sizeof(Bits));
    for (int64_t i = 0; i < n; ++i)
      block[i] = (block[i] & kMagnitude) > greatest ? kMagnitude : block[i];
    hash.Add(reinterpret_cast<const char*>(block), n * static_cast<int64_t>(sizeof(Bits)));
  }
  return hash.Value();
}

uint64_t HashOf(DType dtype, const char* bytes, int64_t count) {
  switch (dtype) {
    case DType::kF64:
      return HashOfFloats<uint64_t>(bytes, count, 0x7FF0000000000000);
    case DType::kF32:
      return HashOfFloats<uint32_t>(bytes, count, 0x7F800000);
    case DType::kF16:
      return HashOfFloats<uint16_t>(bytes, count, 0x7C00);
    case DType::kBF16:
      return HashOfFloats<uint16_t>(bytes, count, 0x7F80);
    case DType::kF8E4M3:
      return HashOfFloats<uint8_t>(bytes, count, 0x7E);
    case DType::kF8E5M2:
      return HashOfFloats<uint8_t>(bytes, count, 0x7C);
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kBool: {
      Hash hash;
      hash.Add(bytes, count * static_cast<int64_t>(SizeOf(dtype)));
      return hash.Value();
    }
  }
  CC_CHECK(false);
}

bool IsResult(const PlacedTensor& t) { return t.role == BufferRole::kOutput || t.updated; }

bool IsReplica(const PlacedTensor& t) {
  return IsResult(t) && t.type.layout.kind == Layout::Kind::kReplicated;
}

/// What one rank found in one step or several.
struct Findings {
  absl::Status wrong;
  Packer replicas;  // name and hash of each Replicated result

  /// Adds the hash of a result, whose elements on this rank these are, if all ranks have it.
  void AddReplica(const PlacedTensor& t, absl::string_view step, const char* elements) {
    if (IsReplica(t)) AddHash(t, step, HashOf(t.type.dtype, elements, NumElements(t.type.shape)));
  }
  void AddReplica(const PlacedTensor& t, const Memory& memory, ResultKernels& kernels) {
    if (!IsReplica(t)) return;
    const absl::StatusOr<uint64_t> digest =
        kernels.Digest(memory, t.type.dtype, NumElements(t.type.shape), /*to_the_bit=*/false);
    wrong.Update(digest.status());
    AddHash(t, "", digest.value_or(0));
  }

 private:
  void AddHash(const PlacedTensor& t, absl::string_view step, uint64_t hash) {
    replicas.Text(absl::StrCat(t.name, step)).Int(static_cast<int64_t>(hash));
  }
};

/// The error of a rank whose GPU runs nothing more, which no variant is blamed for.
absl::Status IfLost(const absl::Status& status, int rank) {
  return absl::IsDataLoss(status) ? WithContext(status, absl::StrCat("rank ", rank))
                                  : absl::OkStatus();
}

/// Collective. Combines the ranks' findings, and compares replicas.
absl::StatusOr<std::optional<Failure>> Settle(Rank& rank, const Findings& mine) {
  Packer message;
  PackStatus(message, mine.wrong);
  message.Text(mine.replicas.bytes());
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(message.bytes()));
  std::vector<std::string> held;
  std::optional<Failure> failure;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status status = UnpackStatus(in);
    held.push_back(in.Text());
    RETURN_IF_ERROR(in.Done());
    RETURN_IF_ERROR(IfLost(status, static_cast<int>(r)));
    if (absl::IsCancelled(status)) return status;
    if (status.ok() || failure.has_value()) continue;
    failure = Failure{Verdict::kWrongAnswer, absl::StrCat("rank ", r, ": ", status.message())};
  }
  if (failure.has_value()) return failure;
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

/// Collective. How the ranks' steps ended.
absl::StatusOr<std::optional<Failure>> AgreeOnRun(Rank& rank, const absl::Status& mine) {
  Packer message;
  PackStatus(message, mine);
  const absl::StatusOr<std::vector<std::string>> gathered =
      rank.exchange().AllGather(message.bytes());
  // A rank that has lost its GPU may have left, and its own error says more than the exchange's.
  RETURN_IF_ERROR(gathered.ok() || !absl::IsDataLoss(mine) ? gathered.status() : mine);
  const std::vector<std::string>& all = *gathered;
  std::optional<Failure> failure;
  bool named = false;  // by a rank that failed itself
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status status = UnpackStatus(in);
    RETURN_IF_ERROR(in.Done());
    RETURN_IF_ERROR(IfLost(status, static_cast<int>(r)));
    // Aborted means that a peer failed: its own error says more.
    if (status.ok() || (failure.has_value() && (named || absl::IsAborted(status)))) continue;
    failure = Failure{VerdictOn(status), absl::StrCat("rank ", r, ": ", status.message())};
    named = !absl::IsAborted(status);
  }
  return failure;
}

/// By buffer: the number of its first bytes that steps may write. Kernels leave a tensor's padding
/// alone; libraries may write it, and a temporary is written in full.
std::vector<int64_t> WritableBytes(const Rank& rank, const Instance& instance) {
  const Plan& plan = *instance.plan;
  std::vector<int64_t> bytes;
  for (const Buffer& buffer : plan.buffers) bytes.push_back(BytesOn(rank, buffer));
  std::set<int> by_libraries;
  for (const Step& step : plan.steps) {
    if (const auto* collective = std::get_if<CollectiveStep>(&step))
      by_libraries.insert(collective->out);
    if (const auto* product = std::get_if<GemmStep>(&step)) by_libraries.insert(product->c.buffer);
  }
  for (const PlacedTensor& t : instance.tensors) {
    const Part part = PartOf(t.type, plan.ranks, rank.stage_rank());
    if (part.runs == 1 && !by_libraries.contains(t.buffer))
      bytes[t.buffer] = part.run * static_cast<int64_t>(SizeOf(t.type.dtype));
  }
  return bytes;
}

/// That no step wrote behind a tensor or buffer.
absl::Status CheckGuards(const Rank& rank, const Instance& instance) {
  RETURN_IF_ERROR(instance.bound->CheckSyncGuards());
  const std::vector<int64_t> writable = WritableBytes(rank, instance);
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    const Buffer& buffer = instance.plan->buffers[i];
    if (buffer.role == BufferRole::kSync) continue;
    Memory& memory = *instance.buffers[i];
    const int64_t end = GuardedBytes(rank, memory, buffer);
    for (int64_t begin = writable[i]; begin < end; begin += kGuardBytes) {
      const int64_t bytes = std::min(kGuardBytes, end - begin);
      char guard[kGuardBytes];
      if (memory.space() == nullptr) {
        std::memcpy(guard, static_cast<const char*>(memory.own()) + begin, bytes);
      } else {
        RETURN_IF_ERROR(memory.Read(begin, bytes, guard));
      }
      const int64_t changed =
          FirstUnpoisoned(buffer.dtype, begin, {guard, static_cast<size_t>(bytes)});
      if (changed == bytes) continue;
      return absl::InvalidArgumentError(absl::StrCat(buffer.name, ": byte ",
                                                     begin + changed - writable[i], " behind its ",
                                                     writable[i], " was written"));
    }
  }
  return absl::OkStatus();
}

/// Whether a tensor that is only read is digested in a GPU's memory, to find whether it changed.
bool IsDigested(const Instance& instance, const PlacedTensor& t, const ResultKernels* kernels) {
  return kernels != nullptr && !IsResult(t) && instance.buffers[t.buffer]->bytes() >= kLong;
}

/// The digest of the whole buffer of such a tensor.
absl::StatusOr<uint64_t> DigestOf(const Rank& rank, const Instance& instance, const PlacedTensor& t,
                                  ResultKernels& kernels) {
  const Buffer& buffer = instance.plan->buffers[t.buffer];
  return kernels.Digest(*instance.buffers[t.buffer], buffer.dtype, buffer.On(rank.stage_rank()),
                        /*to_the_bit=*/true);
}

absl::Status CheckUnchanged(const Rank& rank, const Instance& instance, const TestData& data,
                            ResultKernels* kernels = nullptr) {
  for (const PlacedTensor& t : instance.tensors) {
    if (IsResult(t)) continue;
    if (IsDigested(instance, t, kernels)) {
      ASSIGN_OR_RETURN(const uint64_t digest, DigestOf(rank, instance, t, *kernels));
      const auto before = instance.digests.find(t.buffer);
      if (before != instance.digests.end() && before->second == digest) continue;
    }
    const Part part = PartOf(t.type, instance.plan->ranks, rank.stage_rank());
    ASSIGN_OR_RETURN(HostView view, ViewOf(rank, instance, t));
    const int64_t at = data.FirstChange(t.name, rank.rank(), part, view.data());
    if (at >= 0)
      return absl::InvalidArgumentError(
          absl::StrCat(t.name, "[", part.Global(at), "] was changed; it is only read"));
  }
  return absl::OkStatus();
}

/// The results of one step, taken away.
using Taken = std::vector<std::string>;

absl::StatusOr<Taken> TakeResults(const Rank& rank, const Instance& instance) {
  Taken taken;
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsResult(t)) continue;
    ASSIGN_OR_RETURN(HostView view, ViewOf(rank, instance, t));
    taken.emplace_back(view.data(), BytesOn(rank, instance.plan->buffers[t.buffer]));
  }
  return taken;
}

/// How long a rank is late. Longer than a small step takes.
constexpr absl::Duration kLate = absl::Microseconds(150);
constexpr int kLateWaits = 3;  // of a step
constexpr int kMostSteps = 32;

/// Lets one rank be late in the step that comes: the even ones in the midst of a kernel, when its
/// peers, which begin after it, have come.
void BeLate(const Rank& rank, Instance& instance, int step) {
  const bool is_late = step / 2 % rank.size() == rank.rank(), in_midst = step % 2 == 0;
  instance.bound->DelayWaits(is_late && in_midst ? kLateWaits : 0,
                             absl::ToInt64Nanoseconds(2 * kLate));
  if (is_late != in_midst) absl::SleepFor(kLate);
}

/// Whether steps that begin while collectives of those before still run leave what they leave one
/// after the other, to the bit.
absl::StatusOr<std::optional<Failure>> VerifyAdvancing(Rank& rank, Instance& instance,
                                                       const Reference& reference) {
  const int steps = std::min(2 * rank.size(), kMostSteps);
  Taken taken[2];
  Findings found;
  for (const bool advances : {false, true}) {
    RETURN_IF_ERROR(rank.exchange().Agree(Prepare(rank, instance, reference)));
    absl::Status ran;
    for (int step = 0; step < steps && ran.ok(); ++step) {
      BeLate(rank, instance, step);
      ran = advances ? instance.bound->Advance() : instance.bound->Run();
    }
    instance.bound->DelayWaits(0, 0);
    ran.Update(instance.bound->Wait());
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, AgreeOnRun(rank, ran));
    if (failure.has_value()) return failure;
    found.wrong.Update(CheckGuards(rank, instance));
    absl::StatusOr<Taken> results = TakeResults(rank, instance);
    found.wrong.Update(results.status());
    if (results.ok()) taken[advances] = *std::move(results);
  }
  size_t at = 0;
  for (const PlacedTensor& t : instance.tensors) {
    if (!found.wrong.ok()) break;
    if (!IsResult(t)) continue;
    const bool is_same = taken[0][at] == taken[1][at];
    ++at;
    if (is_same) continue;
    found.wrong = absl::InternalError(
        absl::StrCat(t.name, " after ", steps,
                     " steps, of which each begins while collectives of the one before ",
                     "still run: want what they leave one after the other, have others"));
  }
  return Settle(rank, found);
}

}  // namespace

Verdict VerdictOn(const absl::Status& error) {
  if (absl::IsResourceExhausted(error)) return Verdict::kTooLarge;
  const bool waited = absl::IsDeadlineExceeded(error) || absl::IsAborted(error) ||
                      absl::IsUnavailable(error) || absl::IsCancelled(error);
  return waited ? Verdict::kTimedOut : Verdict::kRunError;
}

absl::Status PrepareStep(Rank& rank, Instance& instance, const Reference& reference) {
  return rank.exchange().Agree(Prepare(rank, instance, reference));
}

absl::StatusOr<std::optional<Failure>> RunTogether(Rank& rank, BoundPlan& plan) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  return AgreeOnRun(rank, plan.Run());
}

absl::StatusOr<std::optional<Failure>> VerifyStep(Rank& rank, Instance& instance,
                                                  Reference& reference, PlainResults& plain,
                                                  ResultKernels* kernels) {
  RETURN_IF_ERROR(PrepareStep(rank, instance, reference));
  Findings found{absl::OkStatus(), {}};
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsDigested(instance, t, kernels)) continue;
    const absl::StatusOr<uint64_t> digest = DigestOf(rank, instance, t, *kernels);
    found.wrong.Update(digest.status());
    instance.digests[t.buffer] = digest.value_or(0);
  }
  ASSIGN_OR_RETURN(std::optional<Failure> failure, RunTogether(rank, *instance.bound));
  if (failure.has_value()) return failure;
  found.wrong.Update(CheckGuards(rank, instance));
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsResult(t)) continue;
    if (const absl::Status go_on = reference.GoOn(); !go_on.ok()) {
      found.wrong = go_on;
      break;
    }
    // All ranks decide alike, since they compare each other's digests.
    if (kernels != nullptr && !reference.ChecksAll(t)) {
      Memory& memory = *instance.buffers[t.buffer];
      found.AddReplica(t, memory, *kernels);
      const StorageOfShare share(reference.ShareOf(t.type), t.type.layout.sliced());
      found.wrong.Update(reference.Check(t, [&](absl::Span<const int64_t> positions) {
        return kernels->Values(memory, t.type.dtype, share, positions);
      }));
      if (found.wrong.ok()) found.wrong.Update(plain.Compare(t, memory, *kernels, reference));
      continue;
    }
    absl::StatusOr<HostView> view = ViewOf(rank, instance, t);
    found.wrong.Update(view.status());
    if (!view.ok()) continue;
    found.AddReplica(t, "", view->data());
    found.wrong.Update(reference.Check(t, view->data()));
    if (found.wrong.ok()) found.wrong.Update(plain.Compare(t, view->data(), reference));
  }
  return Settle(rank, found);
}

absl::StatusOr<std::optional<Failure>> VerifyRepeat(Rank& rank, Instance& instance,
                                                    const Reference& reference,
                                                    ResultKernels* kernels) {
  ASSIGN_OR_RETURN(std::optional<Failure> failure, RunTogether(rank, *instance.bound));
  if (failure.has_value()) return failure;
  Findings found{CheckGuards(rank, instance), {}};
  found.wrong.Update(CheckUnchanged(rank, instance, reference.data(), kernels));
  for (const PlacedTensor& t : instance.tensors) {
    if (!IsReplica(t)) continue;  // values are not checked: not worth copying them from a GPU
    if (kernels != nullptr && !reference.ChecksAll(t)) {
      found.AddReplica(t, *instance.buffers[t.buffer], *kernels);
      continue;
    }
    absl::StatusOr<HostView> view = ViewOf(rank, instance, t);
    found.wrong.Update(view.status());
    if (view.ok()) found.AddReplica(t, "", view->data());
  }
  return Settle(rank, found);
}

absl::StatusOr<std::optional<Failure>> VerifySteps(Rank& rank, Instance& instance,
                                                   absl::Span<Reference> references) {
  const int sets = static_cast<int>(references.size());
  const int steps = std::max(sets, std::min(2 * rank.size(), kMostSteps));
  RETURN_IF_ERROR(rank.exchange().Agree(Prepare(rank, instance, references[0])));
  std::vector<Taken> taken;
  Findings found;
  absl::Status ran;
  for (int step = 0; step < steps && ran.ok(); ++step) {
    const TestData& data = references[step % sets].data();
    BeLate(rank, instance, step);
    // Who does not wait for the late one reads what it had in the step before.
    if (step > 0) ran = WriteTensors(rank, instance, data);
    if (ran.ok()) ran = instance.bound->Run();
    absl::StatusOr<Taken> results = ran.ok() ? TakeResults(rank, instance) : ran;
    ran.Update(results.status());
    if (!ran.ok()) break;
    taken.push_back(*std::move(results));
    found.wrong.Update(CheckUnchanged(rank, instance, data));
  }
  instance.bound->DelayWaits(0, 0);
  ASSIGN_OR_RETURN(std::optional<Failure> failure, AgreeOnRun(rank, ran));
  if (failure.has_value()) return failure;
  found.wrong.Update(CheckGuards(rank, instance));
  for (int step = 0; step < steps; ++step) {
    Reference& reference = references[step % sets];
    const std::string words = absl::StrCat(" in step ", step, " of ", steps, " on ",
                                           Name(reference.data().kind()), " data");
    auto elements = taken[step].begin();
    for (const PlacedTensor& t : instance.tensors) {
      if (!IsResult(t)) continue;
      found.AddReplica(t, words, elements->data());
      const absl::Status status = reference.Check(t, elements->data());
      if (!status.ok()) {
        found.wrong.Update(absl::Status(status.code(), absl::StrCat(status.message(), words)));
      }
      ++elements;
    }
  }
  ASSIGN_OR_RETURN(failure, Settle(rank, found));
  if (failure.has_value() || instance.plan->outlasting.empty()) return failure;
  return VerifyAdvancing(rank, instance, references[0]);
}

}  // namespace coconet
