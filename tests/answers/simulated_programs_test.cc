// Random programs of all operations and layouts: their schedules, run element by element by the
// simulator, against the interpreter. A failure prints the program, as it is and shrunk, and the
// seed that makes it again. More of them: --test_arg=--programs=100000.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/testing/random_program.h"
#include "coconet/testing/simulator.h"
#include "gtest/gtest.h"
#include "tests/harness/shrink.h"
#include "tests/harness/test_data.h"

ABSL_FLAG(int, programs, 500, "how many programs");

namespace coconet {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 8};
constexpr int kSchedules = 6;       // tried of each program
constexpr int kMaxSchedules = 128;  // derived of each
constexpr int kShrinkTries = 2000;

/// How a program is run: what a failure depends on.
struct Setting {
  uint64_t seed;
  int ranks, nodes, stages;
};

/// Some of the worlds of 4 and 8 ranks are of two nodes.
Setting SettingOf(uint64_t made) {
  const int ranks = kRanks[made % std::size(kRanks)];
  return {made, ranks, /*nodes=*/ranks % 4 == 0 && made / 8 % 2 == 0 ? 2 : 1,
          /*stages=*/made % 4 == 0 ? 2 : 1};
}

struct Tally {
  int64_t schedules = 0, elements = 0, undetermined = 0;
};

/// Elements of inputs and states, by name.
ElementSource DataOf(const Graph& g, uint64_t seed) {
  std::map<std::string, DType> dtypes;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* input = As<Input>(g, id)) dtypes[input->name] = input->type.dtype;
    if (const auto* state = As<State>(g, id)) dtypes[state->name] = state->type.dtype;
  }
  return [dtypes, seed](const std::string& name, int rank, int64_t index) {
    return TestValue(seed, name, dtypes.at(name), /*step=*/0, rank, index);
  };
}

/// Known integers are equal, other numbers within the error.
bool Within(const Number& have, const Number& want, double error) {
  if (std::isinf(error) || have == want || (have.is_nan() && want.is_nan())) return true;
  if (error == 0 && have.is_integer() && want.is_integer()) return false;
  return std::fabs(have.real() - want.real()) <=
         error + 1e-12 * std::max(1.0, std::fabs(want.real()));
}

/// What is being checked, for those who look into a broken invariant or a crash.
std::string current;

void ShowCurrent(int signal) {
  static_cast<void>(!write(STDERR_FILENO, current.data(), current.size()));
  std::signal(signal, SIG_DFL);
}

/// Internal with the first element that is not as wanted.
absl::Status Compare(const Schedule& s, const Interpreter& interpreter, Evaluator& evaluator,
                     const Setting& setting, const ElementSource& source, Tally& tally) {
  current = absl::StrCat("in ", Describe(s), " [", TraceText(s.trace()), "] of\n", Print(s.graph()),
                         "ranks: ", setting.ranks, ", nodes: ", setting.nodes,
                         ", stages: ", setting.stages, "\n");
  const auto have = Simulate(s, setting.ranks, source,
                             Mix(setting.seed, static_cast<uint64_t>(tally.schedules++)),
                             setting.stages, setting.nodes);
  for (const std::string& result : interpreter.results()) {
    std::vector<int64_t> indices(NumElements(interpreter.type(result).shape));
    std::iota(indices.begin(), indices.end(), 0);
    for (int rank = 0; rank < setting.ranks * setting.stages; ++rank) {
      ASSIGN_OR_RETURN(const Expected want, evaluator.Evaluate(result, rank, indices));
      for (size_t i = 0; i < indices.size(); ++i) {
        const Number& value = have.at(result)[rank][i];
        ++tally.elements;
        tally.undetermined += std::isinf(want.error[i]) && !HasSpecialValues(setting.seed, 0);
        if (Within(value, want.value[i], want.error[i])) continue;
        return absl::InternalError(
            absl::StrCat(result, "[", i, "] on rank ", rank, ": want ", ShortText(want.value[i]),
                         " +- ", want.error[i], ", have ", ShortText(value),
                         "\nschedule: ", Describe(s), "\ntrace: ", TraceText(s.trace())));
      }
    }
  }
  return absl::OkStatus();
}

/// `limit` schedules of the program, drawn by the seed; the plain one is the first.
absl::Status Check(const Graph& program, const Setting& setting, size_t limit, Tally& tally) {
  absl::StatusOr<std::vector<Schedule>> schedules =
      Derive(program, {.max_schedules = kMaxSchedules, .by_node = setting.nodes > 1});
  if (absl::IsResourceExhausted(schedules.status())) return absl::OkStatus();
  RETURN_IF_ERROR(schedules.status());
  ASSIGN_OR_RETURN(const Interpreter interpreter,
                   Interpreter::Create(program, setting.ranks, setting.stages, setting.nodes));
  const ElementSource source = DataOf(program, setting.seed);
  Evaluator evaluator(interpreter, source);
  std::mt19937_64 random(setting.seed);
  if (schedules->size() > limit) std::shuffle(schedules->begin() + 1, schedules->end(), random);
  for (size_t i = 0; i < std::min(limit, schedules->size()); ++i) {
    RETURN_IF_ERROR(Compare((*schedules)[i], interpreter, evaluator, setting, source, tally));
  }
  return absl::OkStatus();
}

TEST(SimulatedPrograms, ComputeWhatTheySay) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  for (int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, ShowCurrent);
  Tally tally;
  for (int i = 0; i < absl::GetFlag(FLAGS_programs); ++i) {
    const uint64_t made = random();
    const Setting setting = SettingOf(made);
    const Graph program = Canonicalize(RandomProgram(made, {.max_elements = 150})).graph;
    current = absl::StrCat("in program ", i, " of COCONET_SEED=", seed, "\n", Print(program));
    const absl::Status status = Check(program, setting, kSchedules, tally);
    if (status.ok()) continue;
    const auto fails = [&](const Graph& smaller) {
      Tally unused;
      return !Check(smaller, setting, kMaxSchedules, unused).ok();
    };
    const Graph shrunk = fails(program) ? Shrink(program, kShrinkTries, fails) : program;
    FAIL() << status << "\nranks: " << setting.ranks << ", nodes: " << setting.nodes
           << ", stages: " << setting.stages << "  COCONET_SEED=" << seed << " --programs=" << i + 1
           << "\n"
           << Print(program) << "\nshrunk: " << Check(shrunk, setting, kMaxSchedules, tally) << "\n"
           << Print(shrunk);
  }
  std::cout << tally.schedules << " schedules, " << tally.elements << " elements, "
            << tally.undetermined << " of them undetermined\n";
  EXPECT_LE(tally.undetermined * 10, tally.elements) << "bounds that say nothing";
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
