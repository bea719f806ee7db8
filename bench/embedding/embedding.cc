#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/store/record.h"
#include "autotune/store/tuning_cache.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/embedding/embedding_baseline.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/finding.h"
#include "bench/harness/tuned_contender.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/harness/workload.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "jit/compile/temp_dir.h"
#include "jit/config/config.h"
#include "jit/config/config_traits.h"
#include "runtime/node/cpu.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

/// Internal, in words, if a side's sums differ from the baseline's by more than roundings.
absl::Status CheckSums(const EmbeddingCase& c, const EmbeddingBaseline& theirs,
                       absl::string_view side,
                       const std::function<float(int table, int64_t sample, int64_t column)>& at) {
  for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t) {
    // Numbers are below 1, and sums of n of them are off by less than n^2 / 2 roundings.
    const double lookups = static_cast<double>(c.lookups[t]);
    const double most = lookups * lookups * 0x1p-24 + 1e-6;
    for (int64_t b = theirs.samples().begin; b < theirs.samples().end; ++b) {
      for (int64_t j = 0; j < c.columns; ++j) {
        const double have = at(t, b, j), want = theirs.At(t, b, j);
        if (std::abs(have - want) <= most) continue;
        return absl::InternalError(absl::StrCat("table ", t, ", sample ", b, ", column ", j, ": ",
                                                side, " is ", have, ", the baseline ", want));
      }
    }
  }
  return absl::OkStatus();
}

/// A rank's part of a case: its columns, and sides that take sets of indices in turn.
class Field {
 public:
  Field(Rank& rank, const EmbeddingCase& of, ColumnCut columns)
      : c(of), cut(std::move(columns)), sets(c, cut.mine), contenders(rank, c.budget_s) {}

  /// Collective. A program of ours.
  absl::StatusOr<TunedContender*> Tune(const Graph& program, const SessionOptions& options) {
    std::vector<std::string> written;  // the same on all ranks, which bind together
    for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t)
      written.push_back(TensorName("indices", t));
    ASSIGN_OR_RETURN(tuned_.emplace_back(), TunedContender::Make(contenders.rank(), options,
                                                                 program, NumbersOf(c), written));
    return tuned_.back().get();
  }
  /// A step of it takes the next set of indices.
  std::function<absl::Status()> StepOf(TunedContender* ours) {
    return [this, ours] {
      Take(sets.Next(), *ours);
      return ours->Run(1);
    };
  }
  /// Collective. Adds a program of ours as a side, tuned among some of its schedules.
  absl::StatusOr<TunedContender*> Add(absl::string_view side, const Graph& program,
                                      const Admits& admits = nullptr) {
    SessionOptions options = contenders.options();
    options.admits = admits;
    ASSIGN_OR_RETURN(TunedContender* const made, Tune(program, options));
    contenders.AddTuned(EachStep(std::string(side), StepOf(made)), made->program().record());
    return made;
  }

  /// Collective. Runs a step of each with one set; Internal if the sums of a rank's samples differ.
  absl::Status CheckAlike(TunedContender* ours, EmbeddingBaseline& theirs) {
    const int64_t set = sets.Next();
    Take(set, *ours);
    theirs.Take(set);
    RETURN_IF_ERROR(ours->Run(1));
    RETURN_IF_ERROR(theirs.RunOnce());
    std::vector<std::vector<float>> sums;
    for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t) {
      ASSIGN_OR_RETURN(sums.emplace_back(), ours->Read(TensorName("pooled", t)));
    }
    return contenders.rank().exchange().Agree(
        CheckSums(c, theirs, "ours", [&](int table, int64_t sample, int64_t column) {
          return sums[table][sample * c.columns + column];
        }));
  }

  const EmbeddingCase& c;
  const ColumnCut cut;
  IndexSets sets;
  Contenders contenders;

 private:
  void Take(int64_t set, TunedContender& ours) const {
    for (size_t k = 0; k < cut.mine.size(); ++k)
      sets.Copy(set, k, ours.Written(static_cast<size_t>(cut.mine[k].table)));
  }

  std::vector<std::unique_ptr<TunedContender>> tuned_;
};

