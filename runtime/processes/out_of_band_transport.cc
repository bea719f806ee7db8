#include "runtime/processes/out_of_band_transport.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/control/fabric/fabric_wire.h"
#include "runtime/control/out_of_band_exchange.h"
#include "runtime/control/staged_exchange.h"
#include "runtime/control/wire_exchange.h"
#include "runtime/control/wire_notices.h"
#include "runtime/processes/collectives/message_traffic.h"
#include "runtime/processes/shared_traffic.h"

namespace coconet {
namespace {

// Tags of messages. The first ones are the traffic's, by lane and group.
constexpr int kTags = kLanes * kGroups;
constexpr int kExchangeTag = kTags;
constexpr int kNoticeTag = kTags + 1;
constexpr int kEndTag = kTags + 2;

constexpr int64_t kLetterBytes = int64_t{16} << 10;  // of the exchange on one machine

constexpr double kEndSeconds = 5;  // all ranks are about to end

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

absl::StatusOr<std::unique_ptr<Transport>> OutOfBandTransport::Over(const OutOfBand& way,
                                                                    std::string machine) {
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
  return std::unique_ptr<Transport>(new OutOfBandTransport(used, std::move(machine)));
}

std::unique_ptr<Exchange> OutOfBandTransport::Meet(const WaitTerms& terms) {
  return std::make_unique<OutOfBandExchange>(way_, terms);
}

void OutOfBandTransport::SetMachines(const std::vector<int>& machines) {
  apart_ = absl::c_any_of(machines, [](int machine) { return machine != 0; });
}

Members OutOfBandTransport::BoardGroup(const Mesh& mesh) const {
  return apart_ ? SharingMemory(mesh, way_.rank) : Members{.first = 0, .size = mesh.size()};
}

absl::StatusOr<Transport::Settled> OutOfBandTransport::Settle(std::unique_ptr<Exchange> met,
                                                              const Site& site) {
  terms_ = site.terms;
  timeout_s_ = site.timeout_s;
  if (apart_) return SettleApart(*met, site);
  return SettleHere(site);
}

absl::StatusOr<Transport::Settled> OutOfBandTransport::SettleApart(Exchange& met,
                                                                   const Site& site) {
  absl::StatusOr<std::unique_ptr<FabricWire>> opened = FabricWire::Open();
  RETURN_IF_ERROR(met.Agree(opened.status()));
  std::shared_ptr<FabricWire> wire = *std::move(opened);
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, met.AllGather(wire->address()));
  RETURN_IF_ERROR(met.Agree(wire->Connect(way_.rank, addresses)));
  node_ = BoardGroup(site.mesh);
  ASSIGN_OR_RETURN(std::shared_ptr<WireNotices> notices,
                   WireNotices::Begin(wire, kNoticeTag, way_.rank, site.board, node_));
  board_ = site.board.With(std::move(notices));
  wire_ = std::move(wire);
  return Settled{.exchange = std::make_unique<WireExchange>(wire_, kExchangeTag, way_.rank,
                                                            way_.ranks, *board_, node_, terms_),
                 .board = *board_};
}

int64_t OutOfBandTransport::SharedBytes(const Mesh& mesh) const {
  if (apart_) return 0;
  const bool talks = mesh.stages > 1 || mesh.nodes > 1;
  return kLetterBytes + (talks ? kTags * SharedTraffic::Bytes(mesh.size()) : 0);
}

Transport::Settled OutOfBandTransport::SettleHere(const Site& site) {
  const int ranks = site.mesh.size();
  board_ = site.board;
  if (site.mesh.stages > 1 || site.mesh.nodes > 1) {
    regions_ = site.regions;
    traffic_begin_ = site.offset + kLetterBytes;
  }
  StagingBuffer letters(site.regions, site.offset, kLetterBytes, {.first = 0, .size = ranks},
                        way_.rank, site.board, site.terms);
  return Settled{.exchange = std::make_unique<StagedExchange>(std::move(letters), way_.rank, ranks),
                 .board = site.board};
}

std::unique_ptr<PeerTraffic> OutOfBandTransport::MakeTraffic(int lane, Group group, int most) {
  const int tag = lane * kGroups + static_cast<int>(group);
  if (apart_) {
    return std::make_unique<MessageTraffic>(wire_, tag, way_.rank, most, timeout_s_, *board_);
  }
  if (regions_.empty()) return std::make_unique<LoneTraffic>();
  return std::make_unique<SharedTraffic>(regions_,
                                         traffic_begin_ + tag * SharedTraffic::Bytes(way_.ranks),
                                         way_.rank, *board_, terms_);
}

void OutOfBandTransport::End(bool failed) {
  if (failed || wire_ == nullptr) return;
  const WaitTerms terms{
      .spins = 0, .timeout_ns = static_cast<int64_t>(std::min(timeout_s_, kEndSeconds) * 1e9)};
  // A rank that does not come has ended otherwise.
  WireExchange(wire_, kEndTag, way_.rank, way_.ranks, *board_, node_, terms)
      .Barrier()
      .IgnoreError();
}

}  // namespace coconet
