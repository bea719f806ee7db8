#include "bench/suite/suite.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/store/tuning_cache.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/optimizers/baseline.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "only these cases, comma-separated");
ABSL_FLAG(std::string, cache, "",
          "folder of tuned programs and compiled kernels to use; default: a new one");

namespace coconet::bench {
namespace {

constexpr int64_t kKi = 1024, kMi = 1024 * kKi, kAny = std::numeric_limits<int64_t>::max();
constexpr double kSweepBudget = 60;  // seconds; the default of the sweep command
using Task = WorkerOptions::Task;

/// The bars of cases, all for f32; the first line that fits a row has its bars.
constexpr struct {
  absl::string_view name, list;
  int ranks;            // 0: any number
  int64_t least, most;  // elements
  absl::string_view bars;
} kBars[] = {
    {"lamb", "@bert-large", 2, 0, kAny, "ratio >= 2.2, vs_default >= 3"},
    {"lamb_flat", "@bert-large", 2, 0, kAny, "vs_flat >= 0.95"},
    {"adam", "", 0, 64 * kMi, 64 * kMi, "of_limit >= 0.88"},
    {"adam", "", 2, 16 * kMi, 16 * kMi, "ratio >= 2.5, vs_default >= 3.7, of_limit >= 0.88"},
    {"adam", "", 4, 16 * kMi, 16 * kMi, "ratio >= 4.2, vs_default >= 6, of_limit >= 0.88"},
    {"adam", "", 0, kKi, kKi, "ratio >= 2"},
    {"adam", "", 2, 0, 16 * kKi, "ratio >= 2"},
    {"adam", "", 2, 64 * kKi, 64 * kKi, "ratio >= 1.4"},
    {"dispatch", "", 0, 0, kAny, "ours_us <= 0.3, allocations <= 0, locks <= 0"},
    {"steps", "", 2, 0, kAny, "ours_us <= 1"},
    {"warm_start", "", 0, 0, kAny, "ours_us <= 20e3, compiler_runs <= 0"},
    {"warm_start_lived_in", "", 0, 0, kAny, "ours_us <= 20e3, compiler_runs <= 0"},
    {"first_sweep", "", 0, 16 * kMi, 16 * kMi, "ours_us <= 60e6"},
};

std::vector<Bar> BarsFor(const Row& row) {
  const auto ranks = static_cast<int>(row.Number("ranks"));
  const auto n = static_cast<int64_t>(row.Number("n"));
  for (const auto& of : kBars) {
    if (of.name == TextOf(row, "case") && of.list == TextOf(row, "list") &&
        TextOf(row, "dtype") == "f32" && (of.ranks == 0 || of.ranks == ranks) && of.least <= n &&
        n <= of.most)
      return BarsOf(of.bars);
  }
  return {};
}

std::vector<Column> Columns(Topic topic) {
  const Column computed[] = {
      {"case",
       [](const Row& row) {
         return absl::StrCat(TextOf(row, "case"), TextOf(row, "call").empty() ? "" : " ",
                             TextOf(row, "call"));
       }},
      {"N",
       [](const Row& row) {
         const std::string list = TextOf(row, "list");
         return list.empty() ? CountText(static_cast<int64_t>(row.Number("n"))) : list;
       }},
      {"+-", [](const Row& row) {
         const double ours = row.Number("ours_us"),
                      width = row.Number("ours_high_us") - row.Number("ours_low_us");
         return ours == 0 ? "" : absl::StrFormat("%.0f %%", 50 * width / ours);
       }}};
  return ColumnsOf(absl::StrCat("case|*, ranks, N|*, dtype, ours|time, +-|*, baseline|time, "
                                "ratio|ratio, vs default|ratio, ",
                                topic == Topic::kLists ? "flat|time, vs flat|ratio, " : "",
                                "limit|time, of limit|ratio, bar, met, variant|result"),
                   computed);
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

}  // namespace

// The first sweep needs an empty cache; the others may use what it left.
constexpr Suite::CaseRow Suite::kCases[] = {
    {Topic::kDataParallel, "first_sweep",
     [](Suite& s) {
       return s.Measure(
           "first_sweep", {DType::kF32, s.quick_ ? 64 * kKi : 16 * kMi},
           {.task = Task::kTune, .threads = 2, .budget_s = s.quick_ ? s.budget_s_ : kSweepBudget});
     }},
    {Topic::kDataParallel, "dispatch",
     [](Suite& s) {
       return s.Measure("dispatch", {DType::kF32, 1},
                        {.task = Task::kDispatch, .threads = 1, .seconds = s.Seconds(2)});
     }},
    {Topic::kDataParallel, "steps",
     [](Suite& s) {
       return s.InThreads("steps", {{DType::kF32, 64}},
                          {.sides = {.ours = true}, .seconds = s.Seconds(1), .steps = 1000});
     }},
    {Topic::kDataParallel, "warm_start",
     [](Suite& s) {
       constexpr int kLivedInPrograms = 600;
       RETURN_IF_ERROR(s.WarmStart("warm_start", 0));
       return s.WarmStart("warm_start_lived_in", kLivedInPrograms);
     }},
    {Topic::kDataParallel, "adam", [](Suite& s) { return s.AdamInProcesses(); }},
    {Topic::kDataParallel, "adam_threads",
     [](Suite& s) {
       std::vector<int64_t> sizes = {kKi};
       if (!s.quick_) sizes.push_back(16 * kMi);
       return s.InThreads("adam_threads", s.Sized(DType::kF32, sizes),
                          {.sides = {.ours = true, .limit = true}, .seconds = s.Seconds(2)});
     }},
    {Topic::kLists, "lamb", [](Suite& s) { return s.LambOverLists(); }},
    {Topic::kLists, "lamb_flat",
     [](Suite& s) { return s.AgainstFlat("lamb_flat", "lamb", {"bert-large", "gpt2"}); }},
    {Topic::kLists, "adam_flat",
     [](Suite& s) { return s.AgainstFlat("adam_flat", "adam", {"bert-large"}); }},
};

Suite::Suite(const SuiteProgram& program, std::string scratch)
    : program_(program),
      scratch_(std::move(scratch)),
      cache_dir_(Resolve(absl::GetFlag(FLAGS_cache))),
      quick_(IsQuick()),
      budget_s_(TuningBudget(program.budget_s, /*quick=*/2)) {}

absl::Status Suite::Run(const std::vector<std::string>& cases) {
  for (const CaseRow& row : kCases) {
    if (row.topic != program_.topic) continue;
    if (!cases.empty() && !absl::c_linear_search(cases, row.name)) continue;
    RETURN_IF_ERROR(row.run(*this));
  }
  return absl::OkStatus();
}

absl::Status RunSuite(const SuiteProgram& program) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  Suite suite(program, scratch->path());
  absl::Status status = suite.Run(absl::GetFlag(FLAGS_case));
  // What was measured before an interruption is kept.
  status.Update(Show(suite.rows(), Columns(program.topic)));
  return status;
}

absl::Status Suite::InThreads(absl::string_view name, const std::vector<Cell>& cells,
                              WorkerOptions options) {
  for (const int ranks : {2, 4}) {
    options.threads = ranks;
    for (const Cell& cell : cells) RETURN_IF_ERROR(Measure(name, cell, options));
  }
  return absl::OkStatus();
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
  std::vector<Side> sides = {{"ours", "", absl::StrCat(scratch_, "/", name)}};
  if (!program_.before.empty())
    sides.push_back({"before", program_.before, absl::StrCat(scratch_, "/", name, "_before")});
  const int starts = quick_ ? 3 : 25;
  for (int start = -1; start < starts; ++start) {
    for (Side& side : sides) {
      const Found found = RunWorker({.program = side.program,
                                     .arguments = kSuiteWorker.Arguments(worker),
                                     .cache = side.cache_dir,
                                     .scratch = scratch_});
      if (!found.ok()) return Fail(std::move(row), found.status());
      if (start < 0) {  // the first fills the cache
        RETURN_IF_ERROR(AddPrograms(absl::StrCat(side.cache_dir, "/tuning.db"), others));
        continue;
      }
      side.times.push_back(FastestOf(*found, "ours")->timing.median_us);
      side.compiler_runs = std::max(side.compiler_runs, CountOf(*found, "compiler_runs"));
    }
  }
  for (const Side& side : sides) SetTime(row, side.name, Summarize(side.times));
  if (sides.size() == 2) row.Set("ratio", row.Number("ours_us") / row.Number("before_us"));
  row.Set("rounds", starts)
      .Set("programs", others + 1)
      .Set("compiler_runs", sides[0].compiler_runs);
  Add(std::move(row));
  return absl::OkStatus();
}

Suite::Found Suite::Worker(WorkerOptions options, const std::string& parameters) {
  if (options.budget_s == 0) options.budget_s = budget_s_;
  const std::string fresh = absl::StrCat(scratch_, "/cache");
  const bool use_fresh =
      cache_dir_.empty() || (options.task == Task::kTune && program_.topic == Topic::kDataParallel);
  return RunWorker({.processes = options.processes,
                    .parameters = parameters,
                    .arguments = kSuiteWorker.Arguments(options),
                    .cache = use_fresh ? fresh : cache_dir_,
                    .scratch = scratch_,
                    .time_limit_s = 600 + 3 * budget_s_});
}

std::vector<Cell> Suite::Sized(DType dtype, const std::vector<int64_t>& sizes) const {
  std::vector<Cell> cells;
  for (const int64_t n : program_.sizes.empty() ? sizes : program_.sizes)
    cells.push_back({dtype, n});
  return cells;
}

void Suite::Say(absl::string_view line) const {
  absl::FPrintF(stderr, "[%4.0f s] %s\n", SecondsNow() - start_s_, line);
}

Row Suite::NewRow(absl::string_view name, int ranks, absl::string_view kind,
                  const Cell& cell) const {
  Say(absl::StrCat(name, ": ", ranks, " ", kind, ", ", Name(cell.dtype), " ",
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

absl::Status Suite::Measure(absl::string_view name, const Cell& cell, WorkerOptions options) {
  const int ranks = options.threads + options.processes;
  const Row first = NewRow(name, ranks, options.threads > 0 ? "threads" : "processes", cell);
  if (options.tuned) {
    if (const absl::Status ready = Tune(ranks, cell); !ready.ok()) return Fail(first, ready);
  }
  options.cells = {cell};
  const Found found = Worker(options);
  if (!found.ok()) return Fail(first, found.status());
  for (const Finding& ours : *found) {
    if (ours.side != "ours") continue;
    Row row = first;
    SetOurs(row, ours);
    if (!ours.name.empty()) row.Set("call", ours.name);
    if (const Finding* const flat = FastestOf(*found, "flat"); flat != nullptr) {
      SetTime(row, "flat", flat->timing);
      row.Set("vs_flat", flat->timing.median_us / ours.timing.median_us);
    }
    SetLimit(row, *found, cell);
    SetFacts(row, *found, ours.name.empty() ? "ours" : ours.name);
    Add(std::move(row));
  }
  return absl::OkStatus();
}

absl::Status Suite::Fail(Row row, const absl::Status& why) {
  if (absl::IsCancelled(why)) return why;
  Say(absl::StrCat("failed: ", why.message()));
  row.Set("error", std::string(why.message()));
  Add(std::move(row));
  return absl::OkStatus();
}

void Suite::Add(Row row) {
  row.SetBars(BarsFor(row));
  AddMachine(row);
  rows_.push_back(std::move(row));
}

void SetOurs(Row& row, const Finding& ours) {
  SetTime(row, "ours", ours.timing);
  if (ours.timing.samples == 1) return;
  row.Set("rounds", ours.timing.samples)
      .Set("steps_a_sample", ours.steps)
      .Set("preempted", ours.preempted);
  row.Set("data", "warm: a sample follows a step");
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
