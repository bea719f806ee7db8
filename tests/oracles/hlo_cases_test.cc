// HLO modules with what XLA makes of them on the CPU, by the interpreter and compiled, on as many
// ranks: random modules of integers and collectives, and JAX's steps that carry random keys.
// tests/hlo/cases.py says what a case is; tests/hlo/*.cases are some. Where COCONET_PYTHON names
// an interpreter that has JAX, others are made: as many, and from the seed, as the flags say.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "autotune/session/session.h"
#include "coconet/base/dtype.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/reference/interpreter.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

ABSL_FLAG(int, modules, 40, "how many random modules are made where JAX is");
ABSL_FLAG(int, compiled, 4, "of how many of those programs are compiled and run, too");
ABSL_FLAG(uint64_t, seed, 0, "of the first of them; 0: one that differs from run to run");

namespace coconet {
namespace {

namespace fs = std::filesystem;

using Numbers = std::vector<Number>;

// ---- Cases

struct Case {
  std::string name, text;
  int ranks = 1;
  std::vector<std::vector<Numbers>> given, found;  // by parameter, by result; then by rank
  std::string refused;                             // what the import's message has; "": none
};

Number NumberOf(absl::string_view text) {
  int64_t integer = 0;
  uint64_t natural = 0;
  double real = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  if (absl::SimpleAtoi(text, &natural)) return natural;
  EXPECT_TRUE(absl::SimpleAtod(text, &real)) << text;
  return real;
}

Numbers NumbersOf(absl::string_view text) {
  Numbers numbers;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty()))
    numbers.push_back(NumberOf(word));
  return numbers;
}

void AppendOfRank(const Case& test_case, absl::string_view text,
                  std::vector<std::vector<Numbers>>& arrays) {
  const bool is_next =
      arrays.empty() || arrays.back().size() == static_cast<size_t>(test_case.ranks);
  if (is_next) arrays.emplace_back();
  arrays.back().push_back(NumbersOf(text));
}

std::vector<Case> CasesOf(const std::string& path) {
  const std::string text = ReadFile(path);
  EXPECT_NE(text, "") << path;
  std::vector<Case> cases;
  int hlo_lines = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (hlo_lines > 0) {
      absl::StrAppend(&cases.back().text, line, "\n");
      --hlo_lines;
    } else if (absl::ConsumePrefix(&line, "case ")) {
      cases.emplace_back().name = std::string(line);
    } else if (absl::ConsumePrefix(&line, "ranks ")) {
      EXPECT_TRUE(absl::SimpleAtoi(line, &cases.back().ranks));
    } else if (absl::ConsumePrefix(&line, "hlo ")) {
      EXPECT_TRUE(absl::SimpleAtoi(line, &hlo_lines));
    } else if (absl::ConsumePrefix(&line, "given")) {
      AppendOfRank(cases.back(), line, cases.back().given);
    } else if (absl::ConsumePrefix(&line, "found")) {
      AppendOfRank(cases.back(), line, cases.back().found);
    } else if (absl::ConsumePrefix(&line, "refused ")) {
      cases.back().refused = std::string(line);
    } else {
      EXPECT_TRUE(line.empty() || line == "end") << line;
    }
  }
  return cases;
}

// ---- Comparison

constexpr double kUnbounded = 2e-6;  // of the greatest element: where `errors` has no bound

/// The first element that is not as XLA has it, in words; "" where all are. Integers are equal, and
/// floats as near as `errors` and one rounding allow.
std::string Difference(DType dtype, const Numbers& ours, const Numbers& xlas,
                       absl::Span<const double> errors) {
  if (ours.size() != xlas.size()) return absl::StrCat(ours.size(), " elements, want ", xlas.size());
  double scale = 0;
  for (const Number& number : xlas) {
    if (number.is_finite()) scale = std::max(scale, std::fabs(number.real()));
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    bool is_same = ours[i] == xlas[i] || (ours[i].is_nan() && xlas[i].is_nan());
    if (!is_same && IsFloat(dtype)) {
      const double allowed = std::isfinite(errors[i])
                                 ? errors[i] + UnitRoundoff(dtype) * std::fabs(xlas[i].real())
                                 : kUnbounded * scale;
      is_same = std::fabs(ours[i].real() - xlas[i].real()) <= allowed;
    }
    if (!is_same)
      return absl::StrCat("element ", i, ": have ", NumberText(ours[i]), ", XLA has ",
                          NumberText(xlas[i]));
  }
  return "";
}

/// A case, its program, and what the interpreter says of it.
class Checked {
 public:
  explicit Checked(const Case& test_case) : case_(test_case) {}

