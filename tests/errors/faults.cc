#include "tests/errors/faults.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "runtime/arguments.h"
#include "tests/harness/program_texts.h"
#include "tests/harness/random_config.h"
#include "tests/harness/rank_memory.h"

namespace coconet {
namespace {

constexpr double kTimeout = 2;            // where only a deadline can tell
constexpr double kLongTimeout = 120;      // where it must not take one: beyond kLimit
constexpr double kLimit = 60;             // of a rank's time
constexpr int kMostRuns = 20;             // before the fault
constexpr int kMostMicroseconds = 20000;  // before a death

constexpr absl::string_view kSum = R"(coconet 1
program sum
input g : f16[N] local
state p : f16[N] replicated
update(p, 0.5 * p + all_reduce(sum, g) / 8)
)";

Graph Workload(absl::string_view name, const Sizes& sizes) {
  return BindSizes(MakeWorkload(name).value(), sizes).value();
}
Graph Text(absl::string_view text, const Sizes& sizes) {
  return BindSizes(Parse(text).value(), sizes).value();
}

/// A kernel of the rank that skips.
void Nothing(const void* /*params*/, int /*block*/, int /*blocks*/) {}
class SkippedModule final : public Module {
 public:
  absl::StatusOr<void*> Symbol(absl::string_view) const override {
    return reinterpret_cast<void*>(Nothing);
  }
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool MayWait(const Step& step) {
  const auto* kernel = std::get_if<KernelStep>(&step);
  return kernel != nullptr && Waits(*kernel);
}

/// What is wrong with the words of `rank`, which found that `victim` failed; "" when nothing is.
/// `late`: at a deadline on GPUs, where nobody notes for whom it waits, so a rank names who waits,
/// too, or nobody who waits in a library's collective.
std::string CheckWords(const absl::Status& status, int rank, int victim, bool late) {
  const std::string where = absl::StrCat(" on rank ", rank, ": "),
                    who = absl::StrCat("rank ", victim, " ");
  const absl::string_view words = status.message();
  const bool code = absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  const bool step = absl::StartsWith(words, "step ") && absl::StrContains(words, where);
  const bool names =
      absl::c_any_of(std::vector<std::string>{"left: ", "has finished", "may be dead"},
                     [&](const std::string& what) { return absl::StrContains(words, who + what); });
  return code && step && (names || (late && absl::StrContains(words, " may be dead")))
             ? ""
             : absl::StrCat("want an error that names rank ", victim, " and the step, have ",
                            status.ToString());
}

/// The rank that makes the fault; the same on all ranks.
struct Plotter {
  Fault fault;
  int victim;
  int after;  // runs
  int delay_us;
  Plotter(Fault fault, int ranks, uint64_t seed) : fault(fault) {
    std::mt19937_64 random(seed);
    victim = static_cast<int>(random() % ranks);
    after = static_cast<int>(random() % kMostRuns);
    delay_us = static_cast<int>(random() % kMostMicroseconds);
  }
  /// Before run `run` of the victim: whether its body shall return, and what.
  bool Strikes(int run, absl::Status& status) const {
    if (run != after) return false;
    switch (fault) {
      case Fault::kReturns:
        return true;
      case Fault::kLeaves:
        status = absl::DataLossError("bad page");
        return true;
      case Fault::kSleeps:
        usleep(static_cast<useconds_t>(2.5e6 * kTimeout));
        return false;
      case Fault::kSkips:
        return false;
      case Fault::kDies:
        std::thread([us = delay_us] {
          usleep(us);
          kill(getpid(), SIGKILL);
        }).detach();
        return false;
    }
    CC_CHECK(false);
  }
};

}  // namespace

std::string Name(Fault fault) {
  switch (fault) {
    case Fault::kReturns:
      return "returns";
    case Fault::kLeaves:
      return "leaves";
    case Fault::kSleeps:
      return "sleeps";
    case Fault::kSkips:
      return "skips";
    case Fault::kDies:
      return "dies";
  }
  CC_CHECK(false);
}

std::vector<FaultProgram> FaultPrograms(bool small) {
  const int64_t less = small ? 8 : 1;
  const int64_t n = 20011 / less;
  const std::vector<int64_t> list = {1, 64, 7001 / (less * less), 1000 / less, 64};
  const Graph product =
      Workload("attention", {{"B", 1}, {"S", 64 / less}, {"H", 128 / less}, {"K", 256 / less}});
  const Graph boundary = Workload("pipeline", {{"B", 2}, {"S", 64 / less}, {"H", 128 / less}});
  return {{"adam_3", {3}, Workload("adam", {{"N", n}})},
          {"adam_4_2", {4, 2}, Workload("adam", {{"N", n}})},
          {"messages_3", {3}, Text(kSum, {{"N", 3001 / less}}), OneShot::kLL},
          {"lamb_3", {3}, Workload("lamb", {{"N", list}})},
          {"lamb_4_2", {4, 2}, Workload("lamb", {{"N", list}})},
          {"clip_3", {3}, Workload("clip", {{"N", list}})},
          {"attention_3", {3}, product},
          {"attention_4_2", {4, 2}, product},
          {"attention_3_3", {3, 3}, product},
          {"pipeline_2_1_2", {2, 1, 2}, boundary},
          {"pipeline_4_2_2", {4, 2, 2}, boundary},
          {"rooted_3", {3}, Text(kRooted, {{"N", 9001 / less}})},
          {"rooted_4_2", {4, 2}, Text(kRooted, {{"N", 9001 / less}})},
          {"exchange_3", {3}, Text(kExchange, {{"A", 6}, {"S", 66 / less}, {"D", 30}})},
          {"exchange_4_2", {4, 2}, Text(kExchange, {{"A", 8}, {"S", 64 / less}, {"D", 32}})}};
}

absl::StatusOr<std::vector<LoweredVariant>> FaultVariants(const FaultProgram& program,
                                                          uint64_t seed) {
  std::mt19937_64 random(seed);
  ASSIGN_OR_RETURN(std::vector<Schedule> schedules, Derive(program.program));
  const Config compiled = DrawCompiledConfig(random);
  const auto plain = [](const Schedule& s) { return s.trace().empty(); };
  const auto overlaps = [](const Schedule& s) { return !s.overlaps().empty(); };
  size_t most = 0;
  for (const Schedule& s : schedules) {
    for (const std::vector<NodeId>& kernel : s.kernels()) most = std::max(most, kernel.size());
  }
  const auto fused = [&](const Schedule& s) {
    return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
      return kernel.size() == most && most > 0;
    });
  };
  std::shuffle(schedules.begin(), schedules.end(), random);
  std::vector<LoweredVariant> variants;
  const auto add = [&](auto wanted) -> absl::Status {
    for (const Schedule& schedule : schedules) {
      if (!wanted(schedule)) continue;
      Config config = DrawArguments(compiled, schedule, random);
      if (!schedule.overlaps().empty()) config.pieces = 4;
      const ConfigSpace space{.ranks = program.target.ranks, .nodes = program.target.nodes};
      config.protocol = random() % 2 == 0 && !program.one_shot.has_value() ? Protocol::kLibrary
                                                                           : Protocol::kGenerated;
      if (schedule.overlaps().empty()) config.one_shot = program.one_shot.value_or(config.one_shot);
      if (!Validate(config, schedule, space).ok())
        config.protocol = Protocol::kLibrary;  // kernels do not reach other nodes
      DrawLanes(schedule, program.target.nodes, random, config);
      if (!Validate(config, schedule, space).ok()) continue;
      ASSIGN_OR_RETURN(LoweredVariant variant,
                       MakeVariant(program.program, schedule, config, program.target));
      variants.push_back(std::move(variant));
      return absl::OkStatus();
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add(plain));
  RETURN_IF_ERROR(add(overlaps));
  RETURN_IF_ERROR(add(fused));
  if (variants.empty())
    return absl::InternalError(absl::StrCat("no schedule of ", program.name, " runs on its world"));
  return variants;
}

