#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/rank_place.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/driver/green_context.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/gemm/cublaslt.h"
#include "runtime/cuda/gemm/cublaslt_api.h"
#include "runtime/cuda/memory/gpu_sharing.h"
#include "runtime/cuda/memory/handle_passing.h"
#include "runtime/cuda/memory/multicast_sharing.h"
#include "runtime/kernel_abi.h"
#include "runtime/node/sync_pool.h"
#include "runtime/rank.h"

namespace coconet {

/// The libraries that a world of GPUs uses. The driver must outlive it.
struct CudaLibraries {
  const DriverApi& driver;
  OpensCublasLt open_cublaslt = OpenCublasLt;  // called when a plan multiplies matrices
  OpenStreamLibraries open_libraries = {};     // if set, called if each rank has a GPU of its own
  bool on_shared_gpus = false;        // also if ranks that are processes share one: for tests
  NamesBuffer name_buffer = nullptr;  // if set, is told the names of the plans' buffers
  /// Threads that share a GPU get multiprocessors of their own if its driver supports that.
  bool green_contexts = true;
  bool multicast = true;  // use multicast addresses if the GPUs have them
  Control control = {};   // initial value of each plan's; not zero if kernels run on the host
};

/// A rank that computes on a GPU; a thread of its process, or the whole process. Several ranks may
/// share a GPU: then each has its own streams, on multiprocessors of its own if possible, and all
/// blocks that wait for each other must be resident at once.
class CudaRank final : public Rank {
 public:
  struct Parts {
    CudaLibraries libraries;
    RankPlace place;
    std::shared_ptr<Device> device;
    std::unique_ptr<GpuSharing> sharing;
    GpuPart part = {};
    std::vector<std::shared_ptr<HandlePassing>> passings = {};  // for multicast: tried in order
  };
  /// Collective. Unimplemented if the ranks' GPUs cannot address each other's memory.
  static absl::StatusOr<std::unique_ptr<Rank>> Make(Parts parts);
  ~CudaRank() override;

  int rank() const override { return parts_.place.rank; }
  int size() const override { return mesh().size(); }
  const Mesh& mesh() const override { return parts_.place.mesh; }
  const Topology& topology() const override { return topology_; }
  Exchange& exchange() override { return *parts_.place.exchange; }
  CallLog* calls() override { return &parts_.place.board.calls(rank()); }
  absl::Status CheckWorld() const override { return parts_.place.board.Left(); }
  /// On host memory, whatever library plans use; its name is that library's.
  Communicator& library(Group group) override { return *libraries_[static_cast<size_t>(group)]; }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateWords(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> Adopt(void* address, int64_t bytes,
                                                bool symmetric) override;
  absl::Status CheckOnGpu(const void* address) const override;
  std::string Products() override;
  void* stream() const override { return streams_[0]; }
  absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                  absl::Span<Memory* const> buffers,
                                                  double timeout_s) override;
  void Leave(const absl::Status& why) override { parts_.place.board.Leave(rank(), why); }

 private:
  explicit CudaRank(Parts parts);
  /// Creates the rank's streams.
  absl::Status Open();
  /// Collective. Counts the ranks that share this GPU, and finds out how the node's GPUs are
  /// linked.
  absl::Status LookAround();
  /// `status`; with the GPU's name if the GPU runs nothing more after the error.
  absl::Status Named(const absl::Status& status) const;
  /// Collective.
  absl::Status OpenLibraries();
  /// Collective. Shares memory by the library's windows; `why`: the reason why it cannot be shared
  /// otherwise.
  absl::Status OpenWindows(const absl::Status& why);
  StreamLibraryTerms LibraryTerms();
  /// Collective. Finds out whether multicast addresses are available.
  absl::Status OpenMulticast();
  /// Collective: allocates symmetric memory. `multicast`: with a multicast address if available.
  absl::StatusOr<std::unique_ptr<Memory>> Share(int64_t bytes, bool multicast);
  void AddNote(const std::string& note);
  /// Collective. Makes synchronization memory of a layout's bytes; OpenControl adds the rank's stop
  /// word and its Control.
  absl::StatusOr<std::unique_ptr<SyncSet>> MakeSync(const SyncLayout& bytes);
  void NameBuffers(const CudaExecutor::Parts& parts, absl::Span<Memory* const> buffers) const;
  /// Fills synchronization memory that is used again with zeros, and writes the plan's Control.
  absl::Status OpenControl(CudaExecutor::Parts& parts);
  /// Opens cuBLASLt on the first call.
  absl::StatusOr<std::shared_ptr<const CublasLt>> Library();

  Parts parts_;
  std::optional<InContext> current_;  // the rank's thread calls the driver for this GPU
  Topology topology_;
  std::shared_ptr<const FarSpace> space_;
  std::array<CUstream, kLanes> streams_ = {};
  std::shared_ptr<const CublasLt> cublaslt_;
  StreamLibraries stream_libraries_;
  SyncPool sync_;
  std::unique_ptr<MulticastSharing> multicast_;  // null: no multicast addresses
  Libraries libraries_;
};

}  // namespace coconet
