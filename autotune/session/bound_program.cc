#include "autotune/session/bound_program.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/session/checkpoint.h"
#include "autotune/session/online/online_steps.h"
#include "autotune/session/session.h"
#include "autotune/session/session_state.h"
#include "autotune/session/step_trace.h"
#include "autotune/store/wire.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kPiece = 1 << 18;  // elements of each rank that one exchange gathers

int64_t ElementBytes(const PlacedTensor& tensor) {
  return static_cast<int64_t>(SizeOf(tensor.type.dtype));
}

/// Calls move(offset in storage, packed, bytes) for each run of a part; `packed` has no padding.
template <class Move>
absl::Status ForEachRun(const PlacedTensor& tensor, const Part& part, char* packed, Move move) {
  const int64_t size = ElementBytes(tensor);
  for (int64_t i = 0; i < part.runs; ++i) {
    RETURN_IF_ERROR(
        move(i * part.storage_stride * size, packed + i * part.run * size, part.run * size));
  }
  return absl::OkStatus();
}

/// Receives elements [begin, begin + count) of a global tensor.
using SliceSink = std::function<absl::Status(int64_t begin, int64_t count, const char* elements)>;

/// Passes elements [begin, begin + count) of the storage of a rank with part `from` to the sink.
absl::Status ShowPiece(const Part& from, int64_t size, int64_t begin, int64_t count,
                       const char* piece, const SliceSink& sink) {
  const int64_t stride = std::max<int64_t>(from.storage_stride, 1);
  for (int64_t i = begin / stride; i < from.runs && i * stride < begin + count; ++i) {
    const int64_t first = std::max(i * stride, begin),
                  last = std::min(i * stride + from.run, begin + count);
    if (first >= last) continue;
    const int64_t global = from.begin + i * from.global_stride + (first - i * stride);
    RETURN_IF_ERROR(sink(global, last - first, piece + (first - begin) * size));
  }
  return absl::OkStatus();
}

/// Collective. Passes all elements of a Sliced tensor to every rank's `sink`, piece by piece, so
/// that no rank needs memory for the whole tensor.
absl::Status GatherSlices(Rank& rank, const TensorType& type, const Memory& storage,
                          const SliceSink& sink) {
  const auto size = static_cast<int64_t>(SizeOf(type.dtype));
  const int64_t stored = SlicingOf(type, rank.stage_size()).slice_elements();
  const int64_t piece = std::min(kPiece, stored);
  // A rank without a part may have no memory for one.
  const bool has_part = PartOf(type, rank.stage_size(), rank.stage_rank()).elements() > 0;
  std::vector<char> mine(piece * size), all(piece * size * rank.stage_size());
  for (int64_t begin = 0; begin < stored; begin += piece) {
    const int64_t count = std::min(piece, stored - begin);
    RETURN_IF_ERROR(rank.exchange().Agree(
        has_part ? storage.Read(begin * size, count * size, mine.data()) : absl::OkStatus()));
    RETURN_IF_ERROR(rank.library().AllGather(mine.data(), all.data(), count, type.dtype, count));
    for (int r = 0; r < rank.stage_size(); ++r) {
      RETURN_IF_ERROR(ShowPiece(PartOf(type, rank.stage_size(), r), size, begin, count,
                                all.data() + r * count * size, sink));
    }
  }
  return absl::OkStatus();
}

/// Whether `memory` can take, or give, all elements of a tensor.
absl::Status CheckWhole(absl::string_view operation,
                        const absl::StatusOr<const PlacedTensor*>& found,
                        const ForeignTensor& memory) {
  RETURN_IF_ERROR(found.status());
  const PlacedTensor& tensor = **found;
  WantedTensor wanted{.operation = operation,
                      .name = tensor.name,
                      .type = Text(tensor.type),
                      .dtype = tensor.type.dtype,
                      .elements = NumElements(tensor.type.shape),
                      .shape = std::vector<int64_t>()};
  for (const Dim& dim : tensor.type.shape) wanted.shape->push_back(dim.size);
  RETURN_IF_ERROR(wanted.Check(memory));
  return wanted.CheckRowMajor(memory);
}

