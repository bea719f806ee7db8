#ifndef COCONET_RUNTIME_CUDA_MEMORY_HANDLE_PASSING_H_
#define COCONET_RUNTIME_CUDA_MEMORY_HANDLE_PASSING_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/driver/retained.h"
#include "runtime/cuda/memory/virtual_memory.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// By world rank; null for those that pass none.
using MemoryHandles = std::vector<std::shared_ptr<MemoryHandle>>;

/// How ranks of a node hand each other the driver's handles of memory: threads and processes
/// differ.
class HandlePassing {
 public:
  virtual ~HandlePassing() = default;
  /// What handles are to be made for.
  virtual CUmemAllocationHandleType exported() const = 0;
  /// When all have come here since they gave up what was passed before.
  virtual void Prepare() {}
  /// Collective. What each of `group`, this rank's, passes; `mine`: null where that is nothing.
  /// Aborted and DeadlineExceeded are the exchange's; other errors this rank's alone.
  virtual absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                             std::shared_ptr<MemoryHandle> mine) = 0;
};

/// Threads of one process share them.
class ThreadHandlePassing final : public HandlePassing {
 public:
  explicit ThreadHandlePassing(Exchange& exchange) : exchange_(exchange) {}
  CUmemAllocationHandleType exported() const override { return CU_MEM_HANDLE_TYPE_NONE; }
  absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                     std::shared_ptr<MemoryHandle> mine) override;

 private:
  Exchange& exchange_;
};

/// Processes of one machine send each other open files that stand for them (HandleMail).
class FileHandlePassing final : public HandlePassing {
 public:
  /// `timeout_s`: how long to wait for files of peers.
  FileHandlePassing(const DriverApi& driver, Exchange& exchange, int rank, double timeout_s)
      : driver_(driver), exchange_(exchange), rank_(rank), timeout_s_(timeout_s) {}
  CUmemAllocationHandleType exported() const override {
    return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  void Prepare() override { ReleaseRetained(); }
  absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                     std::shared_ptr<MemoryHandle> mine) override;

 private:
  const DriverApi& driver_;
  Exchange& exchange_;
  int rank_;
  double timeout_s_;
};

/// Processes with access to one IMEX channel exchange them as bytes, also where files cannot pass
/// from one to the other.
class FabricHandlePassing final : public HandlePassing {
 public:
  FabricHandlePassing(const DriverApi& driver, Exchange& exchange, int rank)
      : driver_(driver), exchange_(exchange), rank_(rank) {}
  CUmemAllocationHandleType exported() const override { return CU_MEM_HANDLE_TYPE_FABRIC; }
  void Prepare() override { ReleaseRetained(); }
  absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                     std::shared_ptr<MemoryHandle> mine) override;

 private:
  const DriverApi& driver_;
  Exchange& exchange_;
  int rank_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_HANDLE_PASSING_H_
