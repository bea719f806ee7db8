// Prints what tuning over a range of sizes takes, and costs: the time against that of tuning each
// size apart, how much slower its variants are than those, and what binding a size takes.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/tuning/pairs.h"
#include "coconet/base/status.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 2, "threads");
ABSL_FLAG(double, seconds, 60, "seconds of a range, and of a size that is tuned apart");
ABSL_FLAG(int, rounds, 60, "in which a size's two variants are timed in turns");
ABSL_FLAG(std::string, programs, "", "names of the programs, separated by commas; empty: all");

namespace coconet::bench {
namespace {

struct Case {
  std::string program;
  int64_t lo = 1, hi = 1;
};
const Case kCases[] = {
    {"adam", 1 << 10, 1 << 26}, {"lamb", 1 << 10, 1 << 22}, {"momentum", 1 << 10, 1 << 24}};
constexpr int kSizes = 12;

/// `count` sizes of a range, none of them a power of two but the ends.
std::vector<int64_t> SizesIn(int64_t lo, int64_t hi, int count) {
  std::vector<int64_t> sizes;
  const double whole = static_cast<double>(hi) / static_cast<double>(lo);
  for (int i = 0; i < count; ++i)
    sizes.push_back(static_cast<int64_t>(static_cast<double>(lo) *
                                         std::pow(whole, i / std::max(count - 1.0, 1.0))));
  return sizes;
}

/// What a worker tunes: a range, or each of its sizes apart.
struct Task {
  Case c;
  int count = 2;  // of sizes
  double seconds = 1;
  int ranks = 2;
  bool apart = false;

