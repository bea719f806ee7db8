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

/// Every step says when it may begin. The steps of one lane run in order; those of different lanes run beside each
/// other, except that a step begins only when all steps in `after` (indices of earlier ones) are done. Lane 0 is the
/// caller's thread; lane 1 is for communication, a thread of its own that sleeps while there is nothing to do.
inline constexpr int kLanes = 2;

/// Launches kernel `symbol` with `blocks` blocks; on the host a block is one thread, block 0 its lane's.
/// All blocks of a step that waits for peers are resident at once.
struct KernelStep {
  std::string symbol;
  std::vector<Arg> args;
  int blocks = 1;
  std::string label;  // in words, for messages: "fuse(RS, C, AG)"
  int lane = 0;
  std::vector<int> after = {};
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
  int lane = 0;
  std::vector<int> after = {};
  bool operator==(const CollectiveStep&) const = default;
};

/// How far a dimension reaches on a rank of the plan: everywhere `total`, or, where it is sliced, what the rank has of
/// it, which is less (or nothing) on the last ranks.
struct RankExtent {
  int64_t total = 0;
  int64_t per = 0;  // sliced: rank r has clamp(total - r * per, 0, per). 0: not sliced
  int64_t On(int rank) const;
  int64_t Most() const { return per == 0 ? total : total < per ? total : per; }  // over all ranks
  bool operator==(const RankExtent&) const = default;
};

/// c[batch, m, n] = op(a)[batch, m, k] . op(b)[batch, k, n], where op transposes the last two dimensions or does nothing.
/// f32, f16 or bf16, all three alike, summed in f32 and rounded once; without k, zeros. Nothing of c's buffer but these
/// elements is written. Each of the `threads` computes a part of c on a core of its own where the rank has as many.
struct GemmStep {
  struct Matrix {
    int buffer = -1;
    int64_t offset = 0;        // in elements, of the first one
    int64_t ld = 0;            // elements from one row, as stored, to the next
    int64_t batch_stride = 0;  // elements from one batch to the next; 0: the same in all, for a and b
    bool operator==(const Matrix&) const = default;
  };
  DType dtype{};
  int64_t batch = 1;
  RankExtent m = {}, n = {}, k = {};
  Matrix a = {}, b = {}, c = {};
  bool transpose_a = false, transpose_b = false;  // stored as [k, m], [n, k]
  int threads = 1;
  std::string label;
  int lane = 0;
  std::vector<int> after = {};
  bool operator==(const GemmStep&) const = default;
};

using Step = std::variant<KernelStep, CollectiveStep, GemmStep>;

int LaneOf(const Step& step);
const std::vector<int>& AfterOf(const Step& step);

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
