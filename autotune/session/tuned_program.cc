#include "autotune/session/tuned_program.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/arena.h"
#include "autotune/session/explanation.h"
#include "autotune/session/session_state.h"
#include "autotune/session/step_trace.h"
#include "autotune/store/wire.h"
#include "coconet/base/env.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// What backs a buffer of the plan: the caller's binding, or, with neither, memory of the Session.
struct Backing {
  const Binding* binding = nullptr;
  std::shared_ptr<Memory> memory;  // of a bound DeviceBuffer
  int64_t serial = 0;              // its number; 0 without
};

absl::Status BadBinding(const PlacedTensor& tensor, absl::string_view want,
                        absl::string_view have) {
  return absl::InvalidArgumentError(absl::StrCat("Bind ", tensor.name, " (", Text(tensor.type),
                                                 "): want ", want, ", have ", have));
}

absl::Status CheckBinding(const CompiledProgram& program, const PlacedTensor& tensor,
                          const Binding& b) {
  const Rank& rank = program.session->rank;
  for (const Node& node : program.program.nodes) {
    const auto* state = std::get_if<State>(&node.op);
    if (state == nullptr || state->name != tensor.name ||
        state->type.layout.kind != Layout::Kind::kAuto)
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Bind ", tensor.name,
                     ": a state of layout auto is kept by the Session, which may "
                     "slice it; use Read and Write, or declare a layout"));
  }
  if (b.element_bytes != SizeOf(tensor.type.dtype)) {
    return BadBinding(tensor, absl::StrCat("elements of ", SizeOf(tensor.type.dtype), " bytes"),
                      absl::StrCat(b.element_bytes));
  }
  // Host memory of a Sliced tensor holds this rank's elements; a DeviceBuffer is named by the
  // global size.
  const bool part = b.buffer == nullptr && tensor.type.layout.sliced();
  const int64_t want = part ? PartOf(tensor.type, rank.stage_size(), rank.stage_rank()).elements()
                            : NumElements(tensor.type.shape);
  if (b.elements != want)
    return BadBinding(tensor, absl::StrCat(want, " elements"), absl::StrCat(b.elements));
  if (b.buffer == nullptr) return absl::OkStatus();
  if (b.buffer->dtype() != tensor.type.dtype)
    return BadBinding(tensor, Name(tensor.type.dtype), Name(b.buffer->dtype()));
  if (b.buffer->data() == nullptr)
    return BadBinding(tensor, "a buffer of Allocate", "an empty one");
  return absl::OkStatus();
}

/// The binding of each tensor, by buffer, checked as far as one rank can.
absl::StatusOr<std::vector<Backing>> MatchBindings(const CompiledProgram& program,
                                                   absl::Span<const Binding> bindings) {
  std::vector<Backing> backing(program.lowered->plan.buffers.size());
  std::set<const void*> used;
  for (const Binding& b : bindings) {
    ASSIGN_OR_RETURN(const PlacedTensor* tensor, FindTensor(program, "Bind", b.name));
    RETURN_IF_ERROR(CheckBinding(program, *tensor, b));
    if (backing[tensor->buffer].binding != nullptr)
      return absl::InvalidArgumentError(absl::StrCat("Bind ", b.name, ": bound twice"));
    const void* memory = b.buffer != nullptr ? b.buffer->data() : b.host;
    if (b.elements > 0 && memory == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("Bind ", b.name, ": want memory, have null"));
    if (b.elements > 0 && !used.insert(memory).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Bind ", b.name, ": its memory is bound to another tensor already"));
    }
    backing[tensor->buffer].binding = &b;
  }
  return backing;
}

/// Collective. Ranks must bind alike, since memory that peers reach is allocated and registered
/// together.
absl::Status AgreeOnBackings(const CompiledProgram& program,
                             const absl::StatusOr<std::vector<Backing>>& mine) {
  Packer message;
  PackStatus(message, mine.status());
  std::string devices, copied;
  for (size_t i = 0; mine.ok() && i < mine->size(); ++i) {
    const Backing& b = (*mine)[i];
    if (b.memory != nullptr) absl::StrAppend(&devices, " ", b.binding->name, "=#", b.serial);
    if (b.binding != nullptr && b.memory == nullptr)
      absl::StrAppend(&copied, copied.empty() ? "" : ", ", b.binding->name);
  }
  message.Text(devices).Text(copied);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   program.session->rank.exchange().AllGather(message.bytes()));
  RETURN_IF_ERROR(mine.status());
  std::string first;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    RETURN_IF_ERROR(WithContext(UnpackStatus(in), absl::StrCat("rank ", r)));
    const std::string theirs = in.Text();
    if (const std::string names = in.Text(); !names.empty()) {
      program.session->Warn(
          absl::StrCat(names, ": not memory of Session::Allocate, copied at every step"));
    }
    if (r == 0) first = theirs;
    if (theirs == first) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Bind: want the same tensors in buffers that the ranks allocated together; rank 0 has",
        first.empty() ? " none" : first, ", rank ", r, " has", theirs.empty() ? " none" : theirs));
  }
  return absl::OkStatus();
}

