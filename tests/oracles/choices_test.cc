// Programs with choices that follow from floats (routers, k-means, samplers, ...) against NumPy
// (tests/recorded/choices.py): the interpreter determines them, all schedules of each compute them,
// and a Session tunes and runs them.

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "tests/harness/sample.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/test_data.h"
#include "tests/oracles/recorded_programs.h"

ABSL_FLAG(bool, all, false,
          "compile all programs, not only those with exact numbers or the others");

namespace coconet {
namespace {

constexpr int kExtent = 60;

class ChoicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::cout << "COCONET_SEED=" << seed_ << std::endl;
    absl::StatusOr<std::vector<RecordedProgram>> made = MakeChoices(seed_, kExtent);
    ASSERT_TRUE(made.ok()) << made.status();
    programs_ = *std::move(made);
  }

  /// The programs that are compiled.
  std::vector<const RecordedProgram*> Compiled() const {
    std::vector<const RecordedProgram*> compiled;
    for (size_t i = 0; i < programs_.size(); ++i) {
      if (absl::GetFlag(FLAGS_all) || i % 2 == seed_ % 2) compiled.push_back(&programs_[i]);
    }
    return compiled;
  }

  const uint64_t seed_ = FreshSeed();
  std::vector<RecordedProgram> programs_;
};

TEST_F(ChoicesTest, InterpreterDeterminesThem) {
  RecordedTally tally;
  for (const RecordedProgram& made : programs_) {
    const absl::Status status = CheckInterpreter(made, tally);
    EXPECT_TRUE(status.ok()) << status << "\n" << made.text;
  }
  std::cout << tally.programs << " programs, " << tally.results << " results, " << tally.elements
            << " elements, " << tally.undetermined << " of them undetermined\n";
}

TEST_F(ChoicesTest, SchedulesAgreeWithNumPy) {
  constexpr size_t kTogether = 8;  // programs that are compiled in one call
  std::mt19937_64 random(seed_);
  Tally tally;
  const std::vector<const RecordedProgram*> compiled = Compiled();
  for (size_t first = 0; first < compiled.size(); first += kTogether) {
    std::map<std::string, const RecordedProgram*> by_name;
    VariantBatch batch(TheMachine(), AgainstNumPy(by_name));
    for (size_t i = first; i < std::min(first + kTogether, compiled.size()); ++i) {
      const RecordedProgram& made = *compiled[i];
      by_name[made.program.name] = &made;
      const absl::Status added = ScheduleSampler({made.ranks}, random, batch).AddSome(made.program);
      ASSERT_TRUE(added.ok()) << added << "\n" << made.text;
    }
    EXPECT_EQ(batch.Run(seed_, /*steps=*/0), "") << "COCONET_SEED=" << seed_;
    tally += batch.tally();
  }
  std::cout << tally.variants << " schedules, " << tally.elements << " elements\n";
}

/// Runs the program as a session tunes it, on the data of its first step, and compares one rank's
/// part of all results with NumPy.
absl::Status RunTuned(Session& session, const RecordedProgram& made) {
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(made.program));
  for (const VariantResult& variant : tuned.variants()) {
    if (variant.verdict == Verdict::kMeasured || variant.verdict == Verdict::kPruned) continue;
    if (variant.verdict == Verdict::kNotMeasured) continue;
    return absl::InternalError(absl::StrCat(variant.schedule, ": ", variant.reason));
  }
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  const int rank = session.rank();
  const auto size_of = [&](const std::string& name) {
    return NumElements(made.types.at(name).shape) * SizeOf(made.types.at(name).dtype);
  };
  const auto part_of = [&](const std::string& name, const std::string& bytes) {
    const bool is_local = made.types.at(name).layout.kind == Layout::Kind::kLocal;
    return bytes.substr(is_local ? rank * size_of(name) : 0, size_of(name));
  };
  for (const auto& [name, bytes] : made.steps[0].given) {
    const TensorType& type = made.types.at(name);
    RETURN_IF_ERROR(
        bound.Write(name, type.dtype, part_of(name, bytes).data(), NumElements(type.shape)));
  }
  RETURN_IF_ERROR(bound.Run());
  ASSIGN_OR_RETURN(const Interpreter interpreter, Interpreter::Create(made.program, made.ranks));
  Evaluator evaluator(interpreter, [&](const std::string& name, int of, int64_t index) {
    return made.Given(name, /*step=*/0, of, index);
  });
  absl::Status verdict;
  for (const auto& [name, unused] : made.steps[0].want) {
    const TensorType& type = made.types.at(name);
    std::string read(size_of(name), '\0');
    RETURN_IF_ERROR(bound.Read(name, type.dtype, read.data(), NumElements(type.shape)));
    for (int64_t i = 0; i < NumElements(type.shape) && verdict.ok(); ++i) {
      verdict = CheckElement(made, evaluator, /*step=*/0, name, rank, i,
                             LoadElement(type.dtype, read.data(), i));
    }
  }
  return verdict;
}

TEST_F(ChoicesTest, SessionsTuneThem) {
  std::mt19937_64 random(seed_);
  OneIn sample(absl::GetFlag(FLAGS_all) ? 1 : 2, random);
  for (const RecordedProgram* program : Compiled()) {
    if (!sample.Takes()) continue;
    const RecordedProgram& made = *program;
    SessionOptions options;
    options.cache_file = ":none:";
    options.optimize = Optimize::kFast;
    options.budget_s = 4;
    const absl::Status status = RunRanks(
        made.ranks, [&](Session& session) { return session.Agree(RunTuned(session, made)); },
        options);
    EXPECT_TRUE(status.ok()) << status << "\nCOCONET_SEED=" << seed_ << "\n" << made.text;
  }
}

}  // namespace
}  // namespace coconet
