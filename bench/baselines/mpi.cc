#include "bench/baselines/mpi.h"

#include <mpi.h>

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/baselines/kernels.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

template <auto kAdd>
void Add(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  (BestKernels().*kAdd)(static_cast<const uint16_t*>(in), static_cast<uint16_t*>(inout), *count);
}

MPI_Op MakeSum(MPI_User_function* add) {
  MPI_Op made;
  MPI_Op_create(add, /*commute=*/1, &made);
  return made;
}

/// Counts and the offsets that follow from them, as MPI takes them.
struct Blocks {
  std::vector<int> counts, offsets;
};
absl::StatusOr<Blocks> BlocksOf(absl::Span<const int64_t> counts) {
  Blocks blocks;
  int64_t offset = 0;
  for (int64_t count : counts) {
    if (offset + count > std::numeric_limits<int>::max())
      return absl::InvalidArgumentError("MPI_Alltoallv: want at most 2^31 - 1 elements");
    blocks.counts.push_back(static_cast<int>(count));
    blocks.offsets.push_back(static_cast<int>(offset));
    offset += count;
  }
  return blocks;
}

}  // namespace

absl::Status MpiAllReduce(DType dtype, void* data, int64_t elements) {
  static const MPI_Op of_halves = MakeSum(&Add<&Kernels::add_half>),
                      of_bf16 = MakeSum(&Add<&Kernels::add_bf16>);
  if (elements > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("MPI_Allreduce: want at most ",
                                                   std::numeric_limits<int>::max(),
                                                   " elements, have ", elements));
  }
  const bool is_f32 = dtype == DType::kF32;
  const MPI_Op sum = is_f32 ? MPI_SUM : dtype == DType::kF16 ? of_halves : of_bf16;
  const int code = MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(elements),
                                 is_f32 ? MPI_FLOAT : MPI_UINT16_T, sum, MPI_COMM_WORLD);
  return code == MPI_SUCCESS ? absl::OkStatus()
                             : absl::InternalError(absl::StrCat("MPI_Allreduce: error ", code));
}

absl::Status MpiAllToAll(const float* data, absl::Span<const int64_t> sent, float* arriving,
                         absl::Span<const int64_t> received) {
  ASSIGN_OR_RETURN(const Blocks to, BlocksOf(sent));
  ASSIGN_OR_RETURN(const Blocks from, BlocksOf(received));
  const int code =
      MPI_Alltoallv(data, to.counts.data(), to.offsets.data(), MPI_FLOAT, arriving,
                    from.counts.data(), from.offsets.data(), MPI_FLOAT, MPI_COMM_WORLD);
  return code == MPI_SUCCESS ? absl::OkStatus()
                             : absl::InternalError(absl::StrCat("MPI_Alltoallv: error ", code));
}

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  // "Open MPI v4.1.4, package: ..., ident: ...": the rest identifies the builder.
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text, length), absl::MaxSplits(',', 1));
  return parts[0];
}

}  // namespace coconet::bench
