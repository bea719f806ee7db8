#include "bench/tuning/pairs.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/search/tuner.h"
#include "autotune/session/session.h"
#include "bench/harness/rounds.h"
#include "bench/harness/worker.h"
#include "bench/harness/workload.h"
#include "bench/search/subjects.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {
namespace {

/// What a worker is told: a subject, and what to do with it.
struct Task {
  Subject subject;
  double budget_s = 0;  // of a tuning; 0: rounds
  std::string search = "auto";
  int rounds = 0;
  std::string variants;  // "SCHEDULE|CONFIG;;..." of rounds

  static auto Fields(auto& t) {
    return std::tuple_cat(Subject::Fields(t.subject),
                          std::tie(t.budget_s, t.search, t.rounds, t.variants));
  }
};

/// A gated MLP, split over the ranks along F.
constexpr absl::string_view kSwiglu = R"(coconet 1
program swiglu
input x : f32[T, H] replicated
input gate : f32[F, H] local
input up : f32[F, H] local
input down : f32[H, F] local
h = silu(matmul(x, gate, transpose_b)) * matmul(x, up, transpose_b)
output y = all_reduce(sum, matmul(h, down, transpose_b))
)";

absl::StatusOr<Graph> BoundProgramOf(const Subject& subject) {
  if (subject.name == "swiglu") {
    ASSIGN_OR_RETURN(const Graph program, Parse(kSwiglu));
    return BindSizes(program, {{"T", 64}, {"H", 256}, {"F", 512}});
  }
  ASSIGN_OR_RETURN(const std::vector<WorkloadInfo> workloads, WorkloadsOf({subject.name}));
  Sizes sizes = {{"N", subject.n}};
  if (!subject.preset.empty()) {
    for (const SizePreset& preset : workloads[0].presets) {
      if (preset.name == subject.preset) sizes = preset.sizes;
    }
  }
  return BoundWorkload(subject.name, DType::kF32, sizes);
}

absl::StatusOr<Graph> ProgramOf(const Subject& subject, int ranks) {
  ASSIGN_OR_RETURN(const Graph bound, BoundProgramOf(subject));
  RETURN_IF_ERROR(CheckRuns(bound, ranks));
  ASSIGN_OR_RETURN(const Schedule schedule, InitialSchedule(bound));
  return schedule.graph();
}

Finding Fact(std::string name, std::string detail) {
  Finding fact;
  fact.side = std::move(name);
  fact.detail = std::move(detail);
  return fact;
}

absl::StatusOr<std::vector<Finding>> TuneHere(Rank& rank, const Task& task) {
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(task.subject, rank.size()));
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = task.budget_s;
  options.search = *ParseSearchKind(task.search);
  const double begin_s = SecondsNow();
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
  const TuningRecord& record = tuned.record();
  const SpeedUp& gain = record.speed_up;
  return std::vector<Finding>{
      Fact("best", absl::StrCat(record.best.trace, "|", Text(record.best.config))),
      Fact("baseline", absl::StrCat(record.baseline.trace, "|", Text(record.baseline.config))),
      Fact("schedule", record.best.schedule),
      Fact("ratio", absl::StrCat(gain.ratio)),
      Fact("low", absl::StrCat(gain.low)),
      Fact("high", absl::StrCat(gain.high)),
      Fact("meeting", absl::StrCat(gain.meeting_us)),
      Fact("known", absl::StrCat(gain.IsKnown())),
      Fact("complete", absl::StrCat(record.complete)),
      Fact("seconds", absl::StrCat(SecondsNow() - begin_s))};
}

constexpr int kPlacements = 5, kMoves = 8;  // of memory in each

