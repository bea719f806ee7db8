#include "autotune/session/tuned_program.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/arena.h"
#include "autotune/session/backing.h"
#include "autotune/session/explanation.h"
#include "autotune/session/online/online_steps.h"
#include "autotune/session/session_state.h"
#include "autotune/session/step_trace.h"
#include "coconet/base/env.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
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

bool MeetsPeers(const Plan& plan) {
  return absl::c_any_of(plan.buffers, [](const Buffer& buffer) { return buffer.symmetric; }) ||
         absl::c_any_of(plan.steps, [](const Step& step) {
           return std::holds_alternative<CollectiveStep>(step);
         });
}

const Graph& TunedProgram::program() const { return compiled_->program; }
PlanMemory TunedProgram::memory() const { return MemoryOf(compiled_->lowered->plan); }
const std::vector<VariantResult>& TunedProgram::variants() const { return compiled_->variants; }

const PhaseSeconds& TunedProgram::seconds() const { return compiled_->seconds; }

std::string TunedProgram::Explain() const {
  SessionState& session = *compiled_->session;
  const GatedCall call(session.gate);
  const absl::string_view library = call.entered() ? session.rank.library().name() : "";
  const std::vector<VariantResult>& known = compiled_->variants;
  if (!known.empty()) return ExplainRecord(*record_, known, library);
  if (!compiled_->missed.empty())
    return absl::StrCat(ExplainRecord(*record_, {}, library), compiled_->missed, "\n");
  if (!call.entered() || session.cache == nullptr) {
    return absl::StrCat(ExplainRecord(*record_, {}, library),
                        "the other schedules are in the tuning cache, which rank 0 has while its "
                        "Session lives\n");
  }
  return ExplainRecord(*record_, session.cache->Variants(record_->key), library);
}

std::vector<TensorInfo> TunedProgram::tensors() const {
  const Mesh& mesh = compiled_->mesh;
  const absl::StatusOr<TypedGraph> program = TypedGraph::Of(compiled_->program);
  CC_CHECK(program.ok());
  std::map<std::string, TensorType> declared;
  for (NodeId id = 0; id < program->size(); ++id) {
    if (const auto* input = As<Input>(program->graph(), id)) declared[input->name] = input->type;
    if (const auto* state = As<State>(program->graph(), id)) declared[state->name] = state->type;
    if (const auto* output = As<Output>(program->graph(), id))
      declared[output->name] = program->type(id);
  }
  std::vector<TensorInfo> infos;
  for (const PlacedTensor& tensor : compiled_->tensors) {
    const Part part = PartOf(tensor.type, mesh.stage_size(), compiled_->rank % mesh.stage_size());
    infos.push_back({.name = tensor.name,
                     .role = tensor.role,
                     .type = declared.at(tensor.name),
                     .first = part.runs > 1 ? -1 : part.begin,
                     .count = part.elements()});
  }
  return infos;
}

absl::StatusOr<DeviceBuffer> TunedProgram::Allocate(absl::string_view name) const {
  SessionState& session = *compiled_->session;
  ENTER_JOINT_CALL(session, "Allocate", "Allocate");
  session.ReleaseDiscarded();
  const absl::StatusOr<const PlacedTensor*> found = FindTensor(*compiled_, "Allocate", name);
  RETURN_IF_ERROR(session.rank.exchange().Agree(found.status()));
  const PlacedTensor& tensor = **found;
  const Part part = PartOf(tensor.type, session.rank.stage_size(), session.rank.stage_rank());
  return session.Allocate(tensor.type.dtype, part,
                          BytesOf(compiled_->lowered->plan.buffers[tensor.buffer]));
}

absl::StatusOr<BoundProgram> TunedProgram::Bind(absl::Span<const Binding> bindings) const {
  SessionState& session = *compiled_->session;
  ENTER_JOINT_CALL(session, "Bind", absl::StrCat("Bind of ", NameForMessages(compiled_->program)));
  session.ReleaseDiscarded();
  ASSIGN_OR_RETURN(const std::vector<Backing> backing, AgreeOnBackings(*compiled_, bindings));

  auto rep = std::make_unique<BoundRep>(compiled_);
  ASSIGN_OR_RETURN(BoundMemory memory,
                   MemoryFor(*compiled_, backing, NeedsOfCandidates(*compiled_)));
  rep->memory = memory.buffers;
  for (const PlacedTensor& tensor : compiled_->tensors) {
    const Backing& b = backing[tensor.buffer];
    if (b.binding == nullptr || b.in_place) continue;
    const ForeignTensor& foreign = b.binding->foreign;
    HostCopy copy{.tensor = &tensor, .host = foreign.data};
    if (!foreign.row_major()) {
      copy.strided = foreign;
      copy.strided->element_bytes = SizeOf(tensor.type.dtype);
      copy.packed.reset(new char[ElementsOf(foreign.shape) * copy.strided->element_bytes]());
      copy.host = copy.packed.get();
    }
    if (tensor.role != BufferRole::kOutput) rep->copies_in.push_back(copy);
    if (tensor.role == BufferRole::kOutput || tensor.updated) rep->copies_out.push_back(copy);
  }
  for (const PlacedTensor& tensor : compiled_->tensors) {
    const bool set_by_users = tensor.role == BufferRole::kInput && tensor.type.shape.empty() &&
                              backing[tensor.buffer].binding == nullptr;
    if (!set_by_users || rep->memory[tensor.buffer]->space() == nullptr) continue;
    auto& word = rep->scalars[&tensor] = std::make_unique<int64_t>(0);
    rep->copies_in.push_back({.tensor = &tensor, .host = word.get()});
  }
  rep->compare_replicas = GetEnv().debug >= 2;
  if (rep->compare_replicas) {
    ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(compiled_->program));
    ASSIGN_OR_RETURN(IndexCheck check,
                     IndexCheck::Create(program, compiled_->tensors, session.rank.mesh()));
    rep->index_check = std::make_unique<const IndexCheck>(std::move(check));
  }
  rep->plain = rep->copies_in.empty() && rep->copies_out.empty() && !rep->compare_replicas;
  ASSIGN_OR_RETURN(rep->plan, session.rank.Bind(compiled_->lowered->plan, *compiled_->module,
                                                Pointers(rep->memory), /*timeout_s=*/0));
  if (session.trace != nullptr && !session.trace->full()) {
    rep->plan = TraceRuns(session.trace, compiled_->program.name, compiled_->lowered->plan,
                          std::move(rep->plan));
  }
  if (compiled_->exploration != nullptr) {
    ASSIGN_OR_RETURN(rep->online, OnlineSteps::Bind(compiled_, memory));
  }
  rep->name = absl::StrCat(NameForMessages(compiled_->program), " (binding ", ++session.binds, ")");
  const bool meets = rep->compare_replicas || MeetsPeers(compiled_->lowered->plan) ||
                     (rep->online != nullptr && rep->online->meets());
  if (session.calls != nullptr && meets)
    rep->call = session.calls->Name(absl::StrCat("Run of ", rep->name));
  session.bindings.push_back(rep.get());
  return BoundProgram(std::move(rep));
}

}  // namespace coconet
