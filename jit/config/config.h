#ifndef COCONET_JIT_CONFIG_CONFIG_H_
#define COCONET_JIT_CONFIG_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/units.h"

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
            // wait a step
  kLL,  // each rank sends its own to the others, in words of data and epoch, so that they wait for
        // the data alone; twice the bytes
};

/// Which stores bypass the cache (host: non-temporal).
enum class Streaming : uint8_t {
  kNone,
  kShared,  // stores to symmetric buffers, which a peer or the next step reads, not this rank
  kAll,     // all of them
};

/// What a schedule leaves open. Prints as "library vec=16 chunk=4096 blocks=1 stream=none
/// one-shot=pull", with "pieces=4" behind where these are not 1, "batch=131072" where that is not
/// 0, "threads=256" where these are not 1, "gemm=2" where that is not 0, "multicast=1" or "ring=1"
/// or "bulk=1" where it is so, and "beside=16" and "tiles=128" where these are not 0, and parses
/// back.
struct Config {
  Protocol protocol = Protocol::kLibrary;
  int vec = 16;  // elements a lane group handles at once; power of two, 1..64
  int64_t chunk =
      4096;        // elements between flags, and between hand-overs to blocks; multiple of vec
  int blocks = 1;  // thread blocks a kernel; on the host threads a rank
  Streaming streaming = Streaming::kNone;
  OneShot one_shot = OneShot::kPull;
  int pieces = 1;  // that each overlap of the schedule is cut into; 1: none overlaps
  /// Of a list's tensors: a kernel that sums up and then uses the sums takes so many of a rank's
  /// elements at a time, whole tensors or one, so that it finds them still in its cache when it
  /// reads them again. 0: all of them.
  int64_t batch = 0;
  int threads = 1;  // a block, on GPUs
  int gemm = 0;     // which of its library's ways a matrix product goes (GemmStep::candidate)
  /// Kernels reach all ranks at once where memory has an address for that (a switch between GPUs
  /// that adds up and repeats): sums of slices, in any order, and stores to all. Elsewhere as
  /// without.
  bool multicast = false;
  /// Slices are reduced and gathered around a ring of a node's ranks, each of which reaches its
  /// neighbours only: sums in any order.
  bool ring = false;
  /// Kernels that gather slices from memory, and do nothing else, have the GPU copy whole parts of
  /// them.
  bool bulk = false;
  /// In overlaps of a matrix product: the kernels that communicate run beside it, on lane 1, with
  /// so many blocks, and it leaves them a multiprocessor each. 0: they take turns with it.
  int beside = 0;
  /// In overlaps where a kernel that communicates comes after a product: a kernel makes that in
  /// tiles of so many rows and columns, with `blocks` blocks, and the other runs beside it and
  /// awaits the tiles of each chunk; pieces are 1. 0: a library multiplies, piece by piece.
  int tiles = 0;
  bool operator==(const Config&) const = default;
};

/// What `protocol` leaves to a library on the ranks of so many nodes.
LibraryDoes LeftToLibrary(Protocol protocol, int nodes);

std::string Text(const Config& config);
absl::StatusOr<Config> ParseConfig(absl::string_view text);

/// What bounds the configs worth trying.
struct ConfigSpace {
  int ranks = 1;              // of a stage
  int nodes = 1;              // of a stage: kernels reach the ranks of one
  bool stages_apart = false;  // kernels do not reach from one stage to another
  int cores = 1;              // of one node, shared by its ranks
  int vector_bytes = 64;      // widest vector of the machine
  int multiprocessors = 0;    // of a GPU that a rank has for itself; 0: ranks are the host's
  int gemm_candidates = 1;    // ways to multiply that are worth trying
  bool any_order = true;      // false: the numerics class demands summation in rank order
  bool library = true;        // false: so it does, or the library goes by way of the host
  bool multicast = false;     // ranks of a node have memory with addresses for all of them
  bool bulk = false;          // GPUs copy in bulk
  bool ring = false;          // a rank may reach some of its node faster than others
};

/// Every config that makes a distinct legal variant of `s`, deterministic, the plainest first.
/// Never empty, except when the schedule needs what `space` excludes.
std::vector<Config> Configs(const Schedule& s, const ConfigSpace& space);

/// Whether `batch` says something: a kernel of each tensor of a list folds it and goes over it
/// again, and adds nothing up over tensors.
bool WorksInBatches(const Schedule& s);

/// Whether `gemm` says something: there are matrix products.
bool Multiplies(const Schedule& s);

/// OK when `config` is legal for `s` (range checks in 64 bits included): rows of a cache are
/// checked with it.
absl::Status Validate(const Config& config, const Schedule& s, const ConfigSpace& space);

}  // namespace coconet

#endif  // COCONET_JIT_CONFIG_CONFIG_H_
