#ifndef COCONET_RUNTIME_RANK_H_
#define COCONET_RUNTIME_RANK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"

namespace coconet {

/// The small interfaces that a backend implements. One object of each a rank; used by that rank's
/// thread only, unless said. Calls marked "collective" must be made by all ranks in the same order;
/// they fail on every rank, with DeadlineExceeded, when a peer does not come within the deadline,
/// and with Aborted when a peer has left the world or reported an error.

/// Control plane: small messages between ranks. Never on the path of Run.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective. Everyone's bytes, by rank.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) = 0;
  absl::Status Barrier();                                         // collective
  absl::StatusOr<std::string> Broadcast(absl::string_view mine);  // collective; rank 0's bytes
  /// Collective. The maximum over ranks.
  absl::StatusOr<double> Max(double mine);
  /// Collective. OK when all are; else on all ranks the first failing rank's status, prefixed "rank
  /// N: ".
  absl::Status Agree(const absl::Status& mine);
  /// Collective. OK when all ranks have the same text; else InvalidArgument, with the first line
  /// that differs.
  absl::Status CheckSame(absl::string_view what, const std::string& mine);
};

/// Data plane, tier 1: library collectives between the ranks of a group (CollectiveStep says what
/// they do), on host or device memory. Blocking on the host backend; calls may come from any one
/// thread at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual absl::string_view name()
      const = 0;  // "thread", "shm" (processes of a node), "mpi" (of several), "nccl", "staged"
                  // (GPUs' by way of the host): as tables show it
  virtual absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype,
                                 ReduceKind kind) = 0;
  /// `stride`, at least `count`: elements from one block of `in` to the next.
  virtual absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype,
                                     ReduceKind kind, int64_t stride) = 0;
  /// `stride`: the same of `out`, where nothing else is written.
  virtual absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype,
                                 int64_t stride) = 0;
  virtual absl::Status Broadcast(const void* in, void* out, int64_t count, DType dtype,
                                 int root) = 0;
  virtual absl::Status Reduce(const void* in, void* out, int64_t count, DType dtype,
                              ReduceKind kind, int root) = 0;
  virtual absl::Status AllToAll(const void* in, void* out, int64_t count, DType dtype) = 0;
  /// Between groups: to the rank at this place of the stage `shift` (1 or -1) after. Waits for
  /// those two neighbours only.
  virtual absl::Status Send(const void* in, void* out, int64_t count, DType dtype, int shift) = 0;
};

/// Memory that the host does not reach by its addresses. Thread-safe.
class FarSpace {
 public:
  virtual ~FarSpace() = default;
  /// Between it and the host's memory, whichever way; done when it returns.
  virtual absl::Status Copy(const void* from, int64_t bytes, void* to) const = 0;
};

/// Device memory. Zero-filled, aligned to 2 MiB when that large, else to 64 bytes.
class Memory {
 public:
  virtual ~Memory() = default;  // collective for symmetric memory: peers may still be using it
  void* own() const { return peers_[rank_]; }
  /// The memory of world rank `rank`, as this rank addresses it; null where they share none
  /// (mesh.h), and, unless symmetric, on all but this one.
  void* peer(int rank) const { return peers_[rank]; }
  /// That of all ranks of the node at once, for multicast instructions of this rank's kernels only;
  /// null where there is no such address.
  void* multicast() const { return multicast_; }
  int64_t bytes() const { return bytes_; }
  bool symmetric() const { return symmetric_; }
  /// Null where own() is an address of the host's, too.
  const std::shared_ptr<const FarSpace>& space() const { return space_; }

  /// Copies this rank's own bytes from `offset` on to the host's memory, or from it. Not while a
  /// plan uses them.
  absl::Status Read(int64_t offset, int64_t bytes, void* to) const;
  absl::Status Write(int64_t offset, int64_t bytes, const void* from);

 protected:
  Memory(int rank, int64_t bytes, bool symmetric, std::vector<void*> peers,
         std::shared_ptr<const FarSpace> space = nullptr, void* multicast = nullptr)
      : rank_(rank),
        bytes_(bytes),
        symmetric_(symmetric),
        peers_(std::move(peers)),
        space_(std::move(space)),
        multicast_(multicast) {}
  int rank_;
  int64_t bytes_;
  bool symmetric_;
  std::vector<void*> peers_;
  std::shared_ptr<const FarSpace> space_;
  void* multicast_;
};

/// The first bytes of a rank's own memory as the host sees them: the memory itself where it can,
/// else a copy.
class HostView {
 public:
  /// As they are.
  static absl::StatusOr<HostView> Of(Memory& memory, int64_t bytes);
  /// To be written whole: what they are does not count.
  static HostView Blank(Memory& memory, int64_t bytes);

  char* data() { return copy_ == nullptr ? static_cast<char*>(memory_->own()) : copy_.get(); }
  /// What was written here is in the memory when it returns.
  absl::Status Store();

 private:
  HostView(Memory& memory, int64_t bytes, std::unique_ptr<char[]> copy)
      : memory_(&memory), bytes_(bytes), copy_(std::move(copy)) {}

  Memory* memory_;
  int64_t bytes_;
  std::unique_ptr<char[]> copy_;
};

/// Kernels of one plan, loaded.
class Module {
 public:
  virtual ~Module() = default;
  virtual absl::StatusOr<void*> Symbol(absl::string_view name) const = 0;  // NotFound
};

