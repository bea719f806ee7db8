#include "bench/embedding_nodes.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/array.h"
#include "bench/embedding_baseline.h"
#include "bench/embedding_contender.h"
#include "bench/node_contenders.h"
#include "coconet/base/status.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {
namespace {

/// The sums that leave and arrive, in one AllToAll of the library that ours uses.
class Sending {
 public:
  static absl::StatusOr<std::unique_ptr<Sending>> Make(Rank& rank, const EmbeddingCase& c,
                                                       const ColumnCut& cut) {
    auto made = std::make_unique<Sending>();
    made->rank_ = &rank;
    const int ranks = rank.size();
    const int64_t samples = c.samples / ranks,
                  most = *std::max_element(cut.width.begin(), cut.width.end());
    // A rank has as many rows, one per column, for each other rank.
    made->step_ = {.kind = CollectiveStep::Kind::kAllToAll,
                   .dtype = DType::kF32,
                   .count = most * samples,
                   .exchanged = {.outer = 1,
                                 .inner = most * samples,
                                 .low = {ranks, 1},
                                 .high = {ranks, 1},
                                 .from_low = true,
                                 .outer_end = 1,
                                 .low_end = 1},
                   .rows = {.leaving = 0, .arriving = 1, .capacity = most, .row = samples}};
    for (int peer = 0; peer < ranks; ++peer) {
      made->leaving_.push_back(static_cast<int32_t>(cut.width[rank.rank()]));
      made->arriving_.push_back(static_cast<int32_t>(cut.width[peer]));
    }
    const auto bytes_of = [&](int64_t columns) {
      return columns * samples * static_cast<int64_t>(sizeof(float));
    };
    made->bytes_ = (ranks - 1) * bytes_of(cut.width[rank.rank()]);
    ASSIGN_OR_RETURN(made->from_, Array::Allocate(std::max<int64_t>(1, ranks * bytes_of(most))));
    ASSIGN_OR_RETURN(made->to_, Array::Allocate(std::max<int64_t>(1, ranks * bytes_of(most))));
    return made;
  }
  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      RETURN_IF_ERROR(rank_->library().AllToAlls(
          {{&step_, from_.as<void>(), to_.as<void>(), leaving_.data(), arriving_.data()}}));
    }
    return absl::OkStatus();
  }
  /// That leave this rank in a step.
  int64_t bytes() const { return bytes_; }

 private:
  Rank* rank_ = nullptr;
  CollectiveStep step_;
  std::vector<int32_t> leaving_, arriving_;  // by peer, in columns
  Array from_, to_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureEmbeddingOnNodes(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("dlrm_embedding", {.dtype = c.dtype}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, SizesOf(c)));
  ASSIGN_OR_RETURN(const ColumnCut cut, CutColumns(c, program, rank.rank(), rank.size()));
  IndexSets sets(c, cut.mine);
  SessionOptions options;
  options.budget_s = c.budget_s;
  NodeContenders contenders;
  std::vector<std::unique_ptr<EmbeddingContender>> tuned;
  const auto make = [&](absl::string_view side, const SessionOptions& of_session,
                        const Graph& of_side) -> absl::Status {
    ASSIGN_OR_RETURN(tuned.emplace_back(),
                     EmbeddingContender::Make(rank, of_session, of_side, c, cut, sets));
    EmbeddingContender& contender = *tuned.back();
    contenders.AddTuned(
        side, [&contender](int64_t steps) { return contender.Run(steps); }, contender.record());
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const Graph pooling, PoolingAlone(c));
  RETURN_IF_ERROR(make("computation", options, pooling));
  ASSIGN_OR_RETURN(const std::unique_ptr<Sending> sending, Sending::Make(rank, c, cut));
  contenders.AddSending([&](int64_t steps) { return sending->Run(steps); });
  if (c.work == EmbeddingCase::Work::kNodes) {
    RETURN_IF_ERROR(make("ours", options, program));
    ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                     EmbeddingBaseline::Make(c, cut, sets, rank.rank(), rank.size()));
    RETURN_IF_ERROR(tuned.back()->CheckAlike(rank, *baseline));
    SessionOptions in_turn = options;
    in_turn.admits = IsSequential;
    RETURN_IF_ERROR(make("sequential", in_turn, program));
  }
  ASSIGN_OR_RETURN(std::vector<Finding> findings,
                   contenders.Measure(rank, sending->bytes(), c.seconds));
  findings.push_back({.side = "imbalance", .detail = absl::StrCat(cut.imbalance)});
  return findings;
}

}  // namespace coconet::bench
