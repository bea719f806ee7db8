#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/harness/row.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/types.h"

namespace coconet::bench {

/// A worker's measurement of model or pipeline parallelism.
struct ModelCase {
  enum class Kind : uint8_t {
    kEpilogue,  // a product, its sum over ranks and an epilogue, against oneDNN and MPI
    /// The same across nodes: with and without overlap, and computation and communication alone.
    kAcross,
    kPipeline,  // the boundary of two pipeline stages: overlapped, as written, by slices
  };
  Kind kind{};
  DType dtype = DType::kF32;
  Sizes sizes;              // of the workload's symbols
  double seconds = 5;       // of the rounds
  double budget_s = 20;     // of tuning one contender
  bool parts_only = false;  // of kAcross: computation and communication alone

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.kind, c.dtype, c.sizes, c.seconds, c.budget_s, c.parts_only);
  }
};

/// The arguments of a worker for RunWorker, whose findings are by side. kEpilogue: "ours",
/// "baseline", "product" (oneDNN alone), the latter two also "_packed" (weights rearranged once,
/// before), "rest" (loads and stores besides the product). kAcross: "overlapped", "sequential",
/// "computation", "communication", and facts "cores" of each, and "bytes" that leave a node.
/// kPipeline: "overlapped", "sequential" (AR; C; send), "slices" (RS; C; send; AG). Facts "variant"
/// by side.
std::vector<std::string> Arguments(const ModelCase& c);

/// The common first fields of rows: "case", "ranks", "processes", "dtype", "sizes", "budget_s".
Row NewModelRow(absl::string_view name, const ModelCase& c, int ranks, absl::string_view processes);

}  // namespace coconet::bench