/// Whether a schedule of the program, as it describes itself, can store in either order.
absl::StatusOr<bool> HasOrders(const Graph& program, const std::string& description) {
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
  for (const Schedule& schedule : schedules) {
    if (Describe(schedule) == description) return Exchanges(schedule);
  }
  return false;
}

/// Collective. The variant that was picked, in the other order of destinations: a record that says
/// so is put in a cache of its own, which the Session verifies like any. Null if the schedule has
/// no such order.
absl::StatusOr<TunedContender*> InOtherOrder(Field& field, const Graph& program,
                                             TuningRecord record) {
  ASSIGN_OR_RETURN(const bool has_orders, HasOrders(program, record.best.schedule));
  if (!has_orders) return nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  bool& remote_first = record.best.config.remote_first;
  remote_first = !remote_first;
  record.complete = true;
  SessionOptions options = field.contenders.options();
  options.cache_file = folder->path() + "/other_order.db";
  options.policy = Policy::kCacheOnly;
  if (field.contenders.rank().rank() == 0) {
    const VariantResult variants[] = {record.best, record.baseline};
    const auto warn = [](absl::string_view text) { std::cerr << text << "\n"; };
    TuningCache::Open(options.cache_file, warn)->Store(record, variants);
  }
  ASSIGN_OR_RETURN(TunedContender* const made, field.Tune(program, options));
  const Config& config = made->program().record().best.config;
  if (config == record.best.config) return made;
  return absl::InternalError(
      absl::StrCat("other order: want ", Text(record.best.config), ", have ", Text(config)));
}

/// Findings by side:
///   ours          pooling and AllToAll, tuned
///   remote_first, plain_order   one of them: the same variant in the other order of destinations,
///                 if it has one
///   pooling       ours, without the AllToAll, into memory of its own: the bound
///   baseline      EmbeddingBaseline
///   loop          the baseline's pooling alone
/// Facts "variant" by side; "imbalance" of ColumnCut; "sets": how many; "baseline_pools_by": the
/// baseline's way. Internal when the sides differ by more than roundings, here and below.
absl::StatusOr<std::vector<Finding>> MeasureEmbedding(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("dlrm_embedding", c.dtype, SizesOf(c)));
  ASSIGN_OR_RETURN(const Graph alone, PoolingAlone(c));
  ASSIGN_OR_RETURN(ColumnCut cut, CutColumns(c, program, rank.rank(), rank.size()));
  Field field(rank, c, std::move(cut));
  Contenders& contenders = field.contenders;
  ASSIGN_OR_RETURN(TunedContender* const ours, field.Add("ours", program));
  const TuningRecord& record = ours->program().record();
  ASSIGN_OR_RETURN(TunedContender* const other, InOtherOrder(field, program, record));
  RETURN_IF_ERROR(field.Add("pooling", alone).status());
  ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                   EmbeddingBaseline::Make(c, field.cut, field.sets, rank));
  RETURN_IF_ERROR(field.CheckAlike(ours, *baseline));
  contenders.AddStep("baseline", [&] { return baseline->Run(); });
  contenders.AddStep("loop", [&] { return baseline->Pool(); });
  if (other != nullptr) {
    RETURN_IF_ERROR(field.CheckAlike(other, *baseline));
    contenders.AddStep(record.best.config.remote_first ? "plain_order" : "remote_first",
                       field.StepOf(other));
  }
  contenders.AddFact("imbalance", field.cut.imbalance);
  contenders.AddFact("sets", field.sets.size());
  contenders.AddFact("baseline_pools_by", baseline->pools_by());
  return contenders.Measure({.seconds = c.seconds, .min_sample_us = 2e4});
}

