#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/control/out_of_band.h"
#include "runtime/control/wire.h"
#include "runtime/processes/place.h"
#include "runtime/processes/transport.h"

namespace coconet {

/// Ranks that meet by the caller's all-gather. From then on they communicate through shared memory,
/// and with those of other machines over TCP.
class OutOfBandTransport final : public Transport {
 public:
  /// InvalidArgument where a number makes no sense or all_gather is null. `machine`: the name of
  /// the machine that the rank is on.
  static absl::StatusOr<std::unique_ptr<Transport>> Over(const OutOfBand& way,
                                                         std::string machine = ThisMachine());

  int rank() const override { return way_.rank; }
  int size() const override { return way_.ranks; }
  std::string library() const override { return wire_ == nullptr ? "shm" : "tcp"; }
  std::unique_ptr<Exchange> Meet(const WaitTerms& terms) override;
  absl::StatusOr<std::string> Machine() override { return machine_; }
  void SetMachines(const std::vector<int>& machines) override;
  /// All ranks of one machine, also those of several nodes on it.
  bool AdmitsThreadWorld() const override { return way_.ranks > 1; }
  Members BoardGroup(const Mesh& mesh) const override;
  int64_t SharedBytes(const Mesh& mesh) const override;
  absl::StatusOr<Settled> Settle(std::unique_ptr<Exchange> met, const Site& site) override;
  std::unique_ptr<PeerTraffic> MakeTraffic(int lane, Group group, int most) override;
  /// Over TCP: waits until all ranks end, so that none closes connections over which others still
  /// receive.
  void End(bool failed) override;

 private:
  OutOfBandTransport(const OutOfBand& way, std::string machine)
      : way_(way), machine_(std::move(machine)) {}
  Settled SettleHere(const Site& site);
  absl::StatusOr<Settled> SettleApart(Exchange& met, const Site& site);

  OutOfBand way_;
  std::string machine_;
  bool apart_ = false;  // on several machines
  double timeout_s_ = 0;
  std::shared_ptr<Wire> wire_;  // null on one machine
  std::optional<Board> board_;
  Members node_;  // the ranks that read it, where wire_ is there
  WaitTerms terms_;
  std::vector<std::shared_ptr<Region>> regions_;  // of traffic; empty: there is none
  int64_t traffic_begin_ = 0;
};

}  // namespace coconet
