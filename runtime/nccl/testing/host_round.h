#ifndef COCONET_RUNTIME_NCCL_TESTING_HOST_ROUND_H_
#define COCONET_RUNTIME_NCCL_TESTING_HOST_ROUND_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coconet {

// What collectives of the NCCL of tests are, and what comes of them.

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

/// One call, or group of calls, of all ranks.
struct HostRound {
  std::vector<std::vector<HostOp>> ops;  // by rank
  int given = 0, read = 0, done = 0;
};

/// What `rank` writes, and where.
struct HostResult {
  char* to;
  std::vector<char> bytes;
};

/// What `rank` gets of a round that all have given theirs to: as of NCCL, sums are rounded each
/// time that one is added. InvalidUsage where the ranks do not do the same.
ncclResult_t ComputeRound(const HostRound& round, int rank, std::vector<HostResult>& results);

// Rounds of processes, which meet in a folder of their communicator.

void JoinInFolder(const std::string& folder, int rank);
/// How many have.
int JoinedInFolder(const std::string& folder, int ranks);
/// What the ranks of a round give, in this process's memory.
struct FolderRound {
  HostRound round;
  std::vector<std::vector<char>> data;  // of the ranks' operands
};
/// Gives `ops`, with their data as it is now, and waits for those of the others; false: `aborted`
/// came first.
bool MeetInFolder(const std::string& folder, int number, int rank, int ranks,
                  const std::vector<HostOp>& ops, const std::function<bool()>& aborted,
                  FolderRound& met);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_TESTING_HOST_ROUND_H_
