#include "tests/oracles/recorded_programs.h"

#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/reference/rounding.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

/// Reads what tests/recorded/recording.py writes.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  absl::StatusOr<std::vector<RecordedProgram>> Read() {
    std::vector<RecordedProgram> all;
    while (at_ < bytes_.size()) {
      ASSIGN_OR_RETURN(RecordedProgram made, ReadProgram());
      all.push_back(std::move(made));
    }
    return all;
  }

 private:
  std::vector<std::string> Line() {
    const size_t end = bytes_.find('\n', at_);
    const absl::string_view line = absl::string_view(bytes_).substr(at_, end - at_);
    at_ = end == std::string::npos ? bytes_.size() : end + 1;
    return absl::StrSplit(line, ' ');
  }
  std::string Content(const std::string& size) {
    size_t bytes = 0;
    CC_CHECK(absl::SimpleAtoi(size, &bytes) && at_ + bytes <= bytes_.size());
    at_ += bytes;
    return bytes_.substr(at_ - bytes, bytes);
  }

  absl::StatusOr<RecordedProgram> ReadProgram() {
    const std::vector<std::string> head = Line();
    int steps = 0;
    RecordedProgram made;
    if (head.size() != 5 || head[0] != "program" || !absl::SimpleAtoi(head[1], &made.number) ||
        !absl::SimpleAtoi(head[2], &made.ranks) || !absl::SimpleAtoi(head[3], &steps))
      return absl::InvalidArgumentError("want a program's head");
    made.steps.resize(steps);
    made.text = Content(head[4]);
    absl::StatusOr<Graph> program = Parse(made.text);
    if (!program.ok())
      return absl::InvalidArgumentError(absl::StrCat(program.status().message(), "\n", made.text));
    made.program = *std::move(program);
    ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(made.program));
    for (NodeId id = 0; id < made.program.size(); ++id) {
      if (const std::string* name = DeclaredName(made.program.nodes[id].op); name != nullptr)
        made.types.emplace(*name, types[id]);
    }
    for (;;) {
      const std::vector<std::string> line = Line();
      if (line[0] == "end") return made;
      if (line[0] == "floats") {
        made.floats.insert(line.begin() + 1, line.end());
        continue;
      }
      int step = 0;
      CC_CHECK(line.size() == 4 && absl::SimpleAtoi(line[1], &step));
      RecordedProgram::Step& of = made.steps.at(step);
      (line[0] == "given" ? of.given : of.want).emplace(line[2], Content(line[3]));
    }
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

absl::Status CheckResult(const RecordedProgram& made, int step, const std::string& result, int rank,
                         Evaluator& evaluator, RecordedTally& tally) {
  std::vector<int64_t> indices(NumElements(made.types.at(result).shape));
  std::iota(indices.begin(), indices.end(), 0);
  ASSIGN_OR_RETURN(const Expected have, evaluator.Evaluate(result, rank, indices));
  const bool follows_from_floats = made.floats.count(result) > 0;
  for (const int64_t index : indices) {
    const Number want = made.Wanted(result, step, rank, index);
    const double error = have.error[index];
    ++tally.elements;
    tally.undetermined += follows_from_floats && std::isinf(error);
    const bool is_right = RecordedProgram::IsSame(want, have.value[index]) && error == 0;
    const bool is_near =
        follows_from_floats && (std::isinf(error) || Distance(want, have.value[index]) <= error);
    if (is_right || is_near) continue;
    return absl::InternalError(absl::StrCat(
        "step ", step, ", \"", result, "\"[", index, "] of ", Text(made.types.at(result)),
        " on rank ", rank, " of ", made.ranks, ": want ", NumberText(want), " of NumPy, have ",
        NumberText(have.value[index]), " +- ", error));
  }
  ++tally.results;
  return absl::OkStatus();
}

/// Compares a rank's part of all results of a step.
absl::Status CheckStep(const RecordedProgram& made, const std::vector<Placed>& results, int step,
                       int rank, const std::string& read, Tally& tally) {
  ASSIGN_OR_RETURN(const Interpreter interpreter, Interpreter::Create(made.program, made.ranks));
  Evaluator evaluator(interpreter, [&](const std::string& name, int of, int64_t index) {
    return made.Given(name, step, of, index);
  });
  const char* at = read.data();
  for (const Placed& result : results) {
    const DType dtype = result.placement.type().dtype;
    absl::Status status;
    int64_t place = 0;
    result.placement.ForEach([&](int64_t, int64_t index) {
      const Number have = LoadElement(dtype, at, place++);
      if (status.ok()) status = CheckElement(made, evaluator, step, result.name, rank, index, have);
    });
    RETURN_IF_ERROR(status);
    tally.elements += place;
    at += place * static_cast<int64_t>(SizeOf(dtype));
  }
  return absl::OkStatus();
}

