#pragma once

#include <string>
#include <vector>

#include "runtime/control/framed_exchange.h"
#include "runtime/control/out_of_band.h"
#include "runtime/node/wait.h"

namespace coconet {

/// Exchange by the caller's all-gather.
class OutOfBandExchange final : public FramedExchange {
 public:
  OutOfBandExchange(const OutOfBand& way, const WaitTerms& terms)
      : FramedExchange(way.ranks), way_(way), terms_(terms) {}

 private:
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine,
                                                  const std::vector<int64_t>& sizes) override;
  /// The bytes of all ranks, of the same size.
  absl::StatusOr<std::string> GatherEqual(absl::string_view mine);
  absl::Status Await(void* request) const;
  absl::Status Failed(absl::string_view what) const;

  OutOfBand way_;
  WaitTerms terms_;
  absl::Status first_error_;
};

}  // namespace coconet