/// Collective. As Exchange::Agree; also InvalidArgument where ranks name different tensors.
absl::Status AgreeOnTensor(Rank& rank, absl::string_view operation, absl::string_view name,
                           const absl::Status& mine) {
  Packer message;
  PackStatus(message, mine);
  message.Text(std::string(name));
  ASSIGN_OR_RETURN(const std::vector<std::string> all, rank.exchange().AllGather(message.bytes()));
  std::vector<std::string> names;
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    const absl::Status theirs = UnpackStatus(in);
    names.push_back(in.Text());
    RETURN_IF_ERROR(in.Done());
    RETURN_IF_ERROR(WithContext(theirs, absl::StrCat("rank ", r)));
    if (names[r] != names[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat(operation, ": want the same tensor on all ranks; rank ", r, " names ",
                       names[r], ", rank 0 names ", names[0]));
    }
  }
  return absl::OkStatus();
}

/// Collective, with COCONET_DEBUG >= 2. Checks that Replicated inputs are equal on all ranks.
absl::Status CompareReplicas(const BoundRep& rep) {
  Packer message;
  std::vector<std::string> names;
  for (const PlacedTensor& tensor : rep.compiled->tensors) {
    if (tensor.role != BufferRole::kInput || tensor.type.layout.kind != Layout::Kind::kReplicated)
      continue;
    names.push_back(tensor.name);
    const size_t bytes = NumElements(tensor.type.shape) * ElementBytes(tensor);
    ASSIGN_OR_RETURN(HostView view, HostView::Of(rep.Storage(tensor), static_cast<int64_t>(bytes)));
    message.Text(Fingerprint({view.data(), bytes}));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   rep.rank().exchange().AllGather(message.bytes()));
  for (size_t r = 1; r < all.size(); ++r) {
    const size_t root = r - r % rep.rank().stage_size();
    Unpacker first(all[root]), other(all[r]);
    for (const std::string& name : names) {
      if (first.Text() == other.Text()) continue;
      return absl::InvalidArgumentError(absl::StrCat("Run: input ", name,
                                                     " is declared replicated, but ranks ", root,
                                                     " and ", r, " pass different values"));
    }
  }
  return absl::OkStatus();
}

/// Index in storage of an element that a rank holds.
int64_t StoredAt(const Part& part, int64_t global) {
  if (part.runs <= 1) return global - part.begin;
  const int64_t from = global - part.begin;
  return from / part.global_stride * part.storage_stride + from % part.global_stride;
}

/// Collective, with COCONET_DEBUG >= 2. Warns of the first index of each gather that is out of
/// range, on any rank.
absl::Status ReportIndices(const BoundRep& rep) {
  if (rep.index_check->empty()) return absl::OkStatus();
  std::map<std::string, std::pair<const PlacedTensor*, HostView>> views;
  for (const PlacedTensor& tensor : rep.compiled->tensors) {
    if (!rep.index_check->reads().contains(tensor.name)) continue;
    const Part part = rep.PartHere(tensor);
    const int64_t stored = part.elements() == 0 ? 0 : part.Stored(part.elements() - 1) + 1;
    ASSIGN_OR_RETURN(HostView view,
                     HostView::Of(rep.Storage(tensor), stored * ElementBytes(tensor)));
    views.emplace(tensor.name, std::pair(&tensor, std::move(view)));
  }
  ASSIGN_OR_RETURN(
      const std::vector<std::string> found,
      rep.index_check->Find(rep.rank().rank(), [&](const std::string& name, int, int64_t index) {
        auto& [tensor, view] = views.at(name);
        return LoadElement(tensor->type.dtype, view.data(), StoredAt(rep.PartHere(*tensor), index));
      }));
  Packer message;
  message.Int(static_cast<int64_t>(found.size()));
  for (const std::string& text : found) message.Text(text);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   rep.rank().exchange().AllGather(message.bytes()));
  std::set<std::string> known;  // replicated indices are the same on all ranks
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker in(all[r]);
    for (int64_t count = in.Int(); count > 0; --count) {
      const std::string text = in.Text();
      if (known.insert(text).second) rep.session().Warn(absl::StrCat("Run: rank ", r, ": ", text));
    }
  }
  return absl::OkStatus();
}

