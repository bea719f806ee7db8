#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "runtime/exchange.h"
#include "runtime/memory.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"

namespace coconet {

class CallLog;

// The interfaces that a backend implements. Each rank has one object of each, used by that rank's
// thread only unless noted. Calls marked "collective" must be made by all ranks in the same order;
// on failure they fail on every rank: DeadlineExceeded when a peer does not arrive within the
// deadline, Aborted when a peer has left the world or reported an error.

/// A kAllToAll with its operands, and the counts of step.rows if it has them.
struct AllToAllCall {
  const CollectiveStep* step = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  const int32_t *leaving = nullptr, *arriving = nullptr;
};

/// A kAllReduce of `count` elements from `in` to `out`, which may be the same.
struct AllReduceCall {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0;
};

/// Data plane: library collectives between the ranks of a group (CollectiveStep defines them), on
/// host or device memory. Calls block on the host backend. Thread-compatible: one call at a time,
/// from any thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// The name in tables: "thread", "shm" (processes of one node), "mpi" (of several nodes), "nccl",
  /// "staged" (GPUs, copied by way of the host).
  virtual absl::string_view name() const = 0;
  /// Announces that the next collectives are those of step `step` of a plan, a number that is
  /// unique to it; 0: of none. Ranks that meet with different numbers leave, with what they call,
  /// and take no data. GPUs' libraries do not compare it.
  virtual void Announce(uint64_t /*step*/) {}
  /// Does `step`, which has no `exchanged`, with the operands `in` and `out`; ignores its buffers,
  /// group and lane. A send waits for the two neighbouring pipeline stages only.
  virtual absl::Status Run(const CollectiveStep& step, const void* in, void* out) = 0;
  /// Does independent kAllToAlls of one group: none reads another's result. Calls with
  /// `step.exchanged` only on hosts, else Unimplemented.
  virtual absl::Status AllToAlls(absl::Span<const AllToAllCall> calls);

  /// Does independent kAllReduces of one dtype and operation: none reads another's result. Each sum
  /// has the bits of one that is done alone; across nodes they take the messages of one.
  virtual absl::Status AllReduces(absl::Span<const AllReduceCall> calls, DType dtype,
                                  ReduceKind kind);

  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind);
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype, int64_t stride);
};

/// The time that a step took in its lane: from when its predecessor in the lane and all steps in
/// `after` were done until it was done. Microseconds since the run of the plan began.
struct StepSpan {
  std::string label;
  int lane = 0;
  double begin_us = 0, end_us = 0;
};

/// The loaded kernels of one plan.
class Module {
 public:
  virtual ~Module() = default;
  virtual absl::StatusOr<void*> Symbol(absl::string_view name) const = 0;  // else NotFound
};

/// A plan whose buffers and kernels are resolved to addresses. Owns the flags and the Control of
/// its steps, so that two bindings of one plan can be in flight at once.
class BoundPlan {
 public:
  virtual ~BoundPlan() = default;  // collective
  /// Not collective: executes every step once and returns when this rank is done. Does not
  /// allocate, lock or look up. After an error every later call returns that first error, which
  /// names rank, step and flag.
  virtual absl::Status Run() = 0;
  /// The same, but hosts return while Plan::outlasting may still run. States and temporaries are
  /// the plan's own until Wait or Run; inputs and outputs are not. The next call of Advance, Run or
  /// Wait returns errors of the steps that were still running.
  virtual absl::Status Advance() { return Run(); }
  /// Runs the plan `steps` times, as Advance does, then Wait. GPUs enqueue a run before the
  /// previous one has ended, if possible.
  virtual absl::Status RunSteps(int64_t steps);
  /// GPUs: enqueues one run in `stream` (a CUstream or cudaStream_t) and returns. If the stream is
  /// being captured, the run becomes part of the graph; FailedPrecondition for plans with library
  /// collectives. Wait and every later call report errors of the run. Ranks that share a GPU need
  /// streams of their own: in a common stream each would wait for the next. Unimplemented without
  /// streams; FailedPrecondition if a step goes by way of the host.
  virtual absl::Status Enqueue(void* stream);
  /// Waits for all runs given to Enqueue and Advance; if some were given to Rank::stream, for all
  /// work in it. The caller must wait for graphs of its own; Wait then reports the errors of the
  /// runs in them.
  virtual absl::Status Wait();
  /// GPUs: `steps` runs as one graph. Each Run or Enqueue of the result launches all of them by one
  /// driver call. Destroy the result before this plan, and do not use both concurrently. Errors as
  /// of Enqueue; FailedPrecondition also for library collectives.
  virtual absl::StatusOr<std::unique_ptr<BoundPlan>> Capture(int64_t steps);
  /// Hosts: the next `waits` waits of this rank's kernels that a peer's flag does not end at once
  /// last `ns` longer. A verifier makes ranks late by it in the midst of a step. Not during a run.
  virtual void DelayWaits(int waits, int64_t ns);
  /// InvalidArgument if a step of a peer or of this rank has written behind the flags or the
  /// counters that this plan owns. Not during a run of any rank.
  virtual absl::Status CheckSyncGuards() const { return absl::OkStatus(); }
  /// One run, with the time span of each step, by the GPU's clock or the host's. If a library does
  /// several collectives together, the first has the time, and the others have none.
  virtual absl::StatusOr<std::vector<StepSpan>> Trace();
};

