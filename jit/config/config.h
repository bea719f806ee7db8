#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/schedule/schedule.h"
#include "jit/launches/cut.h"

namespace coconet {

/// Who executes the collectives that a schedule leaves unfused.
enum class Protocol : uint8_t {
  kLibrary,    // MPI, NCCL, or the thread communicator
  kGenerated,  // our own kernels over symmetric memory: AllReduce one-shot, ReduceScatter and
               // AllGather direct
};

/// How a kernel that reduces whole tensors (AllReduce, one-shot) gets the other ranks' operands.
enum class OneShot : uint8_t {
  kPull,    // loads them where they are: waits until all are there, and again until all have been
            // read
  kStaged,  // each rank copies its own to memory for two steps, and the others load it there: one
            // wait per step
  kLL,  // each rank sends its own to the others, in words of data and epoch, so that they wait for
        // the data alone; twice the bytes
};

/// Which stores bypass the cache (host: non-temporal).
enum class Streaming : uint8_t {
  kNone,
  kShared,  // stores to symmetric buffers, which a peer or the next step reads, not this rank
  kAll,     // all of them
};

/// The numbers that a schedule leaves open. Prints as "library vec=16 chunk=4096 blocks=1
/// stream=none one-shot=pull" and parses back. The following fields are left out if they have their
/// default values: "pieces=4" (1), "batch=131072" (0), "threads=256" (1), "gemm=2" (0),
/// "multicast=1", "ring=1", "bulk=1" (0), "beside=16", "tiles=128" (0), "tile-columns=256" (0),
/// "stages=4" (0), "tma=1", "remote-first=1", "concurrent=1" (0), "bucket=1048576" (0), "columns=1"
/// (0), "unroll=4" (1).
struct Config {
  Protocol protocol = Protocol::kLibrary;
  /// Elements that a thread handles at once; a power of two, 1..64. On GPUs, kernels whose elements
  /// are all narrower than 16 bytes over `vec` take packs of 16 bytes (VecOf, launch_shapes.h).
  int vec = 16;
  int64_t chunk =
      4096;        // elements between flags, and between hand-overs to blocks; multiple of vec
  int blocks = 1;  // thread blocks per kernel; on the host threads per rank
  Streaming streaming = Streaming::kNone;
  OneShot one_shot = OneShot::kPull;
  int pieces = 1;  // that each overlap of the schedule is cut into; 1: none overlaps
  /// For programs over a list of tensors: the number of a rank's elements that a kernel with sums
  /// takes at a time, in whole tensors, at least one, so that they are still in its cache when it
  /// uses the sums. 0: all of them.
  int64_t batch = 0;
  int threads = 1;  // per block, on GPUs
  int gemm = 0;     // the library's way to multiply matrices (GemmStep::candidate)
  /// Kernels reduce slices and store to all ranks through multicast addresses (a switch between
  /// GPUs adds up, in any order, and repeats). Without effect if memory has none.
  bool multicast = false;
  /// Kernels reduce and gather slices around a ring of a node's ranks, in which each rank accesses
  /// its neighbours only. Sums are in any order.
  bool ring = false;
  /// Kernels that only gather slices from memory use the GPU's bulk copies.
  bool bulk = false;
  /// In overlaps of a matrix product: the number of blocks of the kernels that communicate, which
  /// run beside the product, on lane 1. The product leaves each block a multiprocessor. 0: kernels
  /// and product take turns.
  int beside = 0;
  /// The rows of the tiles that a kernel of `blocks` blocks makes a product in, and their columns,
  /// unless `tile_columns` says how many: a kernel that takes the product's elements itself (0:
  /// tiles of 64), or one in an overlap in which a kernel that communicates follows. That one runs
  /// beside it and waits for the tiles of each chunk; pieces are 1. 0 there: a library multiplies,
  /// piece by piece.
  int tiles = 0;
  int tile_columns = 0;
  /// Slabs of both operands, 64 elements deep, that tiles by warp groups of GPUs (wgmma, of sm_90a)
  /// have in shared memory; a product of f16 or bf16. 0: tiles by warps (mma.sync), or of f32.
  int stages = 0;
  /// With `stages`: the GPU's tensor memory accelerator brings the slabs, instead of the threads
  /// that multiply.
  bool tma = false;
  /// Kernels store what they exchange (AllToAll) at other ranks first and at their own last, each
  /// rank beginning with the one after it, instead of rank by rank.
  bool remote_first = false;
  /// Library collectives that are in no overlap run on lane 1, each as soon as its operand is
  /// ready, beside the computations that do not wait for it: those of this step and, if only a
  /// state takes the result, of the next one (BoundPlan::Advance).
  bool concurrent = false;
  /// With `concurrent`: AllReduces are collected until they have so many bytes together, in the
  /// types of the program's results, and are then done together; as in S. Li et al., PyTorch
  /// Distributed, VLDB 2020, section 3.2.3. None waits for one that needs its result. 0: each
  /// begins by itself.
  int64_t bucket = 0;
  /// Pieces of overlaps are columns of their tensors, not rows: each product has a part of the
  /// second operand, which no other piece takes, and all of the first.
  bool columns = false;
  /// The most packs of `vec` elements whose loads a thread issues before it uses the first, one
  /// block's packs apart; a power of two, 1..16. Each loop of a kernel takes as many as
  /// PacksToFetch (launch_shapes.h) says. On hosts, where loads are issued when they are used, only
  /// 1 is tried.
  int unroll = 1;
  /// The columns of a tile.
  int TileColumns() const { return tile_columns != 0 ? tile_columns : tiles; }
  bool operator==(const Config&) const = default;
};

/// The collectives that `protocol` leaves to a library on the ranks of `nodes` nodes.
LibraryDoes LeftToLibrary(Protocol protocol, int nodes);

std::string Text(const Config& config);
absl::StatusOr<Config> ParseConfig(absl::string_view text);
/// The config that some words of such a text describe, in any order, "threads=512 vec=4"; `base`
/// has the rest. Numbers that Text leaves out may be given, too: "bulk=0".
absl::StatusOr<Config> ParseConfigOver(absl::string_view words, const Config& base);

/// The machine and the numerics class: they bound the configs worth trying.
struct ConfigSpace {
  int ranks = 1;              // of a stage
  int nodes = 1;              // of a stage: kernels reach the ranks of one
  bool stages_apart = false;  // kernels do not reach from one stage to another
  int cores = 1;              // of one node, shared by its ranks
  int vector_bytes = 64;      // widest vector of the machine
  int multiprocessors = 0;    // of a GPU that a rank has for itself; 0: ranks are the host's
  int gemm_candidates = 1;    // ways of a GPU's library to multiply that are worth trying
  bool any_order = true;      // false: the numerics class demands summation in rank order
  bool library = true;        // false: so it does, or the library goes by way of the host
  bool multicast = false;     // ranks of a node have memory with addresses for all of them
  bool bulk = false;          // GPUs copy in bulk
  bool warp_groups = false;   // GPUs multiply by warp groups: wgmma
  bool ring = false;          // a rank may reach some of its node faster than others
};

/// The greatest Config::blocks, and Config::beside.
inline constexpr int kMaxBlocks = 1024;
/// The greatest Config::bucket that is tried.
inline constexpr int64_t kMostBucket = 25 << 20;

/// Returns every config that makes a distinct legal variant of `s`, in a deterministic order, the
/// plainest first. Empty if the schedule needs what `space` excludes, or has kernels that go
/// through a product's tiles where ranks are the host's, which Validate admits.
std::vector<Config> Configs(const Schedule& s, const ConfigSpace& space);

/// OK if `config` is legal for `s`, its ranges included; else InvalidArgument. Rows of the tuning
/// cache are checked with it.
absl::Status Validate(const Config& config, const Schedule& s, const ConfigSpace& space);

}  // namespace coconet