/// By one process, whose rank is one thread:
///   ours     the program without its AllToAll, tuned
///   loop     a careful user's loop
///   fbgemm   FBGEMM's kernel, if it can be loaded
/// Facts "variant", "sets", and "fbgemm": "present", or why it is absent.
absl::StatusOr<std::vector<Finding>> MeasurePooling(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph program, PoolingAlone(c));
  ASSIGN_OR_RETURN(ColumnCut cut, CutColumns(c, program, rank.rank(), rank.size()));
  Field field(rank, c, std::move(cut));
  Contenders& contenders = field.contenders;
  ASSIGN_OR_RETURN(TunedContender* const ours, field.Add("ours", program));
  EmbeddingCase by_loop = c;
  by_loop.fbgemm.clear();
  ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                   EmbeddingBaseline::Make(by_loop, field.cut, field.sets, rank));
  RETURN_IF_ERROR(field.CheckAlike(ours, *baseline));
  contenders.AddStep("loop", [&] { return baseline->Pool(); });
  const absl::StatusOr<FbgemmBags> fbgemm = c.fbgemm.empty()
                                                ? absl::NotFoundError("no --fbgemm=DIR")
                                                : FbgemmBags::Make(c, field.cut.mine, c.columns);
  if (!fbgemm.ok() && !absl::IsNotFound(fbgemm.status())) return fbgemm.status();
  std::vector<Array> sums;  // by table: FBGEMM's, into memory of its own
  const auto pool = [&] {
    fbgemm->Pool(baseline->tables(), baseline->indices(),
                 [&](size_t k) { return sums[k].as<float>(); });
  };
  if (fbgemm.ok()) {
    for (size_t t = 0; t < c.lookups.size(); ++t) {
      ASSIGN_OR_RETURN(sums.emplace_back(), Array::Allocate(c.samples * c.columns * 4));
    }
    pool();
    RETURN_IF_ERROR(CheckSums(c, *baseline, "fbgemm", [&](int table, int64_t sample, int64_t j) {
      return sums[table].as<float>()[sample * c.columns + j];
    }));
    contenders.AddStep("fbgemm", [&] {
      baseline->Take(field.sets.Next());
      pool();
      return absl::OkStatus();
    });
  }
  contenders.AddFact("sets", field.sets.size());
  contenders.AddFact("fbgemm",
                     fbgemm.ok() ? "present" : absl::StrCat("absent: ", fbgemm.status().message()));
  return contenders.Measure({.seconds = c.seconds, .min_sample_us = 2e4});
}

/// What ranks exchange: each has a row for each of its columns, the sums of a peer's samples.
RankRows RowsOf(const EmbeddingCase& c, const ColumnCut& cut, int rank, int ranks) {
  RankRows rows{.dtype = DType::kF32,
                .groups = 1,
                .capacity = *std::max_element(cut.width.begin(), cut.width.end()),
                .row = c.samples / ranks};
  for (int64_t width : cut.width) {
    rows.leaving.push_back(static_cast<int32_t>(cut.width[rank]));
    rows.arriving.push_back(static_cast<int32_t>(width));
  }
  return rows;
}

/// MeasureOnNode's findings: a rank computes the sums of all samples in its columns, and sends
/// those of its peers' samples to them. Fact: "imbalance" of ColumnCut.
absl::StatusOr<std::vector<Finding>> MeasureOnNodes(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("dlrm_embedding", c.dtype, SizesOf(c)));
  ASSIGN_OR_RETURN(const Graph pooling, PoolingAlone(c));
  ASSIGN_OR_RETURN(ColumnCut cut, CutColumns(c, program, rank.rank(), rank.size()));
  Field field(rank, c, std::move(cut));
  RETURN_IF_ERROR(field.Add("computation", pooling).status());
  ASSIGN_OR_RETURN(const std::unique_ptr<RowSender> sender,
                   RowSender::Make(rank, RowsOf(c, field.cut, rank.rank(), rank.size())));
  field.contenders.AddStep("sending", [&] { return sender->Send(); });
  if (!c.parts_only) {
    ASSIGN_OR_RETURN(TunedContender* const ours, field.Add("ours", program));
    ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                     EmbeddingBaseline::Make(c, field.cut, field.sets, rank));
    RETURN_IF_ERROR(field.CheckAlike(ours, *baseline));
    RETURN_IF_ERROR(field.Add("sequential", program, IsSequential).status());
  }
  field.contenders.AddFact("imbalance", field.cut.imbalance);
  return MeasureOnNode(field.contenders, sender->bytes_there(), c.seconds);
}

