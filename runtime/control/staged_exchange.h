#pragma once

#include <string>
#include <vector>

#include "runtime/control/staging_buffer.h"
#include "runtime/rank.h"

namespace coconet {

/// Exchange between the ranks of one machine, through shared memory.
class StagedExchange final : public Exchange {
 public:
  /// `staging`: of all ranks of the world.
  StagedExchange(StagingBuffer staging, int rank, int size)
      : staging_(std::move(staging)), rank_(rank), size_(size) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  StagingBuffer staging_;
  int rank_;
  int size_;
};

}  // namespace coconet
