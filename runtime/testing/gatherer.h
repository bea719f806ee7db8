#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/control/out_of_band.h"
#include "runtime/node/memory.h"

namespace coconet {

/// An out-of-band all-gather of one rank, through memory that threads and forked processes share.
class Gatherer {
 public:
  static constexpr int kMostRanks = 8;
  static constexpr size_t kMostBytes = 1 << 16;
  struct Table {
    struct Row {
      std::atomic<unsigned> rounds;
      char bytes[2][kMostBytes];  // of odd and even rounds
    };
    Row rows[kMostRanks];
  };
  /// Memory for a Table.
  static std::shared_ptr<Region> TableMemory();

  /// A gatherer of `table`, whose memory is TableMemory.
  Gatherer(const std::shared_ptr<Region>& table, int rank, int ranks);
  Gatherer(const Gatherer&) = delete;
  Gatherer& operator=(const Gatherer&) = delete;

  /// Refers to this object.
  OutOfBand way();

  int fails_at = -1;   // number of the all-gather that fails; -1: none
  bool swaps = false;  // gives the ranks' bytes in the opposite order
  int begun = 0, released = 0;

 private:
  int Begin(const void* mine, void* all, size_t bytes, void** request);
  int Test(void* request);
  int Absent() const;

  std::shared_ptr<Region> memory_;
  Table& table_;
  int rank_, ranks_;
  char* all_ = nullptr;
  size_t bytes_ = 0;
};

/// What one rank does; `gatherer` is its out-of-band all-gather.
using GathererBody = std::function<absl::Status(Gatherer& gatherer, int rank)>;

/// Calls `body` for each rank, each on a thread of its own, with gatherers of `table`. Returns
/// their results by rank.
std::vector<absl::Status> GatherOnThreads(
    int ranks, const GathererBody& body,
    const std::shared_ptr<Region>& table = Gatherer::TableMemory());
/// The same in forked processes: statuses as text; "killed" for a process that ended otherwise.
std::vector<std::string> GatherOnProcesses(int ranks, const GathererBody& body);

}  // namespace coconet