/// Collective. Of each buffer with one element that users set and no peer reads, on all ranks or on
/// none; null for others.
absl::StatusOr<std::vector<std::shared_ptr<Memory>>> ScalarsFor(
    Rank& rank, const CompiledProgram& program, const std::vector<Backing>& backing) {
  const Plan& plan = program.lowered->plan;
  std::vector<std::shared_ptr<Memory>> scalars(plan.buffers.size());
  absl::Status mine;
  for (const PlacedTensor& tensor : program.tensors) {
    const bool is_scalar = tensor.role == BufferRole::kInput && tensor.type.shape.empty();
    if (!is_scalar || plan.buffers[tensor.buffer].symmetric ||
        backing[tensor.buffer].memory != nullptr)
      continue;
    absl::StatusOr<std::unique_ptr<Memory>> words =
        rank.AllocateWords(BytesOf(plan.buffers[tensor.buffer]));
    mine.Update(words.status());
    if (words.ok()) scalars[tensor.buffer] = *std::move(words);
  }
  RETURN_IF_ERROR(rank.exchange().Agree(mine));
  return scalars;
}

/// Collective. What is bound, and memory of the Session for everything else; by buffer.
absl::StatusOr<std::vector<std::shared_ptr<Memory>>> MemoryFor(
    Rank& rank, const CompiledProgram& program, const std::vector<Backing>& backing) {
  const Plan& plan = program.lowered->plan;
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Memory>> scalars,
                   ScalarsFor(rank, program, backing));
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<MemoryNeed> needs;
  std::vector<size_t> missing;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    memory.push_back(backing[i].memory != nullptr ? backing[i].memory : scalars[i]);
    const BufferRole role = plan.buffers[i].role;
    if (memory[i] != nullptr || role == BufferRole::kSync || role == BufferRole::kTemp) continue;
    needs.push_back(NeedOf(plan.buffers[i]));
    missing.push_back(i);
  }
  for (const MemoryNeed& area : AreasOf(plan)) {
    if (area.bytes > 0) needs.push_back(area);
  }
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Memory>> parts, AllocateTogether(rank, needs));
  for (size_t k = 0; k < missing.size(); ++k) memory[missing[k]] = std::move(parts[k]);
  std::array<std::shared_ptr<Memory>, 2> areas;
  for (size_t k = missing.size(); k < parts.size(); ++k) areas[needs[k].symmetric] = parts[k];
  const std::vector<std::shared_ptr<Memory>> temporaries = TemporariesIn(rank, plan, areas);
  for (size_t i = 0; i < memory.size(); ++i) {
    if (temporaries[i] != nullptr) memory[i] = temporaries[i];
  }
  return memory;
}

}  // namespace

absl::StatusOr<const PlacedTensor*> FindTensor(const CompiledProgram& program,
                                               absl::string_view operation,
                                               absl::string_view name) {
  for (const PlacedTensor& tensor : program.tensors) {
    if (tensor.name == name) return &tensor;
  }
  std::vector<std::string> names;
  for (const PlacedTensor& tensor : program.tensors) names.push_back(tensor.name);
  return absl::NotFoundError(absl::StrCat(operation, " ", name, ": no such tensor",
                                          DidYouMean(name, names), "; there are ",
                                          absl::StrJoin(names, ", ")));
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::Make(SessionState& session, DType dtype,
                                                int64_t elements, int64_t bytes) {
  const MemoryNeed need{bytes, true};
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Memory>> memory,
                   AllocateTogether(session.rank, {&need, 1}));
  DeviceBuffer buffer;
  buffer.memory_ = memory[0];
  buffer.dtype_ = dtype;
  buffer.elements_ = elements;
  buffer.serial_ = ++session.allocations;
  return buffer;
}

const Graph& TunedProgram::program() const { return compiled_->program; }
PlanMemory TunedProgram::memory() const { return MemoryOf(compiled_->lowered->plan); }
const std::vector<VariantResult>& TunedProgram::variants() const { return compiled_->variants; }