absl::Status RunWithCopies(const BoundRep& rep, BoundPlan& plan) {
  for (const HostCopy& copy : rep.copies_in) {
    if (copy.strided.has_value()) copy.strided->Pack(static_cast<char*>(copy.host));
    Memory& storage = rep.Storage(*copy.tensor);
    RETURN_IF_ERROR(ForEachRun(*copy.tensor, rep.PartHere(*copy.tensor),
                               static_cast<char*>(copy.host),
                               [&](int64_t at, const char* packed, int64_t bytes) {
                                 return storage.Write(at, bytes, packed);
                               }));
  }
  if (rep.compare_replicas) RETURN_IF_ERROR(CompareReplicas(rep));
  if (rep.index_check != nullptr) RETURN_IF_ERROR(ReportIndices(rep));
  // Peers write to this rank's buffers only after all ranks have copied: a step that communicates
  // waits for its peers before it stores to them.
  RETURN_IF_ERROR(plan.Run());
  for (const HostCopy& copy : rep.copies_out) {
    const Memory& storage = rep.Storage(*copy.tensor);
    RETURN_IF_ERROR(ForEachRun(
        *copy.tensor, rep.PartHere(*copy.tensor), static_cast<char*>(copy.host),
        [&](int64_t at, char* packed, int64_t bytes) { return storage.Read(at, bytes, packed); }));
    if (copy.strided.has_value()) copy.strided->Unpack(static_cast<const char*>(copy.host));
  }
  return absl::OkStatus();
}

absl::Status RunHere(BoundRep& rep) {
  return rep.Step(
      [&](BoundPlan& plan) { return rep.plain ? plan.Run() : RunWithCopies(rep, plan); });
}

absl::Status AdvanceHere(BoundRep& rep) {
  if (!rep.plain) return RunHere(rep);
  return rep.Step([](BoundPlan& plan) { return plan.Advance(); });
}

absl::Status WaitFor(const BoundRep& rep) {
  RETURN_IF_ERROR(rep.session().poison);
  return rep.session().Watched(rep.plan->Wait());
}

absl::Status CheckPlain(const BoundRep& rep, absl::string_view operation) {
  RETURN_IF_ERROR(rep.session().poison);
  if (rep.plain) return absl::OkStatus();
  std::set<std::string> names;
  for (const std::vector<HostCopy>* copies : {&rep.copies_in, &rep.copies_out}) {
    for (const HostCopy& copy : *copies) names.insert(copy.tensor->name);
  }
  if (names.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(operation, ": COCONET_DEBUG=2 compares inputs before every step; call Run"));
  return absl::FailedPreconditionError(
      absl::StrCat(operation, ": ", absl::StrJoin(names, ", "),
                   ": copied at every step, which no stream does; bind memory of ",
                   "Session::Allocate, or call Run"));
}

/// The states of a program as a checkpoint keeps them, and, in `places`, their tensors.
absl::StatusOr<std::vector<CheckpointState>> StatesOf(const CompiledProgram& program,
                                                      std::vector<const PlacedTensor*>& places) {
  std::vector<CheckpointState> states;
  for (const PlacedTensor& tensor : program.tensors) {
    if (tensor.role != BufferRole::kState) continue;
    if (tensor.type.layout.kind == Layout::Kind::kLocal) {
      return absl::FailedPreconditionError(
          absl::StrCat("state ", tensor.name,
                       " is local: each rank has values of its own, which a "
                       "checkpoint for any number of ranks cannot hold"));
    }
    places.push_back(&tensor);
    states.push_back({tensor.name, tensor.type});
  }
  return states;
}

/// With several stages each has a file of its own.
std::string FileOf(const Rank& rank, const std::string& path) {
  return rank.mesh().stages == 1 ? path : absl::StrCat(path, ".stage", rank.stage());
}

/// Collective. The first rank of a stage has a writer, others none.
absl::Status WriteStates(const BoundRep& rep, const std::vector<const PlacedTensor*>& places,
                         CheckpointWriter* writer) {
  for (size_t i = 0; i < places.size(); ++i) {
    const PlacedTensor& tensor = *places[i];
    absl::Status written;
    if (tensor.type.layout.sliced()) {
      // A full disk on rank 0 must not leave the others waiting in the middle of a gather.
      RETURN_IF_ERROR(GatherSlices(rep.rank(), tensor.type, rep.Storage(tensor),
                                   [&](int64_t begin, int64_t count, const char* piece) {
                                     if (writer != nullptr && written.ok())
                                       written = writer->Write(i, begin, count, piece);
                                     return absl::OkStatus();
                                   }));
    } else if (writer != nullptr) {
      const int64_t elements = NumElements(tensor.type.shape);
      absl::StatusOr<HostView> view = HostView::Of(
          rep.Storage(tensor), elements * static_cast<int64_t>(SizeOf(tensor.type.dtype)));
      written = view.ok() ? writer->Write(i, 0, elements, view->data()) : view.status();
    }
    RETURN_IF_ERROR(rep.rank().exchange().Agree(written));
  }
  return rep.rank().exchange().Agree(writer != nullptr ? writer->Commit() : absl::OkStatus());
}

}  // namespace