double TimeoutOf(Fault fault, const Target& target, bool gpu) {
  switch (fault) {
    case Fault::kSleeps:
    case Fault::kSkips:
      return kTimeout;
    case Fault::kReturns:
      return gpu || target.world_nodes() > 1
                 ? kTimeout
                 : kLongTimeout;  // success is not told to GPUs, and other nodes
    case Fault::kLeaves:
    case Fault::kDies:
      return kLongTimeout;
  }
  CC_CHECK(false);
}

bool MustBeNoticed(Fault fault, const LoweredVariant& variant) {
  const Plan& plan = variant.lowered.plan;
  const bool waits = absl::c_any_of(plan.steps, MayWait);
  return fault != Fault::kSkips || (waits && plan.nodes == 1 && plan.stages == 1);
}

absl::Status RunIntoFault(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                          Fault fault, uint64_t seed, std::string& wrong) {
  const Plotter plot(fault, rank.size(), seed);
  const bool victim = rank.rank() == plot.victim;
  const SkippedModule skipped;
  const Module& module = victim && fault == Fault::kSkips ? skipped : kernels;
  ASSIGN_OR_RETURN(RankMemory memory,
                   RankMemory::Allocate(rank, variant.schedule, variant.lowered.plan));
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(variant.lowered.plan, module, memory.buffers(), /*timeout_s=*/0));
  absl::Status status;
  std::string first;
  const StepData data = UsualData(seed);
  const double start = Seconds();
  for (int run = 0; status.ok(); ++run) {
    if (Seconds() - start > kLimit) {
      wrong = absl::StrCat("rank ", rank.rank(), " has not noticed after ", run, " runs");
      return absl::OkStatus();
    }
    if (victim && plot.Strikes(run, status)) return status;
    memory.Fill(data, 0);
    status = plan->Run();
    if (!status.ok() || fault == Fault::kSkips) continue;
    if (run == 0) first = memory.Read();
    if (memory.Read() != first)
      wrong = absl::StrCat("rank ", rank.rank(), ", run ", run,
                           ": other results than those of the first");
  }
  if (plan->Run() != status) absl::StrAppend(&wrong, "the second error differs from the first");
  const bool late = (!rank.topology().arch.empty() || rank.topology().simulated) &&
                    (fault == Fault::kReturns || fault == Fault::kSleeps);
  if (!victim) absl::StrAppend(&wrong, CheckWords(status, rank.rank(), plot.victim, late));
  return status;
}

}  // namespace coconet
