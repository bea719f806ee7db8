#include "bench/suite/suite.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/statistics.h"
#include "autotune/store/tuning_cache.h"
#include "bench/harness/launch.h"
#include "bench/harness/machine.h"
#include "bench/optimizers/memory_limit.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi;
constexpr double kSweepBudget = 60;  // seconds; the default of the sweep command
using Task = WorkerOptions::Task;

}  // namespace

// The first sweep needs an empty cache; the others may use what it left.
constexpr Suite::CaseRow Suite::kCases[] = {
    {Topic::kDataParallel, "first_sweep", &Suite::FirstSweep},
    {Topic::kDataParallel, "dispatch", &Suite::Dispatch},
    {Topic::kDataParallel, "steps", &Suite::Steps},
    {Topic::kDataParallel, "warm_start", &Suite::WarmStart},
    {Topic::kDataParallel, "adam", &Suite::AdamInProcesses},
    {Topic::kDataParallel, "adam_threads", &Suite::AdamInThreads},
    {Topic::kLists, "lamb", &Suite::LambOverLists},
    {Topic::kLists, "lamb_flat", &Suite::LambAgainstFlat},
    {Topic::kLists, "adam_flat", &Suite::AdamAgainstFlat},
};

std::vector<std::string> Suite::Cases(Topic topic) {
  std::vector<std::string> names;
  for (const CaseRow& row : kCases) {
    if (row.topic == topic) names.emplace_back(row.name);
  }
  return names;
}

absl::Status Suite::Run() {
  for (const CaseRow& row : kCases) {
    if (row.topic != options_.topic) continue;
    if (!options_.cases.empty() && !absl::c_linear_search(options_.cases, row.name)) continue;
    RETURN_IF_ERROR((this->*row.run)());
  }
  return absl::OkStatus();
}

absl::Status Suite::FirstSweep() {
  const Cell cell = {DType::kF32, options_.quick ? 64 * kKi : 16 * kMi};
  constexpr int kRanks = 2;
  Row row = NewRow("first_sweep", kRanks, "threads", cell);
  const absl::StatusOr<std::vector<Finding>> found =
      Worker({.task = Task::kTune,
              .threads = kRanks,
              .cells = {cell},
              .budget_s = options_.quick ? options_.budget_s : kSweepBudget},
             0);
  if (!found.ok()) return Fail(std::move(row), found.status());
  SetTime(row, "ours", FastestOf(*found, "ours")->timing);
  row.Set("variants", CountOf(*found, "variants"))
      .Set("compiler_runs", CountOf(*found, "compiler runs"));
  row.Set("variant", FactOf(*found, "variant"));
  Add(std::move(row));
  return absl::OkStatus();
}

absl::Status Suite::Dispatch() {
  const Cell cell = {DType::kF32, 1};
  const Row any = NewRow("dispatch", 1, "threads", cell);
  const absl::StatusOr<std::vector<Finding>> found = Worker({.task = Task::kDispatch,
                                                             .threads = 1,
                                                             .cells = {cell},
                                                             .seconds = Seconds(2),
                                                             .budget_s = options_.budget_s},
                                                            0);
  if (!found.ok()) return Fail(any, found.status());
  for (const Finding& f : *found) {
    if (f.side != "ours") continue;
    Row row = any;
    SetOurs(row, f);
    row.Set("call", f.name);
    row.Set("allocations", CountOf(*found, "allocations", f.name))
        .Set("locks", CountOf(*found, "locks", f.name));
    Add(std::move(row));
  }
  return absl::OkStatus();
}

absl::Status Suite::Steps() {
  const Cell cell = {DType::kF32, 64};
  for (const int ranks : {2, 4}) {
    Row row = NewRow("steps", ranks, "threads", cell);
    const absl::StatusOr<std::vector<Finding>> found = Worker({.task = Task::kCompare,
                                                               .threads = ranks,
                                                               .cells = {cell},
                                                               .sides = {.ours = true},
                                                               .seconds = Seconds(1),
                                                               .steps = 1000,
                                                               .budget_s = options_.budget_s},
                                                              0);
    if (!found.ok()) {
      RETURN_IF_ERROR(Fail(std::move(row), found.status()));
      continue;
    }
    SetOurs(row, *FastestOf(*found, "ours"));
    SetVariant(row, *found);
    Add(std::move(row));
  }
  return absl::OkStatus();
}

