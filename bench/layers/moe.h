#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// A layer of a mixture of experts across nodes: the workload moe, with a group of tokens per rank.
struct MoeCase {
  DType dtype = DType::kF32;           // kF32 or kBF16
  int64_t experts = 0, per_token = 0;  // each token goes to so many different experts
  int64_t tokens = 0;                  // of each rank
  int64_t hidden = 0, inner = 0;       // H and F
  double zipf = 0;                     // exponent of how often experts are chosen; 0: equally
  bool parts_only = false;             // "computation" and "sending" alone
  double seconds = 5;                  // of the rounds
  double budget_s = 20;                // of tuning one contender

  /// Its fields are words of a worker's arguments (bench/harness/worker.h).
  static void VisitFields(auto& c, auto visit) {
    visit("dtype", c.dtype);
    visit("experts", c.experts);
    visit("per_token", c.per_token);
    visit("tokens", c.tokens);
    visit("hidden", c.hidden);
    visit("inner", c.inner);
    visit("zipf", c.zipf);
    visit("parts_only", c.parts_only);
    visit("seconds", c.seconds);
    visit("budget_s", c.budget_s);
  }
};

/// What `fused` measures of a mixture of experts: few and many experts, chosen equally or not.
std::vector<MoeCase> MoeCases(DType dtype);

/// A row of MeasureOnTwoNodes, whose error, if any, is in it; other errors end the benchmark.
absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch);

}  // namespace coconet::bench