  static auto Fields(auto& t) {
    return std::tie(t.c.program, t.c.lo, t.c.hi, t.count, t.seconds, t.ranks, t.apart);
  }
};

Finding Fact(std::string name, std::string detail) {
  Finding fact;
  fact.side = std::move(name);
  fact.detail = std::move(detail);
  return fact;
}

void AddChoice(const TunedProgram& program, int64_t size, std::vector<Finding>& found) {
  const VariantResult& best = program.record().best;
  found.push_back(
      Fact(absl::StrCat("best ", size), absl::StrCat(best.trace, "|", Text(best.config))));
  found.push_back(Fact(absl::StrCat("schedule ", size), best.schedule));
}

/// Binds the program to memory of its own that the session has registered; returns microseconds.
absl::StatusOr<double> BindUs(Session& session, const TunedProgram& program,
                              std::vector<DeviceBuffer>& memory) {
  std::vector<Binding> bindings;
  const bool allocates = memory.empty();
  for (const TensorInfo& tensor : program.tensors()) {
    if (tensor.type.shape.empty()) continue;
    if (allocates) {
      ASSIGN_OR_RETURN(memory.emplace_back(), program.Allocate(tensor.name));
    }
    bindings.push_back(Binding(tensor.name, memory[bindings.size()]).AcceptSlice());
  }
  RETURN_IF_ERROR(session.Meet("a binding"));
  const double start_s = SecondsNow();
  ASSIGN_OR_RETURN(const BoundProgram bound, program.Bind(bindings));
  return 1e6 * (SecondsNow() - start_s);
}

/// Binds sizes that were never seen, and sizes that were.
absl::Status TimeBinds(Session& session, const TunedSizes& tuned, int64_t lo,
                       std::vector<Finding>& found) {
  std::vector<double> at, again, bind;
  for (int i = 0; i < 60; ++i) {
    const Sizes sizes = {{"N", lo + 64 * i + 37 * (i % 3)}};
    RETURN_IF_ERROR(session.Meet("a size"));
    double start_s = SecondsNow();
    ASSIGN_OR_RETURN(const TunedProgram program, tuned.At(sizes));
    at.push_back(1e6 * (SecondsNow() - start_s));
    start_s = SecondsNow();
    RETURN_IF_ERROR(tuned.At(sizes).status());
    again.push_back(1e6 * (SecondsNow() - start_s));
    std::vector<DeviceBuffer> memory;
    RETURN_IF_ERROR(BindUs(session, program, memory).status());
    ASSIGN_OR_RETURN(bind.emplace_back(), BindUs(session, program, memory));
  }
  found.push_back(Fact("at", absl::StrCat(Median(at))));
  found.push_back(Fact("again", absl::StrCat(Median(again))));
  found.push_back(Fact("bind", absl::StrCat(Median(bind))));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Finding>> TuneHere(Rank& rank, const Task& task) {
  const absl::StatusOr<Graph> program = MakeWorkload(task.c.program);
  const std::vector<int64_t> sizes = SizesIn(task.c.lo, task.c.hi, task.count);
  SessionOptions options;
  options.budget_s = task.seconds;
  Session session(rank, options);
  std::vector<Finding> found;
  const double start_s = SecondsNow();
  if (task.apart) {
    for (int64_t size : sizes) {
      ASSIGN_OR_RETURN(const TunedProgram own, session.Compile(program, {{"N", size}}));
      AddChoice(own, size, found);
    }
    found.push_back(Fact("seconds", absl::StrCat(SecondsNow() - start_s)));
    return found;
  }
  ASSIGN_OR_RETURN(const TunedSizes tuned,
                   session.CompileRange(program, {{"N", {sizes.front(), sizes.back()}}}));
  found.push_back(Fact("seconds", absl::StrCat(SecondsNow() - start_s)));
  for (int64_t size : sizes) {
    ASSIGN_OR_RETURN(const TunedProgram of_range, tuned.At({{"N", size}}));
    AddChoice(of_range, size, found);
  }
  RETURN_IF_ERROR(TimeBinds(session, tuned, task.c.lo, found));
  return found;
}

const Worker<Task> kWorker("sizes", TuneHere,
                           [](const Task& task) { return WorldOptions{.ranks = task.ranks}; });

/// Tunes in a process of its own, with binaries and records of its own, which `folder` keeps.
absl::StatusOr<std::vector<Finding>> TuneIn(const std::string& folder, const Task& task) {
  return RunWorker(
      {.arguments = kWorker.Arguments(task), .cache = folder + "/cache", .scratch = folder});
}

double NumberOf(absl::Span<const Finding> found, absl::string_view fact) {
  double number = 0;
  return absl::SimpleAtod(FactOf(found, fact), &number) ? number : 0;
}

Choice ChoiceOf(absl::Span<const Finding> found, int64_t size) {
  const std::vector<std::string> words =
      absl::StrSplit(FactOf(found, absl::StrCat("best ", size)), absl::MaxSplits('|', 1));
  return {words[0], words.back()};
}

/// Times a size's two variants in the same rounds, in processes of their own; returns by how much
/// the range's is slower. The same variant has no regret.
absl::StatusOr<double> CompareAt(int64_t size, const Task& task, absl::Span<const Finding> range,
                                 absl::Span<const Finding> apart, const std::string& folder,
                                 std::vector<Row>& rows) {
  const Choice ours = ChoiceOf(range, size), own = ChoiceOf(apart, size);
  Row& row = rows.emplace_back();
  const std::string schedule = absl::StrCat("schedule ", size);
  row.Set("case", absl::StrCat(task.c.program, " ", size));
  row.Set("variant", FactOf(range, schedule)).Set("config", ours.config);
  if (ours.schedule == own.schedule && ours.config == own.config) {
    row.Set("apart", "the same").Set("regret", 0.0);
    return 0;
  }
  row.Set("apart", FactOf(apart, schedule)).Set("apart_config", own.config);
  ASSIGN_OR_RETURN(
      const Rounds rounds,
      RoundsOf({.name = task.c.program, .n = size, .ranks = task.ranks}, {own, ours},
               IsQuick() ? 10 : absl::GetFlag(FLAGS_rounds), folder + "/cache", folder));
  std::vector<double> ratios;
  for (size_t i = 0; i < rounds.us[0].size(); ++i)
    ratios.push_back(rounds.us[1][i] / rounds.us[0][i]);
  std::sort(ratios.begin(), ratios.end());
  const double regret = Median(ratios) - 1;
  row.Set("apart_us", Median(rounds.us[0])).Set("regret", regret);
  row.Set("low", ratios[ratios.size() / 4] - 1).Set("high", ratios[ratios.size() * 3 / 4] - 1);
  return regret;
}

absl::Status AddRows(const Case& c, std::vector<Row>& rows) {
  Task task{.c = c,
            .count = IsQuick() ? 3 : kSizes,
            .seconds = IsQuick() ? 2 : absl::GetFlag(FLAGS_seconds),
            .ranks = absl::GetFlag(FLAGS_ranks)};
  if (IsQuick()) task.c.hi = std::min<int64_t>(c.hi, c.lo * 16);
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> of_range, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> of_sizes, TempDir::Make());
  ASSIGN_OR_RETURN(const std::vector<Finding> range, TuneIn(of_range->path(), task));
  task.apart = true;
  ASSIGN_OR_RETURN(const std::vector<Finding> apart, TuneIn(of_sizes->path(), task));
  std::vector<double> regret;
  for (int64_t size : SizesIn(task.c.lo, task.c.hi, task.count)) {
    ASSIGN_OR_RETURN(regret.emplace_back(),
                     CompareAt(size, task, range, apart, of_sizes->path(), rows));
  }
  const double range_s = NumberOf(range, "seconds"), apart_s = NumberOf(apart, "seconds");
  const auto within = absl::c_count_if(regret, [](double r) { return r <= 0.03; });
  Row& row = rows.emplace_back();
  row.Set("case", absl::StrCat(c.program, " ", task.c.lo, "..", task.c.hi));
  row.Set("ours_us", 1e6 * range_s).Set("baseline_us", 1e6 * apart_s);
  row.Set("ratio", range_s / apart_s);
  row.Set("within", static_cast<double>(within) / static_cast<double>(regret.size()));
  row.Set("regret", *absl::c_max_element(regret));
  row.Set("at_us", NumberOf(range, "at")).Set("again_us", NumberOf(range, "again"));
  row.Set("bind_us", NumberOf(range, "bind"));
  row.SetBars(BarsOf("ratio <= 0.2, within >= 0.95"));
  return absl::OkStatus();
}

absl::Status RunAll() {
  const std::vector<std::string> programs =
      absl::StrSplit(absl::GetFlag(FLAGS_programs), ',', absl::SkipEmpty());
  std::vector<Row> rows;
  for (const Case& c : kCases) {
    if (programs.empty() || absl::c_linear_search(programs, c.program))
      RETURN_IF_ERROR(AddRows(c, rows));
  }
  return Show(rows, ColumnsOf("case, range|time|ours_us, sizes|time|baseline_us, ratio|%.3f, "
                              "within|%.2f, time|time|apart_us, regret|%.3f, low|%.3f, high|%.3f, "
                              "at|time|at_us, again|time|again_us, bind|time|bind_us, variant, "
                              "tuned apart|text|apart, bar"));
}

const Registered kBenchmark({.name = "sizes",
                             .purpose = "measures tuning over ranges of sizes",
                             .heeds = {"quick"},
                             .positive = {"ranks", "seconds", "rounds"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
