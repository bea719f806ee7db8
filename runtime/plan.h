#ifndef COCONET_RUNTIME_PLAN_H_
#define COCONET_RUNTIME_PLAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "coconet/base/dtype.h"

namespace coconet {

/// A lowered variant: data only, the same on every rank. One loop executes it (BoundPlan::Run).

enum class BufferRole : uint8_t { kInput, kState, kOutput, kTemp, kSync };

struct Buffer {
  std::string name;  // the tensor's for inputs, states and outputs; unique within the plan
  BufferRole role{};
  DType dtype{};
  int64_t elements = 0;    // allocated on each rank, padding included
  bool symmetric = false;  // peers load from or store to it
  bool operator==(const Buffer&) const = default;
};

/// One argument of a kernel: one word, or one word a rank.
struct Arg {
  enum class Kind : uint8_t {
    kPeers,    // `ranks` words: the buffer's address on rank 0, 1, ... as this rank sees it
    kOwn,      // the buffer's address on this rank
    kInt,      // `value`
    kRank,     // this rank's number
    kControl,  // this rank's Control (kernel_abi.h)
  };
  Kind kind{};
  int buffer = -1;    // kPeers, kOwn
  int64_t value = 0;  // kInt
  bool operator==(const Arg&) const = default;
};

/// Launches kernel `symbol` with `blocks` blocks; on the host a block is one thread, block 0 the caller's.
/// All blocks of a step that waits for peers are resident at once.
struct KernelStep {
  std::string symbol;
  std::vector<Arg> args;
  int blocks = 1;
  std::string label;  // in words, for messages: "fuse(RS, C, AG)"
  bool operator==(const KernelStep&) const = default;
};

/// A library collective over whole buffers (NCCL, MPI, or the `thread` communicator).
/// AllReduce: `count` elements of `in` -> `out`. ReduceScatter: `in` has ranks*count elements, this
/// rank's `count` go to `out`. AllGather: `count` elements of `in` -> ranks*count of `out`.
/// `in` and `out` differ, or are equal for an AllReduce in place.
struct CollectiveStep {
  enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather };
  Kind kind{};
  ReduceKind reduce{};
  DType dtype{};
  int in = -1, out = -1;  // buffers
  int64_t count = 0;
  std::string label;
  bool operator==(const CollectiveStep&) const = default;
};

using Step = std::variant<KernelStep, CollectiveStep>;

struct Plan {
  int ranks = 1;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  /// Bytes that the kernels and collectives of one rank (the busiest) load and store at least.
  int64_t bytes_per_rank = 0;
  bool operator==(const Plan&) const = default;
};

/// One line a buffer and a step; for goldens, dumps and agreement checks.
std::string Print(const Plan& plan);

/// Bytes that binding the plan allocates on one rank.
int64_t BytesPerRank(const Plan& plan);

}  // namespace coconet

#endif  // COCONET_RUNTIME_PLAN_H_
