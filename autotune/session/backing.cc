#include "autotune/session/backing.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/arena.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kMemoryAlignment = 64;  // of all memory of ranks (memory.h): kernels rely on it

std::vector<int64_t> NumbersOf(const Shape& shape) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : shape) numbers.push_back(dim.size);
  return numbers;
}

/// Whether the memory of the rank is a GPU's.
bool HasGpu(const Rank& rank) { return rank.topology().multiprocessors > 0; }

}  // namespace

/// Matches the bindings of one rank with the program's tensors.
class BindingMatcher {
 public:
  explicit BindingMatcher(const CompiledProgram& program)
      : program_(program), rank_(program.session->rank) {}

  /// The binding of each tensor, by buffer, checked as far as one rank can.
  absl::StatusOr<std::vector<Backing>> Match(absl::Span<const Binding> bindings) {
    std::vector<Backing> backing(program_.lowered->plan.buffers.size());
    for (const Binding& b : bindings) {
      ASSIGN_OR_RETURN(const PlacedTensor* tensor, FindTensor(program_, "Bind", b.name));
      Backing& place = backing[tensor->buffer];
      if (place.binding != nullptr)
        return absl::InvalidArgumentError(absl::StrCat("Bind ", b.name, ": bound twice"));
      place.binding = &b;
      RETURN_IF_ERROR(CheckLayout(*tensor, b));
      RETURN_IF_ERROR(b.buffer.has_value() ? Place(*tensor, *b.buffer, place)
                                           : Place(*tensor, b.foreign, place));
    }
    return backing;
  }

  /// By name of a tensor that is copied: why; "" where this rank has no elements to copy.
  const std::map<std::string, std::string>& copied() const { return copied_; }

 private:
  const Buffer& BufferOf(const PlacedTensor& tensor) const {
    return program_.lowered->plan.buffers[tensor.buffer];
  }
  Part PartHere(const PlacedTensor& tensor) const {
    return PartOf(tensor.type, rank_.stage_size(), rank_.stage_rank());
  }

  WantedTensor Wanted(const PlacedTensor& tensor) const {
    WantedTensor wanted{.operation = "Bind",
                        .name = tensor.name,
                        .type = Text(tensor.type),
                        .dtype = tensor.type.dtype,
                        .elements = PartHere(tensor).elements(),
                        .admits_gpu = HasGpu(rank_) && !rank_.topology().simulated};
    if (!tensor.type.layout.sliced()) wanted.shape = NumbersOf(tensor.type.shape);
    return wanted;
  }

