#include "tests/integer_programs.h"

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
#include "tests/command.h"

namespace coconet {
namespace {

/// Reads what tests/integers/programs.py writes.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  absl::StatusOr<std::vector<IntegerProgram>> Read() {
    std::vector<IntegerProgram> all;
    while (at_ < bytes_.size()) {
      ASSIGN_OR_RETURN(IntegerProgram made, ReadProgram());
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

  absl::StatusOr<IntegerProgram> ReadProgram() {
    const std::vector<std::string> head = Line();
    int steps = 0;
    IntegerProgram made;
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
      IntegerProgram::Step& of = made.steps.at(step);
      (line[0] == "given" ? of.given : of.want).emplace(line[2], Content(line[3]));
    }
  }

  const std::string& bytes_;
  size_t at_ = 0;
};

absl::Status CheckResult(const IntegerProgram& made, int step, const std::string& result, int rank,
                         Evaluator& evaluator, IntegerTally& tally) {
  std::vector<int64_t> indices(NumElements(made.types.at(result).shape));
  std::iota(indices.begin(), indices.end(), 0);
  ASSIGN_OR_RETURN(const Expected have, evaluator.Evaluate(result, rank, indices));
  const bool follows_from_floats = made.floats.count(result) > 0;
  for (const int64_t index : indices) {
    const Number want = made.Wanted(result, step, rank, index);
    const double error = have.error[index];
    ++tally.elements;
    tally.undetermined += follows_from_floats && std::isinf(error);
    const bool is_right = IntegerProgram::IsSame(want, have.value[index]) && error == 0;
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

}  // namespace

Number IntegerProgram::ElementOf(const std::string& bytes, const std::string& name, int rank,
                                 int64_t index) const {
  const TensorType& type = types.at(name);
  const bool is_local = type.layout.kind == Layout::Kind::kLocal;
  return LoadElement(type.dtype, bytes.data(),
                     (is_local ? rank : 0) * NumElements(type.shape) + index);
}

Number IntegerProgram::Given(const std::string& name, int step, int rank, int64_t index) const {
  const auto it = steps[step].given.find(name);
  return it == steps[step].given.end() ? Wanted(name, step - 1, rank, index)
                                       : ElementOf(it->second, name, rank, index);
}

Number IntegerProgram::Wanted(const std::string& result, int step, int rank, int64_t index) const {
  return ElementOf(steps[step].want.at(result), result, rank, index);
}

bool IntegerProgram::IsSame(const Number& want, const Number& have) {
  return want == have || (want.is_nan() && have.is_nan());
}

absl::StatusOr<std::vector<IntegerProgram>> MakeIntegerPrograms(uint64_t seed, int first, int count,
                                                                int elements, bool every_value) {
  constexpr double kLimit = 600;  // seconds
  std::vector<std::string> argv = {"/usr/bin/python3",
                                   "-E",
                                   "-s",
                                   "-B",
                                   "tests/integers/programs.py",
                                   absl::StrCat("--seed=", seed),
                                   absl::StrCat("--first=", first),
                                   absl::StrCat("--count=", count),
                                   absl::StrCat("--elements=", elements)};
  if (every_value) argv.push_back("--every_value");
  Command python(std::move(argv), {{"OPENBLAS_NUM_THREADS", "1"}});
  const Ended ended = python.Wait(kLimit);
  if (ended.code != 0)
    return absl::InternalError(absl::StrCat("programs.py: ", ended.code, "\n", ended.err));
  return Reader(ended.out).Read();
}

IntegerTally& IntegerTally::operator+=(const IntegerTally& other) {
  programs += other.programs;
  results += other.results;
  elements += other.elements;
  undetermined += other.undetermined;
  return *this;
}

absl::Status CheckInterpreter(const IntegerProgram& made, IntegerTally& tally) {
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

}  // namespace coconet