BoundProgram::BoundProgram(std::unique_ptr<BoundRep> rep) : rep_(std::move(rep)) {}
BoundProgram::BoundProgram(BoundProgram&&) = default;
BoundProgram& BoundProgram::operator=(BoundProgram&& other) {
  std::swap(rep_, other.rep_);
  return *this;
}
BoundProgram::~BoundProgram() {
  if (rep_ == nullptr) return;
  const std::shared_ptr<SessionState> session = rep_->compiled->session;
  session->Discard(std::shared_ptr<BoundRep>(std::move(rep_)));
}

absl::Status BoundProgram::Check(absl::string_view operation) const {
  return rep_->session().gate.Check(operation);
}

absl::StatusOr<const PlacedTensor*> BoundRep::Find(absl::string_view operation,
                                                   absl::string_view name) const {
  return FindTensor(*compiled, operation, name);
}

absl::StatusOr<ScalarRef> BoundProgram::Scalar(absl::string_view name) const {
  ENTER_CALL(rep_->session().gate, "Scalar");
  std::vector<std::string> names;
  for (const PlacedTensor& tensor : rep_->compiled->tensors) {
    if (tensor.role != BufferRole::kInput || !tensor.type.shape.empty()) continue;
    names.push_back(tensor.name);
    if (tensor.name != name) continue;
    for (const HostCopy& copy : rep_->copies_in) {
      if (copy.tensor == &tensor) return ScalarRef{copy.host, tensor.type.dtype};
    }
    return ScalarRef{rep_->Storage(tensor).own(), tensor.type.dtype};
  }
  return absl::NotFoundError(
      absl::StrCat("Scalar ", name, ": no such scalar", DidYouMean(name, names), "; there ",
                   names.empty() ? "are none" : "are ", absl::StrJoin(names, ", ")));
}

absl::Status BoundProgram::Run() {
  ENTER_CALL(rep_->session().gate, "Run");
  RETURN_IF_ERROR(rep_->session().poison);
  rep_->BeginStep();
  return rep_->session().Watched(RunHere(*rep_));
}

absl::Status BoundProgram::Advance() {
  ENTER_CALL(rep_->session().gate, "Advance");
  RETURN_IF_ERROR(rep_->session().poison);
  rep_->BeginStep();
  return rep_->session().Watched(AdvanceHere(*rep_));
}

bool BoundProgram::explored() const { return rep_->online != nullptr && rep_->online->explored(); }

absl::Status BoundProgram::RunSteps(int64_t steps) {
  ENTER_CALL(rep_->session().gate, "RunSteps");
  RETURN_IF_ERROR(rep_->session().poison);
  if (rep_->plain && rep_->online == nullptr &&
      (rep_->call == 0 || rep_->rank().stream() != nullptr)) {
    for (int64_t i = 0; i < steps && rep_->call != 0; ++i) rep_->BeginStep();
    return rep_->session().Watched(rep_->plan->RunSteps(steps));
  }
  for (int64_t i = 0; i < steps; ++i) {
    rep_->BeginStep();
    RETURN_IF_ERROR(rep_->session().Watched(AdvanceHere(*rep_)));
  }
  return rep_->plain ? rep_->session().Watched(rep_->plan->Wait()) : absl::OkStatus();
}

absl::Status BoundProgram::Enqueue(void* stream) {
  ENTER_CALL(rep_->session().gate, "Enqueue");
  RETURN_IF_ERROR(CheckPlain(*rep_, "Enqueue"));
  rep_->BeginStep();
  return rep_->session().Watched(rep_->plan->Enqueue(stream));
}

