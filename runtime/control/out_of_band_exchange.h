#pragma once

#include <string>
#include <vector>

#include "runtime/control/out_of_band.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// Exchange by the caller's all-gather.
class OutOfBandExchange final : public Exchange {
 public:
  OutOfBandExchange(const OutOfBand& way, const WaitTerms& terms) : way_(way), terms_(terms) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  /// The bytes of all ranks, of the same size.
  absl::StatusOr<std::string> Gather(absl::string_view mine);
  absl::Status Await(void* request) const;
  absl::Status Failed(absl::string_view what) const;

  OutOfBand way_;
  WaitTerms terms_;
  absl::Status first_error_;
};

}  // namespace coconet