std::string TunedProgram::Explain() const {
  SessionState& session = *compiled_->session;
  const absl::string_view library = session.rank.library().name();
  const std::vector<VariantResult>& known = compiled_->variants;
  if (!known.empty()) return ExplainRecord(*record_, known, library);
  if (!compiled_->missed.empty())
    return absl::StrCat(ExplainRecord(*record_, {}, library), compiled_->missed, "\n");
  if (session.cache == nullptr) {
    return absl::StrCat(ExplainRecord(*record_, {}, library),
                        "the other schedules are in the tuning cache, which rank 0 has while its "
                        "Session lives\n");
  }
  return ExplainRecord(*record_, session.cache->Variants(record_->key), library);
}

absl::StatusOr<DeviceBuffer> TunedProgram::Allocate(absl::string_view name) const {
  SessionState& session = *compiled_->session;
  RETURN_IF_ERROR(session.poison);
  const absl::StatusOr<const PlacedTensor*> found = FindTensor(*compiled_, "Allocate", name);
  RETURN_IF_ERROR(session.rank.exchange().Agree(found.status()));
  const PlacedTensor& tensor = **found;
  return DeviceBuffer::Make(session, tensor.type.dtype, NumElements(tensor.type.shape),
                            BytesOf(compiled_->lowered->plan.buffers[tensor.buffer]));
}

absl::StatusOr<BoundProgram> TunedProgram::Bind(absl::Span<const Binding> bindings) const {
  SessionState& session = *compiled_->session;
  RETURN_IF_ERROR(session.poison);
  const Plan& plan = compiled_->lowered->plan;
  absl::StatusOr<std::vector<Backing>> backing = MatchBindings(*compiled_, bindings);
  for (size_t i = 0; backing.ok() && i < plan.buffers.size(); ++i) {
    Backing& b = (*backing)[i];
    if (b.binding == nullptr || b.binding->buffer == nullptr) continue;
    b.memory = b.binding->buffer->memory_;
    b.serial = b.binding->buffer->serial_;
    if (b.memory->bytes() >= BytesOn(session.rank, plan.buffers[i])) continue;
    backing = absl::InvalidArgumentError(
        absl::StrCat("Bind ", b.binding->name, ": want a buffer of ", BytesOf(plan.buffers[i]),
                     " bytes with padding, have ", b.memory->bytes(),
                     "; allocate it with TunedProgram::Allocate"));
  }
  RETURN_IF_ERROR(AgreeOnBackings(*compiled_, backing));

  auto rep = std::make_unique<BoundRep>();
  rep->compiled = compiled_;
  ASSIGN_OR_RETURN(rep->memory, MemoryFor(session.rank, *compiled_, *backing));
  for (const PlacedTensor& tensor : compiled_->tensors) {
    const Backing& b = (*backing)[tensor.buffer];
    if (b.binding == nullptr || b.memory != nullptr || b.binding->elements == 0) continue;
    if (tensor.role != BufferRole::kOutput) rep->copies_in.push_back({&tensor, b.binding->host});
    if (tensor.role == BufferRole::kOutput || tensor.updated)
      rep->copies_out.push_back({&tensor, b.binding->host});
  }
  for (const PlacedTensor& tensor : compiled_->tensors) {
    const bool set_by_users = tensor.role == BufferRole::kInput && tensor.type.shape.empty() &&
                              (*backing)[tensor.buffer].binding == nullptr;
    if (!set_by_users || rep->memory[tensor.buffer]->space() == nullptr) continue;
    auto& word = rep->scalars[&tensor] = std::make_unique<int64_t>(0);
    rep->copies_in.push_back({&tensor, word.get()});
  }
  rep->compare_replicas = GetEnv().debug >= 2;
  if (rep->compare_replicas) {
    ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(compiled_->program));
    ASSIGN_OR_RETURN(IndexCheck check,
                     IndexCheck::Create(program, compiled_->tensors, session.rank.mesh()));
    rep->index_check = std::make_unique<const IndexCheck>(std::move(check));
  }
  rep->plain = rep->copies_in.empty() && rep->copies_out.empty() && !rep->compare_replicas;
  ASSIGN_OR_RETURN(rep->plan, session.rank.Bind(plan, *compiled_->module, Pointers(rep->memory),
                                                GetEnv().timeout_s));
  if (session.trace != nullptr && !session.trace->full())
    rep->plan = TraceRuns(session.trace, compiled_->program.name, plan, std::move(rep->plan));
  return BoundProgram(std::move(rep));
}

}  // namespace coconet
