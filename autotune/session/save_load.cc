#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/session/bound_rep.h"
#include "autotune/session/checkpoint.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The states of a program as a checkpoint keeps them; `places` are theirs.
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

absl::Status BoundProgram::Save(const std::string& path) const {
  RETURN_IF_ERROR(rep_->session().poison);
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
  RETURN_IF_ERROR(rep_->session().poison);
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
    const int64_t stored = rep_->compiled->lowered->plan.buffers[tensor.buffer]
                               .elements;  // padding included, which stays
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
