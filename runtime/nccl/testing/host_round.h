#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coconet {

// Collectives of HostNccl and their results.

struct HostOp {
  enum class Kind : uint8_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce,
    kSend,
    kRecv
  };
  Kind kind{};
  const char* in = nullptr;
  char* out = nullptr;
  size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t reduce{};
  int peer = 0;  // or root
  bool SameAs(const HostOp& o) const {
    return kind == o.kind && count == o.count && type == o.type && reduce == o.reduce &&
           peer == o.peer;
  }
};

/// One call, or one group of calls, of all ranks.
struct HostRound {
  std::vector<std::vector<HostOp>> ops;  // by rank
  int given = 0, read = 0, done = 0;
};

/// Bytes that `rank` writes, and where.
struct HostResult {
  char* to;
  std::vector<char> bytes;
};

/// The mistake of reductions from PlantReductionMistake on.
enum class ReductionMistake : uint8_t {
  kNone,
  kCoarse,     // each addition keeps three bits less than the type has
  kSkipsLast,  // the last rank's operand is left out
};
void PlantReductionMistake(ReductionMistake mistake);

/// The results of `rank` in a round that all ranks have joined. Sums are rounded after each
/// addition, as in NCCL. ncclInvalidUsage if the ranks' calls differ.
ncclResult_t ComputeRound(const HostRound& round, int rank, std::vector<HostResult>& results);

// ---- Rounds of processes, which meet in their communicator's folder

void JoinInFolder(const std::string& folder, int rank);
/// The number of processes that have joined.
int JoinedInFolder(const std::string& folder, int ranks);
/// The operands of all ranks of a round, in memory of this process.
struct FolderRound {
  HostRound round;
  std::vector<std::vector<char>> data;  // of the ranks' operands
};
/// Joins with `ops` and a copy of their data, and waits for the other ranks. False if `aborted`
/// comes first.
bool MeetInFolder(const std::string& folder, int number, int rank, int ranks,
                  const std::vector<HostOp>& ops, const std::function<bool()>& aborted,
                  FolderRound& met);

}  // namespace coconet
