#include "runtime/processes/process_world.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/control/called_exchange.h"
#include "runtime/node/cpu.h"
#include "runtime/node/wait.h"
#include "runtime/processes/collectives/libraries.h"
#include "runtime/processes/process_sharing.h"

namespace coconet {
namespace {

constexpr int64_t kPage = 4096;

int64_t RoundUp(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessWorld>> ProcessWorld::Join(
    std::unique_ptr<Transport> transport, const WorldRequest& request, const MakeRank& make) {
  std::unique_ptr<ProcessWorld> world(new ProcessWorld(std::move(transport)));
  if (absl::Status met = world->Meet(request, make); !met.ok()) {
    world->Leave(met);
    return met;
  }
  return world;
}

absl::Status ProcessWorld::Meet(const WorldRequest& request, const MakeRank& make) {
  const int rank = transport_->rank(), size = transport_->size();
  std::unique_ptr<Exchange> exchange = transport_->Meet(TermsFor(size, 1, request.timeout_s));
  ASSIGN_OR_RETURN(const std::string machine, transport_->Machine());
  ASSIGN_OR_RETURN(const Place place, FindPlace(machine, *exchange, rank));
  transport_->SetMachines(place.machines);
  ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(request.shape, place.machines));
  if (place.in_one_process && transport_->AdmitsThreadWorld()) {
    ASSIGN_OR_RETURN(threads_,
                     ThreadWorld::Meet(place.meeting, mesh, place.cores, request.timeout_s));
    board_ = threads_->board();
    if (request.pin) Pin(place);
    ASSIGN_OR_RETURN(endpoint_, make(threads_->PlaceOf(rank, request.pin)));
    return absl::OkStatus();
  }
  const WaitTerms terms =
      TermsFor(place.local_size, static_cast<int>(place.cores.size()), request.timeout_s);

  // Memory that all of a board group share: the board, which is in that of its lowest rank, then
  // what the transport wants, then the libraries' staging buffers, which their owners populate when
  // they first use them.
  const Members board_group = transport_->BoardGroup(mesh), group = SharingMemory(mesh, rank);
  const int64_t transport_begin = RoundUp(Board::Bytes(size), kPage),
                present = transport_begin + RoundUp(transport_->SharedBytes(mesh), kPage),
                staging_begin = RoundUp(present, kHugePage);
  ASSIGN_OR_RETURN(regions_, ProcessSharing(*exchange, rank, board_group)
                                 .Share(staging_begin + StagingBytes(mesh), present));
  const Board heard(regions_[board_group.first]->base(), size);
  board_ = heard;
  watch_.emplace(heard, place.pids);
  ASSIGN_OR_RETURN(Transport::Settled settled,
                   transport_->Settle(std::move(exchange), {.mesh = mesh,
                                                            .terms = terms,
                                                            .timeout_s = request.timeout_s,
                                                            .board = heard,
                                                            .regions = regions_,
                                                            .offset = transport_begin}));
  board_ = settled.board;
  settled.exchange = std::make_unique<CalledExchange>(std::move(settled.exchange), rank, *board_);
  auto sharing = std::make_unique<ProcessSharing>(*settled.exchange, rank, group);
  std::array<Libraries, kLanes> libraries =
      MakeLibraries({*transport_, mesh, rank, terms, *board_, regions_, staging_begin});
  if (request.pin) Pin(place);
  ASSIGN_OR_RETURN(endpoint_, make({.rank = rank,
                                    .mesh = mesh,
                                    .machine_rank = place.local_rank,
                                    .machine_ranks = place.local_size,
                                    .cores = place.cores,
                                    .pin = request.pin,
                                    .timeout_s = request.timeout_s,
                                    .board = *board_,
                                    .exchange = std::move(settled.exchange),
                                    .libraries = std::move(libraries),
                                    .library = transport_->library(),
                                    .library_threads = transport_->threads(),
                                    .sharing = std::move(sharing)}));
  return absl::OkStatus();
}

void ProcessWorld::Pin(const Place& place) {
  cores_before_ = AllowedCores();
  pinned_ = gettid();
  RunOn({place.core});
}

void ProcessWorld::Leave(const absl::Status& why) {
  failed_ = true;
  if (board_.has_value()) board_->Leave(transport_->rank(), why);
}

ProcessWorld::~ProcessWorld() {
  endpoint_.reset();  // may wait for peers
  if (!cores_before_.empty() && gettid() == pinned_) RunOn(cores_before_);
  if (!failed_ && board_.has_value()) board_->Finish(transport_->rank());
  watch_.reset();
  transport_->End(failed_);
}

}  // namespace coconet
