#ifndef COCONET_RUNTIME_PLAN_H_
#define COCONET_RUNTIME_PLAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "coconet/base/dtype.h"

namespace coconet {

/// A lowered variant: data only, the same on every rank. One loop executes it (BoundPlan::Run).

/// Which ranks do something together. All groups of a kind do the same at the same time.
enum class Group : uint8_t {
  kStage,   // all ranks of a stage
  kNode,    // those of one node of it
  kAcross,  // those with one place in its nodes, one a node
};
inline constexpr int kGroups = 3;
inline constexpr Group kAllGroups[kGroups] = {Group::kStage, Group::kNode, Group::kAcross};

enum class BufferRole : uint8_t { kInput, kState, kOutput, kTemp, kSync };

struct Buffer {
  std::string name;  // the tensor's for inputs, states and outputs; unique within the plan
  BufferRole role{};
  DType dtype{};
  int64_t elements = 0;    // allocated on each rank, padding included
  bool symmetric = false;  // peers load from or store to it
  bool operator==(const Buffer&) const = default;
};

/// One argument of a kernel: one word, or one word a rank of this node.
struct Arg {
  enum class Kind : uint8_t {
    kPeers,   // `ranks / nodes` words: the buffer's address on each rank of this node, as this rank
              // sees it
    kBeside,  // two words: its address at this rank's place of the stage before, and of the one
              // after; null where there is none
    kOwn,     // the buffer's address on this rank
    kMulticast,  // one address for all ranks of this node, by which a switch adds up loads and
                 // repeats stores; null where there is none
    kInt,        // `value`
    kRank,       // this rank's number in the stage
    kNodeRank,   // its index in kPeers: its number in the node
    kControl,    // this rank's Control (kernel_abi.h)
    kTable,      // the address of the step's table (KernelStep::tensors)
  };
  Kind kind{};
  int buffer = -1;    // kPeers, kBeside, kOwn, kMulticast
  int64_t value = 0;  // kInt
  bool operator==(const Arg&) const = default;
};

/// Every step says when it may begin. The steps of one lane run in order; those of different lanes
/// run beside each other, except that a step begins only when all steps in `after` (indices of
/// earlier ones) are done. Lane 0 is the caller's thread; lane 1 is for communication, a thread of
/// its own that sleeps while there is nothing to do.
inline constexpr int kLanes = 2;

/// Launches kernel `symbol` with `blocks` blocks of `threads` threads; on the host a block is one
/// thread, block 0 its lane's. All blocks of a step that waits for peers are resident at once.
struct KernelStep {
  std::string symbol;
  std::vector<Arg> args;
  int blocks = 1;
  std::string label;  // in words, for messages: "fuse(RS, C, AG)"
  int lane = 0;
  std::vector<int> after = {};
  /// A row of words a tensor, all of one length, one after the other in memory: what a kernel over
  /// many tensors is told of each.
  std::vector<std::vector<Arg>> tensors = {};
  int threads = 1;
  /// An earlier kernel on the other lane, whose blocks this one's wait for while both run: all of
  /// them are resident together. -1: none.
  int awaits = -1;
  bool operator==(const KernelStep&) const = default;
};

/// A library collective over whole buffers (NCCL, MPI, or the `thread` communicator), between the n
/// ranks of a group; `count` elements a rank, or a pair of ranks.
///   kAllReduce      in[count] -> out[count]
///   kReduceScatter  in[n * count] -> out[count], this rank's block of the reduction
///   kAllGather      in[count] -> out[n * count]
///   kBroadcast      the root's in[count] -> out[count]
///   kReduce         in[count] -> out[count] of the root; the others' becomes zeros
///   kAllToAll       in[n * count] -> out[n * count]: block i goes to rank i, and becomes its block
///   of this rank's number kSend           in[count] -> out[count] at the same place of the stage
///   `shift` after this one; what arrives at a stage
///                   that none comes before is zeros
/// `in` and `out` are different buffers, or one for kAllReduce and kBroadcast.
struct CollectiveStep {
  enum class Kind : uint8_t {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast,
    kReduce,
    kAllToAll,
    kSend
  };
  Kind kind{};
  ReduceKind reduce{};
  DType dtype{};
  int in = -1, out = -1;  // buffers
  int64_t count = 0;
  std::string label;
  Group group = Group::kStage;            // kSend: always
  int root = 0;                           // kBroadcast, kReduce: its number in the group
  int shift = 1;                          // kSend: 1 or -1
  int64_t in_offset = 0, out_offset = 0;  // elements before the first
  int64_t stride = 0;  // of the n blocks that kReduceScatter takes, or kAllGather makes: from one
                       // to the next; 0: `count`
  int lane = 0;
  std::vector<int> after = {};
  int64_t Stride() const { return stride == 0 ? count : stride; }
  bool operator==(const CollectiveStep&) const = default;
};

/// How far a dimension reaches on a rank of the plan: everywhere `total`, or, where it is sliced,
/// what the rank has of it, which is less (or nothing) on the last ranks.
struct RankExtent {
  int64_t total = 0;
  int64_t per = 0;  // sliced: rank r has clamp(total - r * per, 0, per). 0: not sliced
  int64_t On(int rank) const;
  int64_t Most() const { return per == 0 ? total : total < per ? total : per; }  // over all ranks
  bool operator==(const RankExtent&) const = default;
};

/// How many ways to multiply a step may choose from, at most.
inline constexpr int kMostGemmCandidates = 16;

/// c[batch, m, n] = op(a)[batch, m, k] . op(b)[batch, k, n], where op transposes the last two
/// dimensions or does nothing. f32, f16 or bf16, all three alike, summed in f32 and rounded once;
/// without k, zeros. Nothing of c's buffer but these elements is written. Each of the `threads`
/// computes a part of c on a core of its own where the rank has as many.
struct GemmStep {
  struct Matrix {
    int buffer = -1;
    int64_t offset = 0;  // in elements, of the first one
    int64_t ld = 0;      // elements from one row, as stored, to the next
    int64_t batch_stride =
        0;  // elements from one batch to the next; 0: the same in all, for a and b
    bool operator==(const Matrix&) const = default;
  };
  DType dtype{};
  int64_t batch = 1;
  RankExtent m = {}, n = {}, k = {};
  Matrix a = {}, b = {}, c = {};
  bool transpose_a = false, transpose_b = false;  // stored as [k, m], [n, k]
  /// An earlier step with the same b, which nothing has written since: how that one rearranged b
  /// need not be done again. -1: none.
  int weights_of = -1;
  int threads = 1;
  int candidate =
      0;  // which of the ways that the library has on this rank, the best by its own forecast first
  int beside =
      0;  // of a GPU's multiprocessors that the rank has, so many are left to what runs beside it
  std::string label;
  int lane = 0;
  std::vector<int> after = {};
  bool operator==(const GemmStep&) const = default;
};

using Step = std::variant<KernelStep, CollectiveStep, GemmStep>;

int LaneOf(const Step& step);
const std::vector<int>& AfterOf(const Step& step);

struct Plan {
  int ranks = 1;   // of a stage
  int nodes = 1;   // of a stage, with `ranks / nodes` ranks each
  int stages = 1;  // of the world; all execute this plan
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  /// Bytes that the kernels and collectives of one rank (the busiest) load and store at least.
  int64_t bytes_per_rank = 0;
  bool operator==(const Plan&) const = default;
};

/// Whether kernels of the plan store in the memory of other stages.
bool ReachesStages(const Plan& plan);

/// How many ranks a group of the plan has.
int SizeOf(const Plan& plan, Group group);

/// One line a buffer and a step; for goldens, dumps and agreement checks.
std::string Print(const Plan& plan);

/// Bytes that binding the plan allocates on one rank.
int64_t BytesPerRank(const Plan& plan);

/// When a step was under way in its lane: after what is before it there and all that it waits for,
/// until it was done. Since the begin of the plan's run.
struct StepSpan {
  std::string label;
  int lane = 0;
  double begin_us = 0, end_us = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_PLAN_H_