/// Adds copies of the newest record of a tuning cache, with all its variants, as of other programs.
absl::Status AddPrograms(const std::string& file, int count) {
  std::string warning;
  const std::unique_ptr<TuningCache> cache =
      TuningCache::Open(file, [&](absl::string_view text) { warning = std::string(text); });
  const std::vector<TuningRecord> records = cache->List();
  if (records.empty())
    return absl::InternalError(absl::StrCat("no record in ", file, ": ", warning));
  TuningRecord copy = records[0];
  const std::vector<VariantResult> variants = cache->Variants(copy.key);
  for (int i = 0; i < count; ++i) {
    copy.key_text = absl::StrCat(records[0].key_text, "copy: ", i, "\n");
    copy.key = Fingerprint(copy.key_text);
    cache->Store(copy, variants);
  }
  return warning.empty() ? absl::OkStatus() : absl::InternalError(warning);
}

absl::Status Suite::WarmStart() {
  constexpr int kLivedInPrograms = 600;
  RETURN_IF_ERROR(WarmStart("warm_start", 0));
  return WarmStart("warm_start_lived_in", kLivedInPrograms);
}

absl::Status Suite::WarmStart(absl::string_view name, int others) {
  const Cell cell = {DType::kF32, kKi};
  constexpr int kRanks = 2;
  Row row = NewRow(name, kRanks, "threads", cell);
  // Without a time limit: an unfinished search would go on at the next start.
  const WorkerOptions worker = {
      .task = Task::kWarmStart, .threads = kRanks, .cells = {cell}, .budget_s = kSweepBudget};
  struct Side {
    std::string name, program, cache_dir;
    std::vector<double> times = {};
    int64_t compiler_runs = 0;
  };
  std::vector<Side> sides = {{"ours", "", absl::StrCat(options_.scratch, "/", name)}};
  if (!options_.before.empty())
    sides.push_back(
        {"before", options_.before, absl::StrCat(options_.scratch, "/", name, "_before")});
  const int starts = options_.quick ? 3 : 25;
  for (int start = -1; start < starts; ++start) {
    for (Side& side : sides) {
      const absl::StatusOr<std::vector<Finding>> found =
          RunWorker({.program = side.program,
                     .arguments = Arguments(worker),
                     .environment = {absl::StrCat("COCONET_CACHE_DIR=", side.cache_dir)},
                     .scratch = options_.scratch});
      if (!found.ok()) return Fail(std::move(row), found.status());
      if (start < 0) {  // the first fills the cache
        RETURN_IF_ERROR(AddPrograms(absl::StrCat(side.cache_dir, "/tuning.db"), others));
        continue;
      }
      side.times.push_back(FastestOf(*found, "ours")->timing.median_us);
      side.compiler_runs = std::max(side.compiler_runs, CountOf(*found, "compiler runs"));
    }
  }
  for (const Side& side : sides) SetTime(row, side.name, Summarize(side.times));
  if (sides.size() == 2)
    row.Set("ratio", Summarize(sides[0].times).median_us / Summarize(sides[1].times).median_us);
  row.Set("rounds", starts)
      .Set("programs", others + 1)
      .Set("compiler_runs", sides[0].compiler_runs);
  Add(std::move(row));
  return absl::OkStatus();
}