const Worker<EmbeddingCase> kExchanged("exchanged", MeasureEmbedding);
const Worker<EmbeddingCase> kPooling("pooling", MeasurePooling, [](const EmbeddingCase&) {
  RunOn({AllowedCores()[0]});  // a rank has a thread for each core that it may use: one
  return WorldOptions{.ranks = 0};
});
const Worker<EmbeddingCase> kNodes("nodes", MeasureOnNodes);

/// The time of ours in the order that was picked beside that in the other one, which differs in
/// that alone.
void SetOrders(const Timing& ours, Row& row) {
  const bool other_first = row.Number("remote_first_us") > 0;
  if (!other_first && row.Number("plain_order_us") == 0) return;  // the schedule has no such order
  SetTime(row, other_first ? "plain_order" : "remote_first", ours);
  row.Set("order_ratio", row.Number("plain_order_us") / row.Number("remote_first_us"));
  row.Set("order_picked", other_first ? "plain" : "remote first");
}

absl::Status ExchangedRow(const EmbeddingCase& c, int ranks, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(const std::vector<MpiSetting> tried,
                   TrySettings(MpiSettings(/*crowded=*/false, /*quick=*/true), ranks,
                               kExchanged.Arguments(c), scratch));
  const MpiSetting& best = FastestOf(tried);
  SetFindings(row, best.found);
  const double ours_us = row.Number("ours_us"), loop_us = row.Number("loop_us"),
               pooling_us = row.Number("pooling_us"), baseline_us = row.Number("baseline_us");
  row.Set("bound_us", pooling_us).Set("of_bound", pooling_us / ours_us);
  row.Set("ratio", baseline_us / ours_us).Set("ceiling", baseline_us / loop_us);
  row.Set("of_ceiling", loop_us / ours_us).Set("pooling_vs_loop", loop_us / pooling_us);
  SetOrders(FastestOf(best.found, "ours")->timing, row);
  row.Set("mpi_setting", best.name);
  return absl::OkStatus();
}

absl::Status PoolingRow(const EmbeddingCase& c, int ranks, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(const std::vector<Finding> found,
                   RunWorker({.processes = ranks,
                              .arguments = kPooling.Arguments(c),
                              .cache = absl::StrCat(scratch, "/cache"),
                              .scratch = scratch}));
  SetFindings(row, found);
  row.Set("pooling_vs_loop", row.Number("loop_us") / row.Number("ours_us"));
  const bool has_fbgemm = row.Number("fbgemm_us") > 0;
  if (has_fbgemm) row.Set("fbgemm_ratio", row.Number("fbgemm_us") / row.Number("ours_us"));
  if (!IsQuick()) row.SetBars(BarsOf(has_fbgemm ? "fbgemm_ratio >= 0.95" : ""));
  return absl::OkStatus();
}

absl::Status NodesRow(const EmbeddingCase& c, int /*ranks*/, const std::string& scratch, Row& row) {
  EmbeddingCase parts = c;
  parts.parts_only = true;
  return MeasureOnTwoNodes(kNodes.Arguments(parts), kNodes.Arguments(c), scratch, "nodes", row);
}

}  // namespace

RowTask EmbeddingTask(absl::string_view name, const EmbeddingCase& c, int ranks) {
  Row row;
  const std::string indices = c.zipf == 0 ? "uniform" : "zipf";
  row.Set("case", std::string(name)).Set("ranks", ranks);
  row.Set("dtype", std::string(Name(c.dtype))).Set("indices", indices).Set("what", indices);
  row.Set("tables", static_cast<int64_t>(c.lookups.size())).Set("rows", c.rows);
  row.Set("columns", c.columns).Set("samples", c.samples).Set("budget_s", c.budget_s);
  const bool is_pooling = name == "pooling", is_nodes = name == "nodes";
  const auto measure = is_pooling ? PoolingRow : is_nodes ? NodesRow : ExchangedRow;
  std::string bars = is_pooling ? ""
                     : is_nodes ? "of_ceiling >= 0.9"
                                : "of_bound >= 0.9, of_ceiling >= 0.9";
  if (name == "low") bars += ", ratio >= 1.25";
  return {absl::StrCat(name, ", ", ranks, " ranks, ", Name(c.dtype), ", ", indices), row,
          [=](const std::string& scratch, Row& to) { return measure(c, ranks, scratch, to); },
          bars};
}

}  // namespace coconet::bench
