#include "runtime/processes/out_of_band_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/processes/out_of_band_exchange.h"
#include "runtime/processes/place.h"
#include "runtime/processes/process_sharing.h"
#include "runtime/processes/shared_traffic.h"
#include "runtime/processes/staged_exchange.h"

namespace coconet {
namespace {

constexpr int kTags = kLanes * kGroups;

/// A rank that is alone has nobody to gather from.
int GatherOwn(void* /*context*/, const void* mine, void* all, size_t bytes, void** /*request*/) {
  std::copy_n(static_cast<const char*>(mine), bytes, static_cast<char*>(all));
  return 0;
}

/// For a world of one rank.
class LoneTraffic final : public PeerTraffic {
 public:
  absl::string_view name() const override { return "shm"; }
  using PeerTraffic::Move;
  absl::Status Move(absl::string_view /*what*/, const Streams& streams, Fill /*fill*/,
                    Take /*take*/) override {
    CC_CHECK(streams.outs.empty() && streams.ins.empty());
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> OutOfBandTransport::Over(const OutOfBand& way) {
  if (way.ranks < 1 || way.rank < 0 || way.rank >= way.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("Join: want 1 rank or more, and a rank below that; have rank ", way.rank,
                     " of ", way.ranks));
  }
  OutOfBand used = way;
  if (way.all_gather == nullptr) {
    if (way.ranks > 1) return absl::InvalidArgumentError("Join: want an all_gather, have null");
    used = {.all_gather = GatherOwn};
  }
  return std::unique_ptr<Transport>(new OutOfBandTransport(used));
}

std::unique_ptr<Exchange> OutOfBandTransport::Meet(const WaitTerms& terms) {
  return std::make_unique<OutOfBandExchange>(way_, terms);
}

absl::StatusOr<std::string> OutOfBandTransport::Machine() { return ThisMachine(); }

absl::Status OutOfBandTransport::CheckMachines(const std::vector<int>& machines) {
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    if (machines[rank] == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("Join: want all ranks on one machine, have ranks 0 and ", rank,
                     " on two; join them by an MPI communicator"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Transport::Settled> OutOfBandTransport::Settle(std::unique_ptr<Exchange> met,
                                                              const Site& site) {
  const Mesh& mesh = site.mesh;
  const int ranks = mesh.size();
  board_ = site.board;
  terms_ = site.terms;
  const Members all{.first = 0, .size = ranks};
  ProcessSharing sharing(*met, way_.rank, all);
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Region>> staging,
                   sharing.Share(StagingBuffer::kBytes));
  if (mesh.stages > 1 || mesh.nodes > 1) {
    ASSIGN_OR_RETURN(regions_, sharing.Share(kTags * SharedTraffic::Bytes(ranks)));
  }
  StagingBuffer letters(std::move(staging), 0, all, way_.rank, site.board, site.terms);
  return Settled{.exchange = std::make_unique<StagedExchange>(std::move(letters), way_.rank, ranks),
                 .board = site.board};
}

std::unique_ptr<PeerTraffic> OutOfBandTransport::MakeTraffic(int lane, Group group, int /*most*/) {
  if (regions_.empty()) return std::make_unique<LoneTraffic>();
  const int tag = lane * kGroups + static_cast<int>(group);
  return std::make_unique<SharedTraffic>(regions_, tag * SharedTraffic::Bytes(way_.ranks),
                                         way_.rank, *board_, terms_);
}

}  // namespace coconet