/// Facts about the machine as one rank sees it; equal on all ranks of one node. Filled in when the
/// rank's device is opened; capabilities are fields, never parsed from names.
struct Topology {
  std::string device;   // "AMD EPYC 9654 avx512f avx512bw ...": goes into keys, decides nothing
  std::string library;  // name and version of the library that runs plans' collectives: "mpi Open
                        // MPI 4.1.4"
  int nodes = 1;        // of the world; if stages cut a node, its parts
  int ranks_per_node = 1;
  int cores = 1;           // that the ranks of this machine may run on
  int vector_bytes = 16;   // of the widest vector registers of the processor that runs kernels
  std::string arch = "";   // the GPU architecture that kernels are compiled for: "sm_90a"; "":
                           // the host's compiler compiles them
  bool simulated = false;  // the rank's GPU is simulated: its times mean nothing
  bool bulk_copies =
      false;  // the GPU's kernels copy memory in bulk, from compute capability 9.0 on
  bool warp_groups = false;     // they multiply matrices by warp groups (wgmma): of 9.0 alone
  int multiprocessors = 0;      // of the rank's GPU; 0: it has none
  int ranks_per_gpu = 1;        // that share this GPU
  int own_multiprocessors = 0;  // of the GPU's, those that run only this rank's kernels; 0: all run
                                // the kernels of all its ranks
  bool multicast =
      false;       // symmetric memory has addresses that reach all ranks of the node at once
  int driver = 0;  // version of CUDA that the GPU's driver supports, 13000 for 13.0; 0: no GPU
  int64_t memory_bytes = 0;      // of the machine, or its limit for this process; 0: not known
  int64_t gpu_memory_bytes = 0;  // of the rank's GPU; 0: it has none
  /// How the GPUs of the node's ranks reach each other: "all atomic", or a matrix by rank, "-
  /// plain; plain -" (LinksText in runtime/cuda/links.h); "": one rank, or no GPUs.
  std::string links = {};
  bool staged = false;    // collectives of `library` pass through the host, though ranks are GPUs
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
  int stage_rank() const { return rank() % mesh().stage_size(); }  // number in the pipeline stage
  virtual const Topology& topology() const = 0;
  virtual Exchange& exchange() = 0;  // spans the world
  /// This rank's calls, which its peers see. Waits for peers, and `exchange`, compare them with the
  /// peers' calls: a difference is an error on all ranks that names both. Null: calls are not
  /// compared.
  virtual CallLog* calls() { return nullptr; }
  /// OK until some rank leaves: then all of them fail.
  virtual absl::Status CheckWorld() const { return absl::OkStatus(); }
  virtual Communicator& library(Group group) = 0;
  Communicator& library() { return library(Group::kStage); }

  /// Zero-filled memory. ResourceExhausted, on all ranks, when it does not fit in what the machine
  /// has left (later accesses never fault). Collective when `symmetric`: then ranks that share
  /// memory can address each other's.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) = 0;

  /// Like Allocate, not symmetric, for a few words that the host sets between runs and this rank's
  /// kernels read: own() is valid on both host and device.
  virtual absl::StatusOr<std::unique_ptr<Memory>> AllocateWords(int64_t bytes) {
    return Allocate(bytes, /*symmetric=*/false);
  }

  /// `bytes` bytes of the caller's, at `address`: in memory of the rank's GPU, or of the host if it
  /// has none. The caller keeps them until no rank has the result. Collective when `symmetric`:
  /// then ranks that share memory can address each other's, whose sizes may differ; Unimplemented,
  /// on all ranks, if one cannot let its peers address it.
  virtual absl::StatusOr<std::unique_ptr<Memory>> Adopt(void* address, int64_t bytes,
                                                        bool symmetric) = 0;
  /// OK if the rank's GPU has the byte at `address`; else InvalidArgument that names its owner.
  virtual absl::Status CheckOnGpu(const void* address) const;

  /// Name and version of a matrix library that was opened at run time: "cublaslt 13.0.2"; "" if it
  /// is part of this build or missing.
  virtual std::string Products() { return ""; }

  /// The rank's own stream (a CUstream), in which Run runs steps; null on hosts. Callers may put
  /// work of their own there, as long as the rank lives: Enqueue in it takes the fewest calls of
  /// the driver.
  virtual void* stream() const { return nullptr; }

  /// Loads a binary compiled for this backend. On the host `path` names a shared object.
  virtual absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) = 0;

  /// Collective. `buffers[i]` backs plan.buffers[i]: at least as large, symmetric if the plan says
  /// so, and outliving the result. Entries of kSync buffers are ignored: the plan has memory of its
  /// own for these, zero-filled. `timeout_s`: deadline of one wait, seconds; <= 0: the world's.
  /// InvalidArgument when the plan is not well formed, does not fit the buffers, or differs between
  /// ranks.
  virtual absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                          absl::Span<Memory* const> buffers,
                                                          double timeout_s) = 0;

  /// Leaves the world: the peers' waits end with Aborted("rank N left: <why>").
  virtual void Leave(const absl::Status& why) = 0;
};

/// The body of each rank of a world.
using RankBody = std::function<absl::Status(Rank&)>;

}  // namespace coconet
