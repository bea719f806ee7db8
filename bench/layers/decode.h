#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/finding.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A product of few rows and what follows it, as in the workload decode: h = sum over ranks of
/// x . w^T + r; y = rms_norm(h) * g, with x [tokens, hidden] and w [hidden, hidden] sliced over the
/// summed dimension.
struct DecodeCase {
  DType dtype = DType::kF32;  // kF32 or kBF16
  int64_t tokens = 0, hidden = 0;
  bool from_memory = true;  // steps take turns with weights that together exceed the caches
  double seconds = 5;       // of the rounds
  double budget_s = 20;     // of tuning
  std::string peer;         // path of peer_reduce.h's shared object; "": none
};

/// Collective, for processes. Findings by side:
///   ours      the program, tuned
///   stream    loads a rank's weights, all ranks at once
///   peak      as many multiplications and additions as a rank's product has
///   as_lies, packed, packed_f32   a careful user's: oneDNN with weights as stored, or rearranged
///             once, MPI_Allreduce, one vectorised loop; packed_f32 sums over ranks in f32
///   reduce    an AllReduce of ours of x's rows' size in f32 alone; mpi_reduce the same by MPI,
///             peer_reduce by the peer, where one is given
/// Facts "variant", "copies" of the weights, and "form": what oneDNN multiplies. Internal when ours
/// and a baseline differ by more than roundings.
absl::StatusOr<std::vector<Finding>> MeasureDecode(Rank& rank, const DecodeCase& c);

/// A worker's arguments, and the case that this program's flags give; nullopt: not a worker.
std::vector<std::string> Arguments(const DecodeCase& c);
absl::StatusOr<std::optional<DecodeCase>> DecodeCaseFromFlags();
/// A worker's main function; writes its findings where RunWorker expects them.
absl::Status WorkOn(const DecodeCase& c);

}  // namespace coconet::bench
