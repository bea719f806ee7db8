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
};

/// Tokens by expert and group, as all ranks know them. The capacity is the most that an expert gets
/// from a group, so that no token is dropped.
class Routing {
 public:
  Routing(const MoeCase& c, int groups);
  int64_t capacity() const { return capacity_; }
  int32_t Count(int64_t expert, int64_t group) const {
    return static_cast<int32_t>(Tokens(expert, group).size());
  }
  const std::vector<int32_t>& Tokens(int64_t expert, int64_t group) const {
    return tokens_[expert * groups_ + group];
  }
  /// The tokens of the expert that gets most, over the mean.
  double Imbalance() const;

 private:
  int64_t groups_;
  int64_t capacity_ = 1;
  std::vector<std::vector<int32_t>> tokens_;
};

/// Collective, for processes on nodes of one rank: NodeContenders, where all that a rank computes
/// is of as many rows, and the rows in use go there and back. Facts beside theirs: "capacity",
/// "imbalance". Internal when ours is wrong.
absl::StatusOr<std::vector<Finding>> MeasureMoe(Rank& rank, const MoeCase& c);

/// A worker's arguments, and the case that this program's flags give; nullopt: not a worker.
std::vector<std::string> Arguments(const MoeCase& c);
absl::StatusOr<std::optional<MoeCase>> MoeCaseFromFlags();
/// A worker's main function; writes its findings where RunWorker expects them.
absl::Status WorkOn(const MoeCase& c);

}  // namespace coconet::bench