  /// What is wrong, "" where nothing is.
  std::string Interpret() {
    absl::StatusOr<HloModule> module = ParseHlo(case_.text);
    if (!module.ok()) return std::string(module.status().message());
    absl::StatusOr<ImportedHlo> imported = ImportHlo(*module);
    if (!case_.refused.empty()) {
      const bool is_refused = absl::IsUnimplemented(imported.status()) &&
                              absl::StrContains(imported.status().message(), case_.refused);
      return is_refused ? "" : absl::StrCat("want it refused, have ", imported.status().ToString());
    }
    if (!imported.ok()) return imported.status().ToString();
    imported_ = *std::move(imported);
    if (imported_.partitions != case_.ranks || imported_.parameters.size() != case_.given.size() ||
        imported_.results.size() != case_.found.size())
      return absl::StrCat("imported for ", imported_.partitions, " ranks, with ",
                          imported_.parameters.size(), " parameters and ", imported_.results.size(),
                          " results");
    for (size_t p = 0; p < imported_.parameters.size(); ++p)
      given_[imported_.parameters[p]] = &case_.given[p];
    const absl::StatusOr<Interpreter> interpreter =
        Interpreter::Create(imported_.program, case_.ranks);
    if (!interpreter.ok()) return interpreter.status().ToString();
    return Evaluate(*interpreter);
  }

  /// Runs the imported program, after Interpret.
  std::string Run() {
    if (!case_.refused.empty()) return "";
    SessionOptions options;
    options.cache_file = ":none:";
    options.budget_s = 1;
    options.optimize = Optimize::kFast;
    std::vector<std::string> differences(static_cast<size_t>(case_.ranks));
    const absl::Status status = RunRanks(
        case_.ranks,
        [&](Session& session) -> absl::Status {
          std::string& mine = differences[static_cast<size_t>(session.rank())];
          ASSIGN_OR_RETURN(mine, RunOn(session));
          return absl::OkStatus();
        },
        options);
    if (!status.ok()) return status.ToString();
    for (const std::string& difference : differences) {
      if (!difference.empty()) return difference;
    }
    return "";
  }

 private:
  std::string Evaluate(const Interpreter& interpreter) {
    const bool has_floats = absl::StrContains(case_.text, "f32[");
    Evaluator evaluator(
        interpreter, ElementSource([&](const std::string& name, int rank, int64_t index) {
          return (*given_.at(name))[static_cast<size_t>(rank)][static_cast<size_t>(index)];
        }));
    for (size_t r = 0; r < imported_.results.size(); ++r) {
      const std::string& name = imported_.results[r];
      const TensorType& type = interpreter.type(name);
      std::vector<int64_t> indices(static_cast<size_t>(NumElements(type.shape)));
      std::iota(indices.begin(), indices.end(), 0);
      for (int rank = 0; rank < case_.ranks; ++rank) {
        const absl::StatusOr<Expected> expected = evaluator.Evaluate(name, rank, indices);
        if (!expected.ok()) return expected.status().ToString();
        std::string difference =
            Difference(type.dtype, expected->value, case_.found[r][static_cast<size_t>(rank)],
                       expected->error);
        if (difference.empty() && !has_floats &&
            absl::c_any_of(expected->error, [](double e) { return e != 0; }))
          difference = "integers that are not determined";
        if (!difference.empty())
          return absl::StrCat("interpreted, ", name, " on rank ", rank, ": ", difference);
        errors_[{r, rank}] = expected->error;
      }
    }
    return "";
  }

  absl::StatusOr<std::string> RunOn(Session& session) const {
    const auto rank = static_cast<size_t>(session.rank());
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(imported_.program));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    std::map<std::string, TensorType> types;
    for (const TensorInfo& tensor : tuned.tensors()) {
      types[tensor.name] = tensor.type;
      const auto given = given_.find(tensor.name);
      if (given == given_.end()) continue;
      const Numbers& numbers = (*given->second)[rank];
      if (tensor.role == BufferRole::kInput && tensor.type.shape.empty()) {
        ASSIGN_OR_RETURN(const ScalarRef scalar, bound.Scalar(tensor.name));
        RETURN_IF_ERROR(bound.Set(scalar, numbers[0]));
        continue;
      }
      std::vector<char> bytes(numbers.size() * SizeOf(tensor.type.dtype));
      for (size_t i = 0; i < numbers.size(); ++i)
        StoreElement(tensor.type.dtype, bytes.data(), static_cast<int64_t>(i), numbers[i]);
      RETURN_IF_ERROR(bound.Write(tensor.name, tensor.type.dtype, bytes.data(),
                                  static_cast<int64_t>(numbers.size())));
    }
    RETURN_IF_ERROR(bound.Run());
    std::string all;
    for (size_t r = 0; r < imported_.results.size(); ++r) {
      const std::string& name = imported_.results[r];
      const TensorType& type = types.at(name);
      Numbers numbers(case_.found[r][rank].size());
      std::vector<char> bytes(numbers.size() * SizeOf(type.dtype));
      RETURN_IF_ERROR(
          bound.Read(name, type.dtype, bytes.data(), static_cast<int64_t>(numbers.size())));
      for (size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = LoadElement(type.dtype, bytes.data(), static_cast<int64_t>(i));
      const std::string difference =
          Difference(type.dtype, numbers, case_.found[r][rank], errors_.at({r, session.rank()}));
      if (!difference.empty() && all.empty())
        all = absl::StrCat("compiled, ", name, " on rank ", rank, ": ", difference);
    }
    return all;
  }