absl::Status BoundProgram::Wait() const {
  ENTER_CALL(rep_->session().gate, "Wait");
  return WaitFor(*rep_);
}

absl::StatusOr<CapturedSteps> BoundProgram::Capture(int64_t steps) {
  ENTER_CALL(rep_->session().gate, "Capture");
  if (steps < 1)
    return absl::InvalidArgumentError(absl::StrCat("Capture: want 1 step or more, have ", steps));
  RETURN_IF_ERROR(CheckPlain(*rep_, "Capture"));
  absl::StatusOr<std::unique_ptr<BoundPlan>> graph = rep_->plan->Capture(steps);
  RETURN_IF_ERROR(rep_->session().Watched(graph.status()));
  return CapturedSteps(rep_->compiled->session, *std::move(graph));
}

absl::StatusOr<std::vector<StepSpan>> BoundProgram::Trace() {
  ENTER_CALL(rep_->session().gate, "Trace");
  RETURN_IF_ERROR(CheckPlain(*rep_, "Trace"));
  rep_->BeginStep();
  absl::StatusOr<std::vector<StepSpan>> spans;
  RETURN_IF_ERROR(rep_->session().Watched(rep_->Step([&](BoundPlan& plan) {
    spans = plan.Trace();
    return spans.status();
  })));
  return spans;
}

absl::Status BoundProgram::RunTraced() {
  ENTER_CALL(rep_->session().gate, "RunTraced");
  SessionState& session = rep_->session();
  RETURN_IF_ERROR(session.poison);
  rep_->BeginStep();
  if (session.trace == nullptr) session.trace = std::make_shared<StepTrace>(session.rank, "");
  // With a file, the plan traces itself.
  const bool adds = session.options.trace.empty() && !session.trace->full();
  const double begin_us = session.trace->NowUs();
  std::vector<StepSpan> spans;
  bool ran = false;
  // A step that may explore is counted by Step, on all ranks.
  if (adds && rep_->plain && rep_->online == nullptr) {
    absl::StatusOr<std::vector<StepSpan>> traced = rep_->plan->Trace();
    // Refused before anything ran.
    ran = !absl::IsUnimplemented(traced.status()) && !absl::IsFailedPrecondition(traced.status());
    if (ran) RETURN_IF_ERROR(session.Watched(traced.status()));
    if (ran) spans = *std::move(traced);
  }
  if (!ran) RETURN_IF_ERROR(session.Watched(RunHere(*rep_)));
  if (adds) {
    session.trace->Add(rep_->compiled->program.name, rep_->compiled->lowered->plan, spans,
                       begin_us);
  }
  return absl::OkStatus();
}

absl::Status CapturedSteps::Run() {
  ENTER_CALL(session_->gate, "Run");
  RETURN_IF_ERROR(session_->poison);
  return session_->Watched(graph_->Run());
}
absl::Status CapturedSteps::Enqueue(void* stream) {
  ENTER_CALL(session_->gate, "Enqueue");
  RETURN_IF_ERROR(session_->poison);
  return session_->Watched(graph_->Enqueue(stream));
}
absl::Status CapturedSteps::Wait() {
  ENTER_CALL(session_->gate, "Wait");
  RETURN_IF_ERROR(session_->poison);
  return session_->Watched(graph_->Wait());
}

absl::Status BoundProgram::Read(absl::string_view name, const ForeignTensor& to) const {
  ENTER_JOINT_CALL(rep_->session(), "Read", absl::StrCat("Read of ", rep_->name));
  RETURN_IF_ERROR(WaitFor(*rep_));
  const absl::StatusOr<const PlacedTensor*> tensor = rep_->Find("Read", name);
  RETURN_IF_ERROR(AgreeOnTensor(rep_->rank(), "Read", name, CheckWhole("Read", tensor, to)));
  const int64_t size = ElementBytes(**tensor);
  if (const auto word = rep_->scalars.find(*tensor); word != rep_->scalars.end()) {
    std::memcpy(to.data, word->second.get(), size);
    return absl::OkStatus();
  }
  if (!(*tensor)->type.layout.sliced()) {
    return rep_->Storage(**tensor).Read(0, NumElements((*tensor)->type.shape) * size, to.data);
  }
  return GatherSlices(rep_->rank(), (*tensor)->type, rep_->Storage(**tensor),
                      [&](int64_t begin, int64_t count, const char* piece) {
                        std::memcpy(static_cast<char*>(to.data) + begin * size, piece,
                                    count * size);
                        return absl::OkStatus();
                      });
}

