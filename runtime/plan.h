#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "runtime/kernel_step.h"
#include "runtime/rank_extent.h"

namespace coconet {

/// A lowered schedule as data, the same on every rank. BoundPlan::Run executes it.

/// A set of ranks that communicate. All groups of one kind run the same collective concurrently.
enum class Group : uint8_t {
  kStage,   // all ranks of a pipeline stage
  kNode,    // the stage's ranks on one node
  kAcross,  // the ranks with the same local number, one per node of the stage
};
inline constexpr int kGroups = 3;
inline constexpr Group kAllGroups[kGroups] = {Group::kStage, Group::kNode, Group::kAcross};

enum class BufferRole : uint8_t { kInput, kState, kOutput, kTemp, kSync };

struct Buffer {
  std::string name;  // input, state or output: the tensor's name; unique within the plan
  BufferRole role{};
  DType dtype{};
  int64_t elements = 0;    // allocated per rank, padding included
  bool symmetric = false;  // peers load from it or store to it
  /// By rank of a pipeline stage: elements allocated there, at most `elements`, if ranks need
  /// different numbers and neither peers nor a library reach them. Empty: `elements` on each.
  std::vector<int64_t> on_rank = {};
  /// Elements allocated on that rank of a stage.
  int64_t On(int stage_rank) const { return on_rank.empty() ? elements : on_rank[stage_rank]; }
  bool operator==(const Buffer&) const = default;
};

/// The number of lanes. Steps of one lane run in order; steps of different lanes run concurrently,
/// except that a step begins only when all steps in its `after` (indices of earlier steps) are
/// done. Lane 0 is the caller's thread; lane 1 a thread for communication, which sleeps while idle.
inline constexpr int kLanes = 2;

/// A library collective over whole buffers (NCCL, MPI, or the `thread` communicator) between the n
/// ranks of a group. `count`: elements per rank; kAllToAll: per pair of ranks.
///   kAllReduce      in[count] -> out[count]
///   kReduceScatter  in[n * count] -> out[count], this rank's block of the reduction
///   kAllGather      in[count] -> out[n * count]
///   kBroadcast      the root's in[count] -> out[count]
///   kReduce         in[count] -> the root's out[count]; zeros on the other ranks
///   kAllToAll       in[n * count] -> out[n * count]; block i of rank r becomes block r of rank i
///   kSend           in[count] -> out[count] of the rank at the same place of the pipeline stage
///                   `shift` after this one; a stage without a sender receives zeros
/// `in` and `out` differ, or are one buffer for kAllReduce and kBroadcast.
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
  int in = -1, out = -1;  // buffer indices
  int64_t count = 0;
  std::string label = {};
  Group group = Group::kStage;            // kSend: always kStage
  int root = 0;                           // kBroadcast, kReduce: the root's number in the group
  int shift = 1;                          // kSend: 1 or -1
  int64_t in_offset = 0, out_offset = 0;  // first element
  /// Elements between blocks of kReduceScatter's input, of kAllGather's output; 0: count.
  int64_t stride = 0;
  /// kAllToAll of a tensor as ranks store it, instead of blocks. The tensor's elements are [outer,
  /// low, middle, high, inner] in row-major order; ranks have slices over `low` before and over
  /// `high` after the step, or, unless `from_low`, the other way round. A slice is stored from
  /// index 0 on, in storage for `per` indices. `count` is the most elements that a rank has for
  /// another. Only libraries of hosts take it.
  struct Exchanged {
    int64_t outer = 0, middle = 1, inner = 1;  // outer 0: blocks
    RankExtent low, high;                      // sliced, both
    bool from_low = false;
    /// The indices of `outer`, and of each rank's slice of `low`, that are moved.
    int64_t outer_begin = 0, outer_end = 0, low_begin = 0, low_end = 0;
    bool operator==(const Exchanged&) const = default;
  };
  Exchanged exchanged = {};
  /// With `exchanged`: only the first rows, of `row` elements, of each group of `capacity` rows are
  /// in use; `inner` has whole groups. Rows not in use need not be moved; their content afterwards
  /// is undefined.
  struct Rows {
    /// Buffers of i32: how many rows of each group are in use, in the order of the groups in `in`
    /// and in `out`. For a group that a rank sends, the sender's number in `leaving` equals the
    /// receiver's in `arriving`. -1: all rows are in use.
    int leaving = -1, arriving = -1;
    int64_t capacity = 0, row = 0;
    bool operator==(const Rows&) const = default;
  };
  Rows rows = {};
  int lane = 0;
  std::vector<int> after = {};
  bool rounds_each = false;  // sums of narrow floats: each addition may round, else the sum only
  bool no_nans = false;      // minima and maxima: no operand is NaN, else those of a NaN are
  int64_t Stride() const { return stride == 0 ? count : stride; }
  /// The operation's name in errors: "AllReduce".
  absl::string_view Call() const;
  bool operator==(const CollectiveStep&) const = default;
};

/// The most elements that a rank has for another: the `count` of a step with `exchanged`.
int64_t MostOfBlock(const CollectiveStep::Exchanged& exchanged);

