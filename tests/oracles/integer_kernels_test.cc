// Random programs of integers of all widths, as kernels compute them, against NumPy
// (tests/recorded): one schedule of each, with a config drawn at random. More of them:
// --test_arg=--programs=400.

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/reference/rounding.h"
#include "coconet/schedule/derivation/derive.h"
#include "gtest/gtest.h"
#include "jit/config/config.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/shrink.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"
#include "tests/oracles/recorded_programs.h"

ABSL_FLAG(int, programs, 0, "how many programs; 0: 24, on simulated GPUs 6");

namespace coconet {
namespace {

constexpr int kTogether = 8;  // programs that are compiled in one call
constexpr int kConfigTries = 8;
constexpr int kShrinkTries = 40;  // each compiles for a second or so

/// As large as threads that are simulated one by one can do.
int Elements() { return TheMachine().simulated ? 130 : 600; }

/// `count` schedules of the program for which a legal config is drawn: rather those with few
/// launches, whose kernels compute much. Internal where there is none.
absl::Status AddSchedules(const RecordedProgram& made, size_t count, uint64_t seed,
                          VariantBatch& batch) {
  std::mt19937_64 random(Mix(seed, static_cast<uint64_t>(made.number)));
  ASSIGN_OR_RETURN(std::vector<Schedule> schedules, Derive(made.program, {.few = true}));
  std::stable_sort(schedules.begin(), schedules.end(), [](const Schedule& a, const Schedule& b) {
    return a.launches().size() < b.launches().size();
  });
  const auto half = static_cast<ptrdiff_t>(schedules.size() / 2 + 1);
  std::shuffle(schedules.begin(), schedules.begin() + half, random);
  size_t added = 0;
  absl::Status legal;
  for (const Schedule& candidate : schedules) {
    for (int tries = 0; tries < kConfigTries; ++tries) {
      const Schedule schedule = DrawOrder(candidate, random);
      Config config = DrawArguments(DrawCompiledConfig(random), schedule, random);
      config.protocol = random() % 2 == 0 ? Protocol::kLibrary : Protocol::kGenerated;
      DrawLanes(schedule, /*nodes=*/1, random, config);
      legal = Validate(config, schedule, {.ranks = made.ranks});
      if (!legal.ok()) continue;
      RETURN_IF_ERROR(batch.Add(made.program, schedule, config, made.ranks));
      if (++added == count) return absl::OkStatus();
      break;
    }
  }
  if (added > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("no schedule has a legal config: ", legal.message()));
}

/// Runs so many schedules of each; returns the failures.
std::string Failures(const std::vector<RecordedProgram>& all, size_t schedules, uint64_t seed,
                     Tally& tally) {
  std::map<std::string, const RecordedProgram*> by_name;
  VariantBatch batch(TheMachine(), AgainstNumPy(by_name));
  for (const RecordedProgram& made : all) {
    by_name[made.program.name] = &made;
    const absl::Status added = AddSchedules(made, schedules, seed, batch);
    if (!added.ok()) return absl::StrCat(added.ToString(), "\n", made.text);
  }
  const std::string failures = batch.Run(seed, /*steps=*/0);
  tally += batch.tally();
  return failures;
}

/// A part of the program on the data of a step, with what the interpreter makes of them in place of
/// what NumPy does.
absl::StatusOr<RecordedProgram> PartOf(const RecordedProgram& made, const Graph& part, int step) {
  RecordedProgram smaller{made.number, made.ranks, Print(part), part};
  smaller.steps.push_back({made.steps[step].given, {}});
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(part));
  for (NodeId id = 0; id < part.size(); ++id) {
    if (const std::string* name = DeclaredName(part.nodes[id].op); name != nullptr)
      smaller.types.emplace(*name, types[id]);
    const auto* state = As<State>(part, id);
    if (state == nullptr) continue;
    if (step > 0) smaller.steps[0].given[state->name] = made.steps[step - 1].want.at(state->name);
    smaller.steps[0].want[state->name] = smaller.steps[0].given.at(state->name);  // if not updated
  }
  ASSIGN_OR_RETURN(const Interpreter interpreter, Interpreter::Create(part, made.ranks));
  Evaluator evaluator(interpreter, [&](const std::string& name, int rank, int64_t index) {
    return smaller.Given(name, /*step=*/0, rank, index);
  });
  for (const std::string& result : interpreter.results()) {
    const TensorType& type = smaller.types.at(result);
    const bool is_local = type.layout.kind == Layout::Kind::kLocal;
    std::vector<int64_t> indices(NumElements(type.shape));
    std::iota(indices.begin(), indices.end(), 0);
    std::string bytes((is_local ? made.ranks : 1) * indices.size() * SizeOf(type.dtype), '\0');
    for (int rank = 0; rank < (is_local ? made.ranks : 1); ++rank) {
      ASSIGN_OR_RETURN(const Expected want, evaluator.Evaluate(result, rank, indices));
      for (const int64_t index : indices) {
        StoreElement(type.dtype, bytes.data(), rank * static_cast<int64_t>(indices.size()) + index,
                     want.value[index]);
        if (want.error[index] != 0) smaller.floats.insert(result);
      }
    }
    smaller.steps[0].want[result] = std::move(bytes);
  }
  return smaller;
}

/// What fails of a part of the program; "": nothing.
std::string FailureOf(const RecordedProgram& made, const Graph& part, uint64_t seed) {
  constexpr size_t kSchedules = 4;
  Tally unused;
  std::string failures;
  for (int step = 0; step < static_cast<int>(made.steps.size()) && failures.empty(); ++step) {
    const absl::StatusOr<RecordedProgram> smaller = PartOf(made, part, step);
    if (smaller.ok()) failures = Failures({*smaller}, kSchedules, seed, unused);
  }
  return failures;
}

/// The program with no other results than `name`.
Graph WithResult(const Graph& program, const std::string& name) {
  Graph with{program.name};
  std::vector<NodeId> renamed(program.size(), -1);
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program.nodes[id];
    const auto* output = As<Output>(program, id);
    const bool is_update = As<Update>(program, id) != nullptr;
    if (output != nullptr && output->name != name) continue;
    if (is_update && As<State>(program, node.inputs[0])->name != name) {
      renamed[id] = renamed[node.inputs[1]];
      continue;
    }
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) inputs.push_back(renamed[input]);
    renamed[id] = with.Add(node.op, std::move(inputs));
  }
  return Canonicalize(with).graph;
}