  const Case& case_;
  ImportedHlo imported_;
  std::map<std::string, const std::vector<Numbers>*> given_;      // by parameter
  std::map<std::pair<size_t, int>, std::vector<double>> errors_;  // by result and rank
};

/// Runs the programs of `compiled` of them, evenly chosen, too.
void Check(const std::vector<Case>& cases, int compiled) {
  const auto count = static_cast<int64_t>(cases.size());
  int64_t ran = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Case& test_case = cases[static_cast<size_t>(i)];
    Checked checked(test_case);
    std::string wrong = checked.Interpret();
    if (wrong.empty() && (i + 1) * compiled / count > i * compiled / count) {
      wrong = checked.Run();
      ++ran;
    }
    EXPECT_EQ(wrong, "") << "case " << test_case.name << ", " << test_case.ranks << " ranks\n"
                         << test_case.text;
  }
  std::cout << count << " modules interpreted, " << ran << " compiled\n";
}

// ---- Tests

class HloCasesTest : public testing::TestWithParam<const char*> {};

TEST_P(HloCasesTest, AreAsXlaHasThem) {
  const std::vector<Case> cases = CasesOf(absl::StrCat("tests/hlo/", GetParam(), ".cases"));
  Check(cases, static_cast<int>(cases.size() + 3) / 4);
}

INSTANTIATE_TEST_SUITE_P(, HloCasesTest, testing::Values("integers", "keys"),
                         [](const auto& info) { return std::string(info.param); });

class MadeHloCasesTest : public testing::Test {
 protected:
  /// What a script of tests/hlo writes into a file; none where no JAX is.
  static std::optional<std::vector<Case>> Made(const std::string& script,
                                               std::vector<std::string> arguments) {
    const char* const named = std::getenv("COCONET_PYTHON");
    const fs::path path =
        fs::path(testing::TempDir()) / absl::StrCat(script, ".", getpid(), ".cases");
    arguments.insert(arguments.begin(), {named == nullptr ? "/usr/bin/python3" : named,
                                         absl::StrCat("tests/hlo/", script), path.string()});
    constexpr int kNoJax = 3;
    constexpr double kMostSeconds = 3600;
    const Ended ended = Command(arguments, {{"PYTHONDONTWRITEBYTECODE", "1"}}).Wait(kMostSeconds);
    if (ended.code == kNoJax) return std::nullopt;
    EXPECT_EQ(ended.code, 0) << absl::StrJoin(arguments, " ") << "\n" << ended.out << ended.err;
    std::vector<Case> cases = CasesOf(path.string());
    fs::remove(path);
    return cases;
  }
};

TEST_F(MadeHloCasesTest, RandomModulesAreAsXlaHasThem) {
  uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (seed == 0) seed = std::random_device()() % 1'000'000'000 + 1;
  std::cout << "--seed=" << seed << "\n";
  const int modules = absl::GetFlag(FLAGS_modules);
  const auto cases = Made("random_modules.py",
                          {absl::StrCat("--modules=", modules), absl::StrCat("--seed=", seed)});
  if (!cases.has_value()) GTEST_SKIP() << "no JAX; COCONET_PYTHON may name another interpreter";
  EXPECT_EQ(cases->size(), static_cast<size_t>(modules));
  Check(*cases, absl::GetFlag(FLAGS_compiled));
}

TEST_F(MadeHloCasesTest, StepsWithRandomKeysAreAsJaxHasThem) {
  const auto cases = Made("random_keys.py", {});
  if (!cases.has_value()) GTEST_SKIP() << "no JAX; COCONET_PYTHON may name another interpreter";
  Check(*cases, static_cast<int>(cases->size()));
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
