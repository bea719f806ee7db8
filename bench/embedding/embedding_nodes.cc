#include "bench/embedding/embedding.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/embedding/embedding_baseline.h"
#include "bench/embedding/embedding_contender.h"
#include "bench/nodes/node_contenders.h"
#include "bench/nodes/row_sender.h"
#include "coconet/base/status.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {
namespace {

/// The sums of each rank's columns for the samples of each, a row per column.
RankRows RowsOf(const EmbeddingCase& c, const ColumnCut& cut, int rank, int ranks) {
  RankRows rows{.dtype = DType::kF32,
                .groups = 1,
                .capacity = *std::max_element(cut.width.begin(), cut.width.end()),
                .row = c.samples / ranks,
                .leaving = {},
                .arriving = {}};
  for (int64_t width : cut.width) {
    rows.leaving.push_back(static_cast<int32_t>(cut.width[rank]));
    rows.arriving.push_back(static_cast<int32_t>(width));
  }
  return rows;
}

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
  ASSIGN_OR_RETURN(const std::unique_ptr<RowSender> sender,
                   RowSender::Make(rank, RowsOf(c, cut, rank.rank(), rank.size())));
  contenders.AddSending([&](int64_t steps) -> absl::Status {
    for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(sender->Send());
    return absl::OkStatus();
  });
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
                   contenders.Measure(rank, sender->bytes_there(), c.seconds));
  findings.push_back({.side = "imbalance", .detail = absl::StrCat(cut.imbalance)});
  return findings;
}

}  // namespace coconet::bench