absl::Status Suite::AdamInThreads() {
  const std::vector<int64_t> sizes =
      options_.quick ? std::vector<int64_t>{kKi} : std::vector<int64_t>{kKi, 16 * kMi};
  for (const int ranks : {2, 4}) {
    for (const Cell& cell : Sized(DType::kF32, sizes)) {
      Row row = NewRow("adam_threads", ranks, "threads", cell);
      const absl::StatusOr<std::vector<Finding>> found =
          Worker({.task = Task::kCompare,
                  .threads = ranks,
                  .cells = {cell},
                  .sides = {.ours = true, .limit = true},
                  .seconds = Seconds(2),
                  .budget_s = options_.budget_s},
                 0);
      if (!found.ok()) {
        RETURN_IF_ERROR(Fail(std::move(row), found.status()));
        continue;
      }
      SetOurs(row, *FastestOf(*found, "ours"));
      SetLimit(row, *found, cell);
      SetVariant(row, *found);
      Add(std::move(row));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Finding>> Suite::Worker(const WorkerOptions& options, int processes,
                                                   const std::vector<MpiParameter>& parameters) {
  const std::string fresh = absl::StrCat(options_.scratch, "/cache");
  const bool use_fresh = options_.cache_dir.empty() ||
                         (options.task == Task::kTune && options_.topic == Topic::kDataParallel);
  return RunWorker(
      {.processes = processes,
       .parameters = parameters,
       .arguments = Arguments(options),
       .environment = {absl::StrCat("COCONET_CACHE_DIR=", use_fresh ? fresh : options_.cache_dir)},
       .scratch = options_.scratch,
       .time_limit_s = 600 + 3 * options_.budget_s});
}

std::vector<Cell> Suite::Sized(DType dtype, std::vector<int64_t> sizes) const {
  std::vector<Cell> cells;
  for (const int64_t n : options_.sizes.empty() ? sizes : options_.sizes)
    cells.push_back({dtype, n});
  return cells;
}

absl::StatusOr<std::vector<Cell>> Suite::Listed(absl::string_view workload,
                                                const std::vector<std::string>& lists) const {
  std::vector<Cell> cells;
  for (const std::string& list : options_.lists.empty() ? lists : options_.lists) {
    ASSIGN_OR_RETURN(cells.emplace_back(), ListCell(workload, DType::kF32, list));
  }
  return cells;
}

Row Suite::NewRow(absl::string_view name, int ranks, absl::string_view kind,
                  const Cell& cell) const {
  options_.progress(absl::StrCat(name, ": ", ranks, " ", kind, ", ", Name(cell.dtype), " ",
                                 cell.list.empty() ? CountText(cell.n) : cell.list));
  Row row;
  row.Set("case", std::string(name))
      .Set("ranks", ranks)
      .Set("n", cell.n)
      .Set("dtype", std::string(Name(cell.dtype)));
  row.Set("list", cell.list).Set("tensors", static_cast<int64_t>(TensorSizes(cell).size()));
  for (const char* field :
       {"ours_us", "baseline_us", "ratio", "limit_us", "of_limit", "vs_default"})
    row.Set(field, nullptr);
  return row.Set("ranks_are", std::string(kind)).Set("load_before", LoadAverage());
}

absl::Status Suite::Fail(Row row, const absl::Status& why) {
  if (absl::IsCancelled(why)) return why;
  options_.progress(absl::StrCat("failed: ", why.message()));
  row.Set("error", std::string(why.message()));
  Add(std::move(row));
  return absl::OkStatus();
}

void Suite::Add(Row row) {
  const Cell cell = {*ParseDType(std::get<std::string>(row.Get("dtype"))),
                     std::get<int64_t>(row.Get("n")), "", std::get<std::string>(row.Get("list"))};
  row.SetBars(
      BarsFor(std::get<std::string>(row.Get("case")), static_cast<int>(row.Number("ranks")), cell));
  AddMachine(row);
  rows_.push_back(std::move(row));
}

void SetOurs(Row& row, const Finding& ours) {
  SetTime(row, "ours", ours.timing);
  row.Set("rounds", ours.timing.samples)
      .Set("steps_a_sample", ours.steps)
      .Set("preempted", ours.preempted);
  row.Set("data", "warm: a sample follows a step");
}

void SetVariant(Row& row, absl::Span<const Finding> findings) {
  row.Set("variant", FactOf(findings, "variant")).Set("tuned", FactOf(findings, "tuned"));
  row.Set("threads", CountOf(findings, "threads") * static_cast<int64_t>(row.Number("ranks")));
}

void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell) {
  const Finding* const limit = FastestOf(findings, "limit");
  if (limit == nullptr) return;
  const double ours_us = row.Number("ours_us");
  const auto ranks = static_cast<int>(row.Number("ranks"));
  SetTime(row, "limit", limit->timing);
  row.Set("of_limit", limit->timing.median_us / ours_us)
      .Set("limit_kernel", limit->name)
      .Set("gb_s", static_cast<double>(StepBytes(cell, ranks)) * ranks / ours_us / 1e3);
}

}  // namespace coconet::bench
