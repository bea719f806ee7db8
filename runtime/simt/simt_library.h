#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/gemm/cublaslt_api.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"

namespace coconet {

/// Collectives between simulated GPUs: the host computes one when the streams of all its ranks have
/// come to it, and rounds as plans define.
class SimtLibrary final : public StreamLibrary {
 public:
  SimtLibrary(const Mesh& mesh, int rank, int lane) : mesh_(mesh), rank_(rank), lane_(lane) {}

  bool Takes(const CollectiveStep&) const override { return true; }
  int multiprocessors() const override { return 0; }
  absl::Status Enqueue(const CollectiveStep& step, const void* in, void* out, CUstream stream,
                       const std::function<bool()>& stopped) override;
  absl::Status Check() override { return absl::OkStatus(); }
  void Abort(const absl::Status& why) override;

 private:
  const Mesh mesh_;
  const int rank_, lane_;
  std::map<std::string, int> calls_;  // collectives so far, by group
};

absl::StatusOr<StreamLibraries> OpenSimtLibraries(const StreamLibraryTerms& terms);

/// The operands of one member of a collective; both may be the same memory.
struct CollectiveOperands {
  const char* in = nullptr;
  char* out = nullptr;
};
/// Computes a collective for all members.
void ComputeCollective(const CollectiveStep& step, absl::Span<const CollectiveOperands> members);

/// cuBLASLt on simulated GPUs: the host computes a product when its stream comes to it
/// (MakeHostCublasLt); accesses of products are checked like those of kernels.
absl::StatusOr<const CublasLtApi*> OpenSimtCublasLt();

}  // namespace coconet