/// A plan with its buffers and kernels resolved to addresses. Owns the flags and the Control of its
/// steps: a second one of the same plan can be in flight.
class BoundPlan {
 public:
  virtual ~BoundPlan() = default;  // collective
  /// Local call: executes every step once and returns when this rank is done. No allocation, lock,
  /// or lookup. After an error every later call returns that first error, which names rank, step
  /// and flag.
  virtual absl::Status Run() = 0;
  /// Run, so many times. On GPUs a step is enqueued before the last one has ended, where that is
  /// possible.
  virtual absl::Status RunSteps(int64_t steps);
  /// GPUs: enqueues one step behind what `stream` (a CUstream or cudaStream_t) holds, and returns.
  /// In a stream that is being captured the step becomes part of the graph (not a library's
  /// collectives: FailedPrecondition). What the step then meets is said by Wait and by every later
  /// call. Ranks that share a GPU have streams of their own: in one, each would wait for the next.
  /// Unimplemented where there are no streams; FailedPrecondition where a step goes by way of the
  /// host.
  virtual absl::Status Enqueue(void* stream);
  /// Returns when what Enqueue was given is done. Graphs of the caller's own are the caller's to
  /// wait for; Wait then says whether their steps went well.
  virtual absl::Status Wait();
  /// GPUs: so many steps as one graph. Each Run or Enqueue of the result is all of them, by one
  /// call of the driver. To be destroyed before this plan, and not to be used beside it. Errors as
  /// of Enqueue; FailedPrecondition also for a library's collectives.
  virtual absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps);
  /// GPUs: Run, and when each step of the plan was under way, by the GPU's clock. Unimplemented
  /// elsewhere.
  virtual absl::StatusOr<std::vector<StepSpan>> Trace();
};

/// Facts about the machine as one rank sees it; equal on all ranks of one node. Filled where the
/// rank's device is opened; nobody reads capabilities out of names.
struct Topology {
  std::string device;   // "AMD EPYC 9654 avx512f avx512bw ...": goes into keys, decides nothing
  std::string library;  // name and version of the library that runs plans' collectives: "mpi Open
                        // MPI 4.1.4"
  int nodes = 1;        // of the world; where stages cut a node, its parts
  int ranks_per_node = 1;
  int cores = 1;           // that the ranks of this machine may run on
  int vector_bytes = 16;   // of the widest vector registers of the processor that runs kernels
  std::string arch = "";   // the GPU architecture that kernels are compiled for: "sm_90a"; "":
                           // the host's compiler compiles them
  bool simulated = false;  // the rank's GPU is simulated: its times mean nothing
  bool bulk_copies =
      false;                // the GPU's kernels copy memory in bulk, from compute capability 9.0 on
  int multiprocessors = 0;  // of the rank's GPU; 0: it has none
  int ranks_per_gpu = 1;    // that share this GPU
  int own_multiprocessors = 0;  // of the GPU's, those that run only this rank's kernels; 0: all run
                                // the kernels of all its ranks
  bool multicast =
      false;            // symmetric memory has addresses that reach all ranks of the node at once
  int driver = 0;       // version of CUDA that the GPU's driver supports, 13000 for 13.0; 0: no GPU
  bool staged = false;  // collectives of `library` pass through the host, though ranks are GPUs
  std::string note = {};  // why something of this is worse than it could be, for people; in no key
};

/// One rank's endpoint of a world.
class Rank {
 public:
  virtual ~Rank() = default;
  virtual int rank() const = 0;  // in the world
  virtual int size() const = 0;  // of the world
  virtual const Mesh& mesh() const = 0;
  int stage() const { return rank() / mesh().stage_size(); }
  int stage_size() const { return mesh().stage_size(); }
  int stage_rank() const { return rank() % mesh().stage_size(); }  // its number in the stage
  virtual const Topology& topology() const = 0;
  virtual Exchange& exchange() = 0;  // spans the world
  virtual Communicator& library(Group group) = 0;
  Communicator& library() { return library(Group::kStage); }

  /// ResourceExhausted, on all ranks, when it does not fit in what the machine has left; never a
  /// signal later. Collective when `symmetric`: then ranks that share memory reach each other's.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) = 0;

  /// The same for a few words that the host sets between steps, and kernels of this rank read:
  /// own() is an address of both. Not symmetric.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateWords(int64_t bytes) {
    return Allocate(bytes, /*symmetric=*/false);
  }

  /// Name and version of the library that multiplies matrices, opened for that: "cublaslt 13.0.2";
  /// "": it is part of this build, or there is none.
  virtual std::string Products() { return ""; }

  /// Loads a binary made for this backend: a shared object's path on the host.
  virtual absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) = 0;

  /// Collective. `buffers[i]` backs plan.buffers[i] and must be at least that large, symmetric
  /// where the plan says so, and outlive the result; entries of kSync buffers are ignored
  /// (allocated here, zero-filled). `timeout_s`: deadline of one wait; <= 0: the world's.
  /// InvalidArgument when the plan, which the ranks must agree on, does not fit.
  virtual absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                          absl::Span<Memory* const> buffers,
                                                          double timeout_s) = 0;

  /// Tells the others that this rank gives up: their waits end with Aborted("rank N left: <why>").
  virtual void Leave(const absl::Status& why) = 0;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_RANK_H_