absl::Status RunPlaced(RankRunner& runner, int rounds, uint64_t seed,
                       std::vector<std::vector<double>>& us) {
  std::vector<int> order(us.size());
  for (size_t v = 0; v < order.size(); ++v) order[v] = static_cast<int>(v);
  ASSIGN_OR_RETURN(const auto failures, runner.Compile(order, [] { return false; }));
  std::vector<int> steps;
  std::vector<double> sample_us;
  for (int v : order) {
    if (failures[v].has_value()) return absl::InternalError(failures[v]->reason);
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, runner.Load(v));
    if (failure.has_value()) return absl::InternalError(failure->reason);
    RETURN_IF_ERROR(runner.Time(v, 1, 1).status());
    ASSIGN_OR_RETURN(const VariantRunner::Sample sample, runner.Time(v, 0, 3));
    sample_us.push_back(sample.us);
    steps.push_back(std::max(1, static_cast<int>(1000 / std::max(sample.us, 1e-3))));
  }
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    if (round % std::max(1, rounds / kMoves) == 0) RETURN_IF_ERROR(runner.MoveMemory().status());
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (int v : order) {
      ASSIGN_OR_RETURN(const VariantRunner::Sample sample,
                       runner.Time(v, sample_us[v] < 10000 ? steps[v] : 0, steps[v]));
      us[v].push_back(sample.us);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Finding>> RunRounds(Rank& rank, const Task& task) {
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(task.subject, rank.size()));
  const ConfigSpace space = SpaceHere(rank);
  Chooser chooser(program, space);
  VariantSet set{.baseline = 0};
  for (absl::string_view text : absl::StrSplit(task.variants, ";;")) {
    const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits('|', 1));
    Variant variant{.schedule = {}, .config = {}};
    if (words[0].empty()) {
      ASSIGN_OR_RETURN(variant.schedule, InitialSchedule(program));
      ASSIGN_OR_RETURN(variant.config, ParseConfig(words[1]));
    } else {
      ASSIGN_OR_RETURN(variant, chooser.One({words[0], words[1]}));
    }
    variant.group = static_cast<int>(set.variants.size());
    set.variants.push_back(std::move(variant));
  }
  std::vector<std::vector<double>> us(set.variants.size());
  std::vector<double> meetings;
  Run before;  // keeps its memory, so that the next run gets another
  for (int placement = 0; placement < kPlacements; ++placement) {
    ASSIGN_OR_RETURN(Run run, MakeRunner(rank, program, set, 1));
    RETURN_IF_ERROR(RunPlaced(*run.runner, task.rounds / kPlacements, placement, us));
    ASSIGN_OR_RETURN(meetings.emplace_back(), run.runner->MeetingUs());
    before = std::move(run);
  }
  std::vector<Finding> found;
  for (const std::vector<double>& of : us) found.push_back(Fact("us", absl::StrJoin(of, ",")));
  found.push_back(Fact("least meeting", absl::StrCat(*absl::c_min_element(meetings))));
  found.push_back(Fact("most meeting", absl::StrCat(*absl::c_max_element(meetings))));
  return found;
}

absl::StatusOr<std::vector<Finding>> Do(Rank& rank, const Task& task) {
  return task.rounds > 0 ? RunRounds(rank, task) : TuneHere(rank, task);
}

const Worker<Task> kWorker("pairs", Do, [](const Task& task) {
  return WorldOptions{.ranks = task.subject.processes ? 0 : task.subject.ranks};
});

absl::StatusOr<std::vector<Finding>> RunApart(const Task& task, const std::string& cache,
                                              const std::string& scratch) {
  return RunWorker({.processes = task.subject.processes ? task.subject.ranks : 0,
                    .arguments = kWorker.Arguments(task),
                    .cache = cache,
                    .scratch = scratch});
}

Choice ChoiceOf(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits('|', 1));
  return {words[0], words.back()};
}

double NumberOf(absl::Span<const Finding> found, absl::string_view fact) {
  double number = 0;
  return absl::SimpleAtod(FactOf(found, fact), &number) ? number : 0;
}

}  // namespace

absl::StatusOr<Stored> TuneApart(const Subject& subject, double budget_s, const std::string& search,
                                 const std::string& cache, const std::string& scratch) {
  Task task{.subject = subject, .budget_s = budget_s, .search = search};
  ASSIGN_OR_RETURN(const std::vector<Finding> found, RunApart(task, cache, scratch));
  return Stored{.best = ChoiceOf(FactOf(found, "best")),
                .baseline = ChoiceOf(FactOf(found, "baseline")),
                .schedule = FactOf(found, "schedule"),
                .ratio = NumberOf(found, "ratio"),
                .low = NumberOf(found, "low"),
                .high = NumberOf(found, "high"),
                .meeting_us = NumberOf(found, "meeting"),
                .is_known = FactOf(found, "known") == "1",
                .complete = FactOf(found, "complete") == "1",
                .seconds = NumberOf(found, "seconds")};
}

absl::StatusOr<Rounds> RoundsOf(const Subject& subject, const std::vector<Choice>& variants,
                                int rounds, const std::string& cache, const std::string& scratch) {
  Task task{.subject = subject, .rounds = rounds};
  task.variants = absl::StrJoin(variants, ";;", [](std::string* out, const Choice& v) {
    absl::StrAppend(out, v.schedule, "|", v.config);
  });
  ASSIGN_OR_RETURN(const std::vector<Finding> found, RunApart(task, cache, scratch));
  Rounds result{.us = {},
                .least_meeting_us = NumberOf(found, "least meeting"),
                .most_meeting_us = NumberOf(found, "most meeting")};
  for (const Finding& finding : found) {
    if (finding.side != "us") continue;
    std::vector<double>& of = result.us.emplace_back();
    for (absl::string_view word : absl::StrSplit(finding.detail, ',')) {
      double sample = 0;
      if (absl::SimpleAtod(word, &sample)) of.push_back(sample);
    }
  }
  return result;
}

}  // namespace coconet::bench
