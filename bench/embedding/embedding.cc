#include "bench/embedding/embedding.h"

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/store/record.h"
#include "autotune/store/tuning_cache.h"
#include "bench/embedding/embedding_baseline.h"
#include "bench/embedding/embedding_contender.h"
#include "bench/harness/rounds.h"
#include "bench/harness/worker.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/temp_dir.h"
#include "jit/config/config.h"
#include "runtime/node/cpu.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

/// Whether a schedule of the program, as it describes itself, can store in either order.
absl::StatusOr<bool> HasOrders(const Graph& program, const std::string& description) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  for (const Schedule& schedule : schedules) {
    if (Describe(schedule) == description) return Exchanges(schedule);
  }
  return false;
}

/// Collective. The variant that was picked, in the other order of destinations: a record that says
/// so is put in a cache of its own, which the Session verifies like any. Null where the schedule
/// has no such order.
absl::StatusOr<std::unique_ptr<EmbeddingContender>> InOtherOrder(
    Rank& rank, SessionOptions options, const Graph& program, const EmbeddingCase& c,
    const ColumnCut& cut, IndexSets& sets, TuningRecord record) {
  ASSIGN_OR_RETURN(const bool has_orders, HasOrders(program, record.best.schedule));
  if (!has_orders) return nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  bool& remote_first = record.best.config.remote_first;
  remote_first = !remote_first;
  record.complete = true;
  options.cache_file = folder->path() + "/other_order.db";
  options.policy = Policy::kCacheOnly;
  if (rank.rank() == 0) {
    const VariantResult variants[] = {record.best, record.baseline};
    const auto warn = [](absl::string_view text) { std::cerr << text << "\n"; };
    TuningCache::Open(options.cache_file, warn)->Store(record, variants);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<EmbeddingContender> made,
                   EmbeddingContender::Make(rank, options, program, c, cut, sets));
  if (made->record().best.config == record.best.config) return made;
  return absl::InternalError(absl::StrCat("other order: want ", Text(record.best.config), ", have ",
                                          Text(made->record().best.config)));
}

absl::StatusOr<std::vector<Finding>> MeasureEmbedding(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("dlrm_embedding", {.dtype = c.dtype}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, SizesOf(c)));
  ASSIGN_OR_RETURN(const Graph alone, PoolingAlone(c));
  ASSIGN_OR_RETURN(const ColumnCut cut, CutColumns(c, program, rank.rank(), rank.size()));
  IndexSets sets(c, cut.mine);
  SessionOptions options;
  options.budget_s = c.budget_s;
  using Made = std::unique_ptr<EmbeddingContender>;
  ASSIGN_OR_RETURN(const Made ours, EmbeddingContender::Make(rank, options, program, c, cut, sets));
  ASSIGN_OR_RETURN(const Made other,
                   InOtherOrder(rank, options, program, c, cut, sets, ours->record()));
  ASSIGN_OR_RETURN(const Made pooling,
                   EmbeddingContender::Make(rank, options, alone, c, cut, sets));
  ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                   EmbeddingBaseline::Make(c, cut, sets, rank.rank(), rank.size()));
  RETURN_IF_ERROR(ours->CheckAlike(rank, *baseline));
  std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return ours->Run(steps); }},
      {"pooling", [&](int64_t steps) { return pooling->Run(steps); }},
      {"baseline", [&](int64_t steps) { return baseline->Run(steps); }},
      {"loop", [&](int64_t steps) { return baseline->Pool(steps); }}};
  if (other != nullptr) {
    RETURN_IF_ERROR(other->CheckAlike(rank, *baseline));
    contenders.push_back({"other_order", [&](int64_t steps) { return other->Run(steps); }});
  }
  ASSIGN_OR_RETURN(std::vector<Finding> findings,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds, .min_sample_us = 2e4}));
  for (const auto& [side, contender] : {std::pair("ours", &*ours), {"pooling", &*pooling}}) {
    findings.push_back(
        {.side = "variant", .name = side, .detail = Words(contender->record().best)});
  }
  findings.push_back({.side = "imbalance", .detail = absl::StrCat(cut.imbalance)});
  findings.push_back({.side = "sets", .detail = absl::StrCat(sets.size())});
  findings.push_back({.side = "pools_by", .detail = baseline->pools_by()});
  findings.push_back(
      {.side = "order",
       .detail = ours->record().best.config.remote_first ? "remote first" : "plain"});
  return findings;
}

absl::StatusOr<std::vector<Finding>> Measure(Rank& rank, const EmbeddingCase& c) {
  switch (c.work) {
    case EmbeddingCase::Work::kExchanged:
      return MeasureEmbedding(rank, c);
    case EmbeddingCase::Work::kPooling:
      return MeasurePooling(rank, c);
    case EmbeddingCase::Work::kNodes:
    case EmbeddingCase::Work::kNodesParts:
      break;
  }
  return MeasureEmbeddingOnNodes(rank, c);
}

const Worker<EmbeddingCase> kWorker("embedding", Measure, [](const EmbeddingCase& c) {
  // A rank has threads for all cores that it may use.
  if (c.work == EmbeddingCase::Work::kPooling) RunOn({AllowedCores()[0]});
  return WorldOptions{.ranks = 0};
});

}  // namespace

std::vector<std::string> Arguments(const EmbeddingCase& c) { return kWorker.Arguments(c); }

}  // namespace coconet::bench