/// What a script writes, which Debian's own Python runs.
absl::StatusOr<std::vector<RecordedProgram>> MadeBy(absl::string_view script, uint64_t seed,
                                                    const std::vector<std::string>& more) {
  constexpr double kLimit = 600;  // seconds
  std::vector<std::string> argv = {
      "/usr/bin/python3",           "-E", "-s", "-B", absl::StrCat("tests/recorded/", script),
      absl::StrCat("--seed=", seed)};
  argv.insert(argv.end(), more.begin(), more.end());
  Command python(std::move(argv), {{"OPENBLAS_NUM_THREADS", "1"}});
  const Ended ended = python.Wait(kLimit);
  if (ended.code != 0)
    return absl::InternalError(absl::StrCat(script, ": ", ended.code, "\n", ended.err));
  return Reader(ended.out).Read();
}

}  // namespace

Number RecordedProgram::ElementOf(const std::string& bytes, const std::string& name, int rank,
                                  int64_t index) const {
  const TensorType& type = types.at(name);
  const bool is_local = type.layout.kind == Layout::Kind::kLocal;
  return LoadElement(type.dtype, bytes.data(),
                     (is_local ? rank : 0) * NumElements(type.shape) + index);
}

Number RecordedProgram::Given(const std::string& name, int step, int rank, int64_t index) const {
  const auto it = steps[step].given.find(name);
  return it == steps[step].given.end() ? Wanted(name, step - 1, rank, index)
                                       : ElementOf(it->second, name, rank, index);
}

Number RecordedProgram::Wanted(const std::string& result, int step, int rank, int64_t index) const {
  return ElementOf(steps[step].want.at(result), result, rank, index);
}

bool RecordedProgram::IsSame(const Number& want, const Number& have) {
  return want == have || (want.is_nan() && have.is_nan());
}

absl::StatusOr<std::vector<RecordedProgram>> MakeIntegerPrograms(uint64_t seed, int first,
                                                                 int count, int elements,
                                                                 bool every_value) {
  std::vector<std::string> more = {absl::StrCat("--first=", first), absl::StrCat("--count=", count),
                                   absl::StrCat("--elements=", elements)};
  if (every_value) more.push_back("--every_value");
  return MadeBy("integers.py", seed, more);
}

absl::StatusOr<std::vector<RecordedProgram>> MakeChoices(uint64_t seed, int extent) {
  return MadeBy("choices.py", seed, {absl::StrCat("--extent=", extent)});
}

RecordedTally& RecordedTally::operator+=(const RecordedTally& other) {
  programs += other.programs;
  results += other.results;
  elements += other.elements;
  undetermined += other.undetermined;
  return *this;
}

absl::Status CheckInterpreter(const RecordedProgram& made, RecordedTally& tally) {
  ++tally.programs;
  ASSIGN_OR_RETURN(const Interpreter interpreter, Interpreter::Create(made.program, made.ranks));
  for (int step = 0; step < static_cast<int>(made.steps.size()); ++step) {
    Evaluator evaluator(interpreter, [&](const std::string& name, int rank, int64_t index) {
      return made.Given(name, step, rank, index);
    });
    for (const std::string& result : interpreter.results()) {
      const bool is_local = made.types.at(result).layout.kind == Layout::Kind::kLocal;
      for (int rank = 0; rank < (is_local ? made.ranks : 1); ++rank)
        RETURN_IF_ERROR(CheckResult(made, step, result, rank, evaluator, tally));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElement(const RecordedProgram& made, Evaluator& evaluator, int step,
                          const std::string& result, int rank, int64_t index, const Number& have) {
  const Number want = made.Wanted(result, step, rank, index);
  if (RecordedProgram::IsSame(want, have)) return absl::OkStatus();
  if (made.floats.count(result) > 0) {
    ASSIGN_OR_RETURN(const Expected near, evaluator.Evaluate(result, rank, {index}));
    if (Distance(near.value[0], have) <= near.error[0]) return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("step ", step, ", \"", result, "\"[", index, "] of ",
                                          Text(made.types.at(result)), " on rank ", rank, " of ",
                                          made.ranks, ": want ", NumberText(want),
                                          " of NumPy, have ", NumberText(have)));
}

RunsVariant AgainstNumPy(const std::map<std::string, const RecordedProgram*>& programs) {
  return [&programs](Rank& rank, const Module& kernels, const LoweredVariant& variant,
                     uint64_t seed, int, Tally& tally) -> absl::Status {
    const RecordedProgram& made = *programs.at(variant.program.name);
    const int steps = static_cast<int>(made.steps.size());
    // Plans whose steps outlast their runs make more steps, which are compared with each other.
    const StepData data = [&](const std::string& name, DType, int step, int of, int64_t index) {
      return made.Given(name, step % steps, of, index);
    };
    ASSIGN_OR_RETURN(const StepResults mine,
                     RunSteps(rank, kernels, variant, data, steps, {.shared = seed % 2 == 1}));
    absl::Status verdict = mine.memory;
    for (int step = 0; step < steps && verdict.ok(); ++step)
      verdict = CheckStep(made, mine.results, step, rank.rank(), mine.read[step], tally);
    if (rank.rank() == 0) ++tally.variants;
    return rank.exchange().Agree(verdict);
  };
}

}  // namespace coconet