/// The smallest that was found of what fails of a program, and how; "" where nothing does.
std::string Shrunk(const RecordedProgram& made, uint64_t seed) {
  const auto failure_of = [&](const Graph& part) { return FailureOf(made, part, seed); };
  const auto fails = [&](const Graph& part) { return !failure_of(part).empty(); };
  const std::string failure = failure_of(made.program);
  if (failure.empty()) return "";
  Graph smaller = made.program;
  if (const std::vector<std::string> quoted = absl::StrSplit(failure, '"'); quoted.size() > 1) {
    const Graph alone = WithResult(made.program, quoted[1]);
    if (fails(alone)) smaller = alone;
  }
  smaller = Shrink(smaller, kShrinkTries, fails);
  return absl::StrCat(Print(smaller), failure_of(smaller));
}

TEST(IntegerKernels, AgreeWithNumPy) {
  const uint64_t seed = FreshSeed();
  std::cout << "COCONET_SEED=" << seed << std::endl;
  const int programs = absl::GetFlag(FLAGS_programs) > 0 ? absl::GetFlag(FLAGS_programs)
                       : TheMachine().simulated          ? 6
                                                         : 24;
  Tally tally;
  for (int first = 0; first < programs; first += kTogether) {
    const absl::StatusOr<std::vector<RecordedProgram>> made =
        MakeIntegerPrograms(seed, first, std::min(kTogether, programs - first), Elements());
    ASSERT_TRUE(made.ok()) << made.status() << "\nCOCONET_SEED=" << seed;
    const std::string failures = Failures(*made, /*schedules=*/1, seed, tally);
    if (failures.empty()) continue;
    ADD_FAILURE() << failures << "\nCOCONET_SEED=" << seed << " --programs=" << programs;
    for (const RecordedProgram& program : *made) {
      const std::string shrunk = Shrunk(program, seed);
      if (!shrunk.empty()) FAIL() << "shrunk:\n" << shrunk;
    }
    FAIL();
  }
  EXPECT_GT(tally.variants, AtMostDrawn(programs - 1));
  std::cout << tally.variants << " programs, " << tally.elements << " elements\n";
}

}  // namespace
}  // namespace coconet