absl::Status BoundProgram::Write(absl::string_view name, const ForeignTensor& from) {
  ENTER_JOINT_CALL(rep_->session(), "Write", absl::StrCat("Write of ", rep_->name));
  RETURN_IF_ERROR(WaitFor(*rep_));
  const absl::StatusOr<const PlacedTensor*> tensor = rep_->Find("Write", name);
  RETURN_IF_ERROR(AgreeOnTensor(rep_->rank(), "Write", name, CheckWhole("Write", tensor, from)));
  const Part part = rep_->PartHere(**tensor);
  const int64_t size = ElementBytes(**tensor);
  absl::Status written;
  if (const auto word = rep_->scalars.find(*tensor); word != rep_->scalars.end())
    std::memcpy(word->second.get(), from.data, size);
  for (int64_t i = 0; i < part.runs && part.run > 0 && written.ok(); ++i) {
    written = rep_->Storage(**tensor).Write(
        i * part.storage_stride * size, part.run * size,
        static_cast<const char*>(from.data) + (part.begin + i * part.global_stride) * size);
  }
  // Until then no rank's step stores to a peer that is still writing.
  return rep_->rank().exchange().Agree(written);
}

absl::Status BoundProgram::Save(const std::string& path) const {
  ENTER_JOINT_CALL(rep_->session(), "Save", absl::StrCat("Save of ", rep_->name));
  RETURN_IF_ERROR(WaitFor(*rep_));
  std::vector<const PlacedTensor*> places;
  absl::StatusOr<std::vector<CheckpointState>> states = StatesOf(*rep_->compiled, places);
  if (!states.ok()) return WithContext(states.status(), "save");
  if (rep_->rank().stage_rank() != 0) {
    RETURN_IF_ERROR(rep_->rank().exchange().Agree(absl::OkStatus()));
    return WriteStates(*rep_, places, nullptr);
  }
  absl::StatusOr<CheckpointWriter> writer =
      CheckpointWriter::Create(FileOf(rep_->rank(), path), *std::move(states));
  RETURN_IF_ERROR(rep_->rank().exchange().Agree(writer.status()));
  return WriteStates(*rep_, places, &*writer);
}

absl::Status BoundProgram::Load(const std::string& path) {
  ENTER_JOINT_CALL(rep_->session(), "Load", absl::StrCat("Load of ", rep_->name));
  RETURN_IF_ERROR(WaitFor(*rep_));
  std::vector<const PlacedTensor*> places;
  absl::StatusOr<std::vector<CheckpointState>> states = StatesOf(*rep_->compiled, places);
  if (!states.ok()) return WithContext(states.status(), "load");
  // Nothing is changed before every rank has seen that the file is whole and fits.
  const absl::StatusOr<CheckpointReader> reader =
      CheckpointReader::Open(FileOf(rep_->rank(), path));
  absl::Status good = reader.status();
  if (good.ok()) good = reader->CheckStates(*states);
  if (good.ok() && rep_->rank().stage_rank() == 0) good = reader->CheckDigests();
  RETURN_IF_ERROR(rep_->rank().exchange().Agree(good));
  for (size_t i = 0; i < places.size() && good.ok(); ++i) {
    const PlacedTensor& tensor = *places[i];
    const Part part = rep_->PartHere(tensor);
    const auto size = static_cast<int64_t>(SizeOf(tensor.type.dtype));
    const Buffer& buffer = rep_->compiled->lowered->plan.buffers[tensor.buffer];
    const int64_t stored = buffer.On(rep_->rank().stage_rank());  // padding stays
    absl::StatusOr<HostView> view = HostView::Of(rep_->Storage(tensor), stored * size);
    good = view.status();
    for (int64_t run = 0; run < part.runs && part.run > 0 && good.ok(); ++run) {
      good = reader->Read(i, part.begin + run * part.global_stride, part.run,
                          view->data() + run * part.storage_stride * size);
    }
    if (good.ok()) good = view->Store();
  }
  const absl::Status all = rep_->rank().exchange().Agree(good);
  return all.ok() ? all : rep_->session().Poison(all);
}

}  // namespace coconet
