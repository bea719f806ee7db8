// Prints how long four ranks take to join a world out of band, as threads, against RunRanks of as
// many, and as processes; and both of threads with a program from the tuning cache and its first
// step.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/temp_dir.h"
#include "runtime/testing/gatherer.h"

ABSL_FLAG(int, ranks, 4, "ranks, as threads of this process; at most 8");
ABSL_FLAG(std::string, case, "", "join or step (default: both)");
ABSL_FLAG(int, rounds, 21, "how often each side is timed, in turns");

namespace coconet::bench {
namespace {

constexpr int64_t kN = 1024;

using Body = std::function<absl::Status(Session&)>;

int Rounds() { return IsQuick() ? 3 : absl::GetFlag(FLAGS_rounds); }

/// The ranks gather as a launcher would let them.
absl::Status Join(int ranks, const std::shared_ptr<Region>& table, const SessionOptions& options,
                  const Body& body) {
  const std::vector<absl::Status> statuses = GatherOnThreads(
      ranks,
      [&](Gatherer& gatherer, int /*rank*/) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Join({.out_of_band = gatherer.way()}, options));
        return body(*session);
      },
      table);
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::StatusOr<double> TimeUs(const std::function<absl::Status()>& run) {
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(run());
  return 1e6 * (SecondsNow() - start_s);
}

/// Sets the times' median and the quantiles around it.
void SetQuantiles(Row& row, const std::string& side, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  for (const auto& [field, at] : {std::pair("_us", 0.5), {"_p10_us", 0.1}, {"_p90_us", 0.9}})
    row.Set(side + field, times[static_cast<size_t>(at * static_cast<double>(times.size() - 1))]);
}

/// Waits until all ranks have come.
void Meet(const OutOfBand& way) {
  const char mine = 0;
  std::vector<char> all(way.ranks);
  void* request = nullptr;
  CC_CHECK(way.all_gather(way.context, &mine, all.data(), 1, &request) == 0);
  while (way.test(way.context, request) == 1) std::this_thread::yield();
}

/// How long processes take, from when all of them are there until the last one has joined and left,
/// over `baseline_us` of threads. Has no bar.
absl::StatusOr<Row> MeasureProcesses(const SessionOptions& options, double baseline_us) {
  const int ranks = absl::GetFlag(FLAGS_ranks), rounds = Rounds() + 1;
  const std::shared_ptr<Region> memory = Gatherer::TableMemory();
  auto* took = static_cast<double*>(memory->base());  // by round and rank
  if (static_cast<int64_t>(rounds) * ranks * static_cast<int64_t>(sizeof *took) > memory->bytes())
    return absl::InvalidArgumentError("--rounds: want fewer");
  const auto body = [&](Gatherer& gatherer, int rank) -> absl::Status {
    for (int round = 0; round < rounds; ++round) {
      Meet(gatherer.way());
      ASSIGN_OR_RETURN(took[round * ranks + rank], TimeUs([&] {
                         return Session::Join({.out_of_band = gatherer.way()}, options).status();
                       }));
    }
    return absl::OkStatus();
  };
  for (const std::string& status : GatherOnProcesses(ranks, body)) {
    if (status != "OK") return absl::InternalError(status);
  }
  std::vector<double> times;
  for (int round = 1; round < rounds; ++round)
    times.push_back(*std::max_element(took + round * ranks, took + (round + 1) * ranks));
  Row row;
  row.Set("case", "join, processes").Set("ranks", static_cast<int64_t>(ranks));
  SetQuantiles(row, "ours", times);
  row.Set("baseline_us", baseline_us).Set("over", row.Number("ours_us") / baseline_us);
  return row.Set("bar", "");
}

absl::StatusOr<Row> Measure(const std::string& name, const SessionOptions& options,
                            const Body& body) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const std::shared_ptr<Region> table = Gatherer::TableMemory();
  std::vector<double> ours, theirs;
  for (int round = 0; round < Rounds() + 1; ++round) {
    ASSIGN_OR_RETURN(const double joined,
                     TimeUs([&] { return Join(ranks, table, options, body); }));
    ASSIGN_OR_RETURN(const double run, TimeUs([&] { return RunRanks(ranks, body, options); }));
    if (round == 0) continue;  // tunes
    ours.push_back(joined);
    theirs.push_back(run);
  }
  Row row;
  row.Set("case", name).Set("ranks", static_cast<int64_t>(ranks)).Set("n", kN).Set("dtype", "f32");
  SetQuantiles(row, "ours", ours);
  SetQuantiles(row, "baseline", theirs);
  const double over = row.Number("ours_us") / row.Number("baseline_us");
  row.Set("ratio", 1 / over).Set("over", over);
  return row.SetBars(BarsOf("over <= 2"));
}

absl::Status RunAll() {
  if (absl::GetFlag(FLAGS_ranks) > Gatherer::kMostRanks)
    return absl::InvalidArgumentError("--ranks: want 1 to 8");
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  SessionOptions options;
  options.cache_file = absl::StrCat(folder->path(), "/tuning.db");
  options.optimize = Optimize::kFast;
  ASSIGN_OR_RETURN(const Graph adam, MakeWorkload("adam"));
  std::vector<Row> rows;
  const std::string chosen = absl::GetFlag(FLAGS_case);
  if (chosen != "step") {
    ASSIGN_OR_RETURN(rows.emplace_back(),
                     Measure("join", options, [](Session&) { return absl::OkStatus(); }));
    ASSIGN_OR_RETURN(rows.emplace_back(),
                     MeasureProcesses(options, rows.front().Number("baseline_us")));
  }
  if (chosen != "join") {
    ASSIGN_OR_RETURN(rows.emplace_back(),
                     Measure("join, first step", options, [&](Session& session) -> absl::Status {
                       ASSIGN_OR_RETURN(const TunedProgram tuned,
                                        session.Compile(adam, {{"N", kN}}));
                       ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
                       return bound.Run();
                     }));
  }
  return Show(
      rows,
      ColumnsOf(
          "case, ranks|%.0f, joined|time|ours_us, RunRanks|time|baseline_us, over|%.2f, bar"));
}

const Registered kBenchmark({.name = "joining",
                             .purpose = "measures joining a world",
                             .heeds = {"quick"},
                             .positive = {"ranks", "rounds"},
                             .words = {{"case", "join, step"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