  absl::Status CheckLayout(const PlacedTensor& tensor, const Binding& b) const {
    if (b.accepts_slice) return absl::OkStatus();
    for (const Node& node : program_.program.nodes) {
      const auto* state = std::get_if<State>(&node.op);
      if (state == nullptr || state->name != tensor.name ||
          state->type.layout.kind != Layout::Kind::kAuto)
        continue;
      return absl::InvalidArgumentError(
          absl::StrCat("Bind ", tensor.name,
                       ": a state of layout auto is kept by the Session, which may slice it; use "
                       "Read and Write, declare a layout, or accept the slice "
                       "(Binding::AcceptSlice)"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRange(const PlacedTensor& tensor, const void* data, int64_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    const auto begin = reinterpret_cast<uintptr_t>(data);
    const auto after = used_.upper_bound(begin + (bytes - 1));
    if (after != used_.begin()) {
      const auto& [other, size_and_name] = *std::prev(after);
      if (other + size_and_name.first > begin) {
        return absl::InvalidArgumentError(
            absl::StrCat("Bind ", tensor.name, ": its memory is bound to another tensor already, ",
                         size_and_name.second));
      }
    }
    used_.emplace(begin, std::pair(bytes, tensor.name));
    return absl::OkStatus();
  }

  /// A DeviceBuffer has this rank's part of the tensor, or is named by the size of the whole.
  absl::Status Place(const PlacedTensor& tensor, const DeviceBuffer& buffer, Backing& place) {
    if (buffer.dtype_ != tensor.type.dtype)
      return Wanted(tensor).Error(Name(tensor.type.dtype), Name(buffer.dtype_));
    const Part here = PartHere(tensor), &have = buffer.part_;
    const bool is_part = have.runs == here.runs && have.run == here.run &&
                         (here.runs <= 1 || have.storage_stride == here.storage_stride);
    const bool is_whole = have.runs == 1 && have.run == NumElements(tensor.type.shape);
    if (!is_part && !is_whole) {
      return Wanted(tensor).Error(absl::StrCat(NumElements(tensor.type.shape), " elements"),
                                  absl::StrCat(buffer.elements()));
    }
    if (buffer.memory_ == nullptr)
      return Wanted(tensor).Error("a buffer of Allocate", "an empty one");
    const Buffer& need = BufferOf(tensor);
    if (buffer.memory_->bytes() < BytesOn(rank_, need)) {
      return Wanted(tensor).Error(
          absl::StrCat("a buffer of ", BytesOf(need), " bytes with padding"),
          absl::StrCat(buffer.memory_->bytes(), "; allocate it with TunedProgram::Allocate"));
    }
    RETURN_IF_ERROR(CheckRange(tensor, buffer.data(), buffer.memory_->bytes()));
    place.in_place = true;
    place.memory = buffer.memory_;
    place.serial = buffer.serial_;
    return absl::OkStatus();
  }

  absl::Status Place(const PlacedTensor& tensor, const ForeignTensor& foreign, Backing& place) {
    const WantedTensor wanted = Wanted(tensor);
    RETURN_IF_ERROR(wanted.Check(foreign));
    const auto buffer = program_.session->BufferAt(foreign.data);
    if (buffer.has_value() && IsAllOf(*buffer, foreign)) return Place(tensor, *buffer, place);
    const int64_t bytes = wanted.elements * static_cast<int64_t>(SizeOf(wanted.dtype));
    if (foreign.on_gpu) {
      RETURN_IF_ERROR(wanted.CheckRowMajor(foreign));
      if (bytes > 0) {
        RETURN_IF_ERROR(
            WithContext(rank_.CheckOnGpu(foreign.data), absl::StrCat("Bind ", tensor.name)));
      }
    }
    if (tensor.role == BufferRole::kOutput || tensor.updated)
      RETURN_IF_ERROR(wanted.CheckDistinct(foreign));
    if (foreign.row_major()) RETURN_IF_ERROR(CheckRange(tensor, foreign.data, bytes));
    const std::string why = WhyCopied(tensor, foreign, bytes);
    place.in_place = why.empty();
    if (!place.in_place) copied_.emplace(tensor.name, bytes > 0 ? why : "");
    return absl::OkStatus();
  }

  /// Whether the tensor is the buffer as it was handed out.
  static bool IsAllOf(const DeviceBuffer& buffer, const ForeignTensor& foreign) {
    const Part& part = buffer.part_;
    if (ElementsOf(foreign.shape) != part.elements()) return false;
    if (foreign.row_major()) return part.runs <= 1 || part.storage_stride == part.run;
    return foreign.shape == std::vector<int64_t>{part.runs, part.run} &&
           foreign.strides == std::vector<int64_t>{part.storage_stride, 1};
  }

  /// Why memory with the tensor's elements cannot back its buffer; "" if it can. Whether peers can
  /// map a GPU's memory is found out later (AdoptAll).
  std::string WhyCopied(const PlacedTensor& tensor, const ForeignTensor& foreign,
                        int64_t bytes) const {
    const Buffer& buffer = BufferOf(tensor);
    const bool scalar = tensor.type.shape.empty();
    const int64_t align =
        scalar ? static_cast<int64_t>(SizeOf(tensor.type.dtype)) : kMemoryAlignment;
    if (!foreign.row_major()) return "not row-major";
    if (HasGpu(rank_) && !foreign.on_gpu) return "the host's memory";
    if (buffer.symmetric && !foreign.on_gpu) return "peers reach it";
    if (bytes < BytesOn(rank_, buffer)) return "without padding";
    if (reinterpret_cast<uintptr_t>(foreign.data) % align != 0)
      return absl::StrCat("not aligned to ", align, " bytes");
    return "";
  }

  const CompiledProgram& program_;
  const Rank& rank_;
  std::map<uintptr_t, std::pair<int64_t, std::string>> used_;  // by address: bytes, tensor
  std::map<std::string, std::string> copied_;
};

namespace {

/// "g, p: not memory of Session::Allocate, copied at every step (peers reach it)", per reason.
void WarnOfCopies(SessionState& session, const std::map<std::string, std::string>& copied) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, why] : copied) {
    if (!why.empty()) names[why].push_back(name);
  }
  for (const auto& [why, of] : names) {
    session.Warn(absl::StrCat(absl::StrJoin(of, ", "),
                              ": not memory of Session::Allocate, copied at every step (", why,
                              ")"));
  }
}

/// Collective. Memory for each buffer with one element that users set and no peer reads, on all
/// ranks or on none; null for others.
absl::StatusOr<std::vector<std::shared_ptr<Memory>>> ScalarsFor(
    Rank& rank, const CompiledProgram& program, const std::vector<Backing>& backing) {
  const Plan& plan = program.lowered->plan;
  std::vector<std::shared_ptr<Memory>> scalars(plan.buffers.size());
  absl::Status mine;
  for (const PlacedTensor& tensor : program.tensors) {
    const bool is_scalar = tensor.role == BufferRole::kInput && tensor.type.shape.empty();
    if (!is_scalar || plan.buffers[tensor.buffer].symmetric || backing[tensor.buffer].in_place)
      continue;
    absl::StatusOr<std::unique_ptr<Memory>> words =
        rank.AllocateWords(BytesOf(plan.buffers[tensor.buffer]));
    mine.Update(words.status());
    if (words.ok()) scalars[tensor.buffer] = *std::move(words);
  }
  RETURN_IF_ERROR(rank.exchange().Agree(mine));
  return scalars;
}

/// Collective. Sets Backing::memory of foreign tensors that are used in place. `copied` has the
/// tensors that are copied, by name, with the reason; those whose memory peers cannot map are
/// added.
absl::Status AdoptAll(const CompiledProgram& program, std::map<std::string, std::string>& copied,
                      std::vector<Backing>& backing) {
  Rank& rank = program.session->rank;
  for (size_t i = 0; i < backing.size(); ++i) {
    Backing& b = backing[i];
    if (!b.in_place || b.memory != nullptr) continue;
    const std::string& name = b.binding->name;
    b.in_place = !copied.contains(name);
    if (!b.in_place) continue;
    const Buffer& buffer = program.lowered->plan.buffers[i];
    absl::StatusOr<std::unique_ptr<Memory>> memory =
        rank.Adopt(b.binding->foreign.data, BytesOn(rank, buffer), buffer.symmetric);
    const absl::Status& status = memory.status();
    if (absl::IsAborted(status) || absl::IsDeadlineExceeded(status) || absl::IsDataLoss(status))
      return WithContext(status, absl::StrCat("Bind ", name));
    b.in_place = status.ok();
    if (b.in_place) {
      b.memory = *std::move(memory);
    } else {
      copied.emplace(name, status.message());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Backing>> AgreeOnBackings(const CompiledProgram& program,
                                                     absl::Span<const Binding> bindings) {
  BindingMatcher matcher(program);
  absl::StatusOr<std::vector<Backing>> mine = matcher.Match(bindings);
  Packer message;
  PackStatus(message, mine.status());
  std::string buffers;
  std::vector<std::string> shared;  // the caller's memory that peers are to reach, by name
  for (size_t i = 0; mine.ok() && i < mine->size(); ++i) {
    const Backing& b = (*mine)[i];
    if (b.serial > 0) absl::StrAppend(&buffers, " ", b.binding->name, "=#", b.serial);
    if (b.in_place && b.serial == 0 && program.lowered->plan.buffers[i].symmetric)
      shared.push_back(b.binding->name);
  }
  message.Text(program.sizes).Text(buffers).Int(static_cast<int64_t>(matcher.copied().size()));
  for (const auto& [name, why] : matcher.copied()) message.Text(name).Text(why);
  message.Int(static_cast<int64_t>(shared.size()));
  for (const std::string& name : shared) message.Text(name);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   program.session->rank.exchange().AllGather(message.bytes()));
  RETURN_IF_ERROR(mine.status());
  std::string first;
  std::map<std::string, std::string> copied;
  std::map<std::string, size_t> sharers;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    RETURN_IF_ERROR(WithContext(UnpackStatus(in), absl::StrCat("rank ", r)));
    const std::string sizes = in.Text(), theirs = in.Text();
    if (sizes != program.sizes)
      return absl::InvalidArgumentError(
          absl::StrCat("Bind: want a program of the same sizes on all ranks; rank ", program.rank,
                       " has ", program.sizes, ", rank ", r, " has ", sizes));
    for (int64_t left = in.Int(); left > 0; --left) {
      std::string& why = copied[in.Text()];
      const std::string theirs_why = in.Text();
      if (why.empty()) why = theirs_why;
    }
    for (int64_t left = in.Int(); left > 0; --left) ++sharers[in.Text()];
    RETURN_IF_ERROR(in.Done());
    if (r == 0) first = theirs;
    if (theirs == first) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Bind: want the same tensors in buffers that the ranks allocated together; rank 0 has",
        first.empty() ? " none" : first, ", rank ", r, " has", theirs.empty() ? " none" : theirs));
  }
  for (const auto& [name, ranks] : sharers) {
    if (ranks < all.size())
      copied.emplace(name, "peers reach it, and not all ranks bind it to memory of a GPU");
  }
  RETURN_IF_ERROR(AdoptAll(program, copied, *mine));
  WarnOfCopies(*program.session, copied);
  return mine;
}

absl::StatusOr<BoundMemory> MemoryFor(const CompiledProgram& program,
                                      const std::vector<Backing>& backing,
                                      const SharedNeeds& others) {
  const Plan& plan = program.lowered->plan;
  Rank& rank = program.session->rank;
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Memory>> scalars,
                   ScalarsFor(rank, program, backing));
  BoundMemory bound;
  std::vector<std::shared_ptr<Memory>>& memory = bound.buffers;
  std::vector<MemoryNeed> needs;
  std::vector<size_t> missing;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    memory.push_back(backing[i].in_place ? backing[i].memory : scalars[i]);
    const BufferRole role = plan.buffers[i].role;
    if (memory[i] != nullptr || role == BufferRole::kSync || role == BufferRole::kTemp) continue;
    needs.push_back(NeedOf(plan.buffers[i]));
    GrowNeed(needs.back(), others.tensors[i]);
    missing.push_back(i);
  }
  std::array<MemoryNeed, 2> areas = AreasOf(plan);
  for (size_t i = 0; i < areas.size(); ++i) {
    GrowNeed(areas[i], others.areas[i]);
    if (areas[i].bytes > 0) needs.push_back(areas[i]);
  }
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Memory>> parts, AllocateTogether(rank, needs));
  for (size_t k = 0; k < missing.size(); ++k) memory[missing[k]] = std::move(parts[k]);
  for (size_t k = missing.size(); k < parts.size(); ++k)
    bound.areas[needs[k].symmetric] = std::move(parts[k]);
  const std::vector<std::shared_ptr<Memory>> temporaries = TemporariesIn(rank, plan, bound.areas);
  for (size_t i = 0; i < memory.size(); ++i) {
    if (temporaries[i] != nullptr) memory[i] = temporaries[i];
  }
  return bound;
}

}  // namespace coconet
