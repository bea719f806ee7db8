#pragma once

#include <string>
#include <vector>

#include "runtime/control/framed_exchange.h"
#include "runtime/control/staging_buffer.h"

namespace coconet {

/// Exchange between the ranks of one machine, through shared memory.
class StagedExchange final : public FramedExchange {
 public:
  /// `staging`: of all ranks of the world.
  StagedExchange(StagingBuffer staging, int rank, int size)
      : FramedExchange(size), staging_(std::move(staging)), rank_(rank) {}

 private:
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine,
                                                  const std::vector<int64_t>& sizes) override;

  StagingBuffer staging_;
  int rank_;
};

}  // namespace coconet
