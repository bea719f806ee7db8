#include "bench/mpi.h"

namespace coconet::bench {
namespace {

absl::Status Absent() {
  return absl::UnavailableError("MPI_Allreduce: this build has no MPI; run setup.sh");
}

}  // namespace

absl::Status MpiAllReduce(float* /*data*/, int64_t /*elements*/) { return Absent(); }
absl::Status MpiAllReduceHalf(uint16_t* /*data*/, int64_t /*elements*/) { return Absent(); }
absl::Status MpiAllReduceBf16(uint16_t* /*data*/, int64_t /*elements*/) { return Absent(); }
std::string MpiVersion() { return ""; }

}  // namespace coconet::bench
