#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "coconet/base/dtype.h"

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

  /// Its fields are words of a worker's arguments (bench/harness/worker.h).
  static void VisitFields(auto& c, auto visit) {
    visit("dtype", c.dtype);
    visit("tokens", c.tokens);
    visit("hidden", c.hidden);
    visit("from_memory", c.from_memory);
    visit("seconds", c.seconds);
    visit("budget_s", c.budget_s);
    visit("peer", c.peer);
  }
};

/// The arguments of a worker for RunWorker, whose findings are by side:
///   ours      the program, tuned
///   stream    loads a rank's weights, all ranks at once
///   peak      as many multiplications and additions as a rank's product has
///   as_lies, packed, packed_f32   a careful user's: oneDNN with weights as stored, or rearranged
///             once, MPI_Allreduce, one vectorised loop; packed_f32 sums over ranks in f32
///   reduce    an AllReduce of ours of x's rows' size in f32 alone; mpi_reduce the same by MPI,
///             peer_reduce by the peer, where one is given
/// Facts "variant", "copies" of the weights, and "form": what oneDNN multiplies. Internal when ours
/// and a baseline differ by more than roundings.
std::vector<std::string> Arguments(const DecodeCase& c);

/// What `fused` measures of decode: weights that come from memory, and weights that fit a cache.
std::vector<DecodeCase> DecodeCases(DType dtype);

/// A row whose error, if any, is in it; other errors end the benchmark. "bound" is the larger of
/// the times that loading the weights and multiplying take.
absl::StatusOr<Row> DecodeRow(const DecodeCase& c, int ranks, const std::string& scratch);

}  // namespace coconet::bench
