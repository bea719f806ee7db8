#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/processes/out_of_band.h"
#include "runtime/processes/transport.h"

namespace coconet {

/// Ranks on one machine that meet by the caller's all-gather and then communicate through shared
/// memory.
class OutOfBandTransport final : public Transport {
 public:
  /// InvalidArgument where a number makes no sense or all_gather is null.
  static absl::StatusOr<std::unique_ptr<Transport>> Over(const OutOfBand& way);

  int rank() const override { return way_.rank; }
  int size() const override { return way_.ranks; }
  std::string library() const override { return "shm"; }
  std::unique_ptr<Exchange> Meet(const WaitTerms& terms) override;
  absl::StatusOr<std::string> Machine() override;
  absl::Status CheckMachines(const std::vector<int>& machines) override;
  Members BoardGroup(const Mesh& mesh) const override { return {.first = 0, .size = mesh.size()}; }
  absl::StatusOr<Settled> Settle(std::unique_ptr<Exchange> met, const Site& site) override;
  std::unique_ptr<PeerTraffic> MakeTraffic(int lane, Group group, int most) override;
  void End(bool /*failed*/) override {}

 private:
  explicit OutOfBandTransport(const OutOfBand& way) : way_(way) {}

  OutOfBand way_;
  std::optional<Board> board_;
  WaitTerms terms_;
  std::vector<std::shared_ptr<Region>> regions_;  // of traffic; empty: there is none
};

}  // namespace coconet