/// The most candidates (GemmStep::candidate) that a search considers.
inline constexpr int kMostGemmCandidates = 16;

/// c[batch, m, n] = op(a)[batch, m, k] . op(b)[batch, k, n], where op transposes the last two
/// dimensions or is the identity. f32, f16 or bf16, the same for all three, or a and b of 8-bit
/// floats each and c in f32; summed in f32 and rounded once; zeros when k is 0. Both of a and b, or
/// neither, have scales, by which their elements are multiplied. No other element of
/// c's buffer is written. Each of the `threads` computes a part of c, on a core of its own if the
/// rank has as many cores.
///
/// With `rows`, no later step reads all rows of c: they are groups of `capacity` rows, one after
/// the other through all batches. The first rows of a group are in use, as many as the group's
/// count says. The others may be left as they are or be overwritten. Operands with scales go
/// without `rows`.
struct GemmStep {
  /// The f32 scales of a matrix of 8-bit floats, one for all elements of a block: element (row,
  /// column), as stored, of batch t has the one at offset + t * batch_stride + (first_row + row) /
  /// block_rows * ld + (first_column + column) / block_columns.
  struct Scales {
    int buffer = -1;  // -1: there are none
    int64_t offset = 0, ld = 0, batch_stride = 0;
    int64_t block_rows = 1, block_columns = 1;
    int64_t first_row = 0, first_column = 0;  // of the matrix in its blocks, of which it has parts
    bool operator==(const Scales&) const = default;
  };
  struct Matrix {
    int buffer = -1;
    int64_t offset = 0;  // of the first element, in elements
    int64_t ld = 0;      // elements between consecutive stored rows
    /// Elements between consecutive batches; 0 (a and b only): all batches share one matrix.
    int64_t batch_stride = 0;
    std::optional<DType> float8 =
        std::nullopt;  // a and b: their 8-bit floats; else the step's dtype
    Scales scales = {};
    bool operator==(const Matrix&) const = default;
  };
  DType dtype{};
  int64_t batch = 1;
  RankExtent m = {}, n = {}, k = {};
  Matrix a = {}, b = {}, c = {};
  bool transpose_a = false, transpose_b = false;  // stored as [k, m], [n, k]
  /// An earlier step with the same b, unchanged since: its rearranged copy of b is
  /// reused. -1: none.
  int weights_of = -1;
  int threads = 1;
  /// Index of the library's algorithm on this rank, in the library's own order of expected speed.
  int candidate = 0;
  /// GPUs: multiprocessors of the rank that are left to concurrent kernels.
  int beside = 0;
  struct Rows {
    int counts = -1;       // a buffer of i32, a number per group; -1: all rows are in use
    int64_t first = 0;     // the number of row 0 of batch 0, counted from the first group's
    int64_t capacity = 0;  // rows per group
    bool operator==(const Rows&) const = default;
  };
  Rows rows = {};
  std::string label;
  int lane = 0;
  std::vector<int> after = {};
  bool scaled() const { return a.scales.buffer >= 0 || b.scales.buffer >= 0; }
  DType TypeOf(const Matrix& matrix) const { return matrix.float8.value_or(dtype); }
  bool operator==(const GemmStep&) const = default;
};

using Step = std::variant<KernelStep, CollectiveStep, GemmStep>;

int LaneOf(const Step& step);
const std::vector<int>& AfterOf(const Step& step);
/// Calls `f` with each number of a buffer, or of an earlier step, in a step; it may change them.
void ForBuffers(Step& step, const std::function<void(int&)>& f);
void ForEarlierSteps(Step& step, const std::function<void(int&)>& f);

/// A step of lane 1 that may outlast its run (BoundPlan::Advance): no step of the run waits for it,
/// nor for those behind it on its lane, and it uses no input or output. `until`: in the next run,
/// steps of lane 0 from this number on wait for it; -1: none does.
struct Outlasting {
  int step = -1, until = -1;
  bool operator==(const Outlasting&) const = default;
};

struct Plan {
  int ranks = 1;   // per pipeline stage
  int nodes = 1;   // per stage, with `ranks / nodes` ranks each
  int stages = 1;  // of the world; all execute this plan
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Outlasting> outlasting = {};  // the last steps of lane 1, in order
  /// Lower bound of the bytes that kernels and collectives load and store on the busiest rank.
  int64_t bytes_per_rank = 0;
  /// Overlaps, as steps [first, second): what one of their steps uses lives through all of them.
  std::vector<std::pair<int, int>> overlaps = {};
  bool operator==(const Plan&) const = default;
};

/// The steps [begin, end) as a plan without `outlasting`; none awaits one that is left out.
Plan StepsOf(const Plan& plan, int begin, int end);

/// True when a kernel of the plan stores to the memory of another pipeline stage.
bool ReachesStages(const Plan& plan);

/// The number of ranks in a group of the plan.
int SizeOf(const Plan& plan, Group group);

/// One line per buffer and per step; for goldens, dumps and agreement checks.
std::string Print(const Plan& plan);

}  // namespace coconet
