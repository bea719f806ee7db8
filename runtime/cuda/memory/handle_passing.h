#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/cuda/memory/virtual_memory.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// By world rank; null for ranks that pass none.
using MemoryHandles = std::vector<std::shared_ptr<MemoryHandle>>;

/// How ranks of a node pass each other the driver's memory handles; worlds of threads and of
/// processes differ.
class HandlePassing {
 public:
  virtual ~HandlePassing() = default;
  /// The handle type that memory must be created with.
  virtual CUmemAllocationHandleType exported() const = 0;
  /// Called when all ranks have released the handles passed before.
  virtual void Prepare() {}
  /// Collective. Returns the handles that the ranks of `group`, which includes this one, pass.
  /// `mine`: null to pass none. Aborted and DeadlineExceeded are errors of the exchange, on all
  /// ranks; other errors are this rank's only.
  virtual absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                             std::shared_ptr<MemoryHandle> mine) = 0;
};

/// Between threads of one process, which share handles.
class ThreadHandlePassing final : public HandlePassing {
 public:
  explicit ThreadHandlePassing(Exchange& exchange) : exchange_(exchange) {}
  CUmemAllocationHandleType exported() const override { return CU_MEM_HANDLE_TYPE_NONE; }
  absl::StatusOr<MemoryHandles> Pass(const Members& group,
                                     std::shared_ptr<MemoryHandle> mine) override;

 private:
  Exchange& exchange_;
};

/// Between processes of one machine, as file descriptors (HandleMail).
class FileHandlePassing final : public HandlePassing {
 public:
  /// `timeout_s`: how long to wait for peers' files, in seconds.
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

/// Between processes with access to one IMEX channel, as bytes; works also if file descriptors
/// cannot be passed.
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
