#include "bench/baselines/mpi.h"

namespace coconet::bench {
namespace {

absl::Status Absent() { return absl::UnavailableError("this build has no MPI; run setup.sh"); }

}  // namespace

absl::Status MpiAllReduce(DType /*dtype*/, void* /*data*/, int64_t /*elements*/) {
  return Absent();
}
absl::Status MpiAllToAll(const float* /*data*/, absl::Span<const int64_t> /*sent*/,
                         float* /*arriving*/, absl::Span<const int64_t> /*received*/) {
  return Absent();
}
std::string MpiVersion() { return ""; }

}  // namespace coconet::bench
