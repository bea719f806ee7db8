// Random programs of integers of all widths, extreme literals among them, as the interpreter
// evaluates them, against NumPy (tests/recorded). Without floats every element is determined. More
// of them: --test_arg=--programs=10000.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "tests/harness/test_data.h"
#include "tests/oracles/recorded_programs.h"

ABSL_FLAG(int, programs, 1000, "how many programs");

namespace coconet {
namespace {

constexpr int kElements = 48;  // of a tensor, at most
constexpr int kParts = 4;      // the programs are shared by as many cases

/// The first value of the program that is wrong, and the statement that computes it.
std::string Blamed(uint64_t seed, int number) {
  const absl::StatusOr<std::vector<RecordedProgram>> made =
      MakeIntegerPrograms(seed, number, 1, kElements, /*every_value=*/true);
  if (!made.ok()) return made.status().ToString();
  RecordedTally unused;
  const std::string found(CheckInterpreter(made->front(), unused).message());
  const std::vector<std::string> quoted = absl::StrSplit(found, '"');
  if (quoted.size() < 2) return "no value is wrong where all are results";
  std::string blamed = absl::StrCat("first of all values: ", found);
  for (absl::string_view line : absl::StrSplit(made->front().text, '\n')) {
    if (absl::StartsWith(line, absl::StrCat("v", quoted[1].substr(1), " = ")))
      absl::StrAppend(&blamed, "\n", line);
  }
  return blamed;
}

class IntegersTest : public testing::TestWithParam<int> {};

TEST_P(IntegersTest, InterpreterAgreesWithNumPy) {
  constexpr int kTogether = 100;
  const uint64_t seed = FreshSeed();
  std::cout << "COCONET_SEED=" << seed << std::endl;
  const int programs = absl::GetFlag(FLAGS_programs);
  const int begin = programs * GetParam() / kParts, end = programs * (GetParam() + 1) / kParts;
  RecordedTally tally;
  for (int first = begin; first < end; first += kTogether) {
    const auto made = MakeIntegerPrograms(seed, first, std::min(kTogether, end - first), kElements);
    ASSERT_TRUE(made.ok()) << made.status() << "\nCOCONET_SEED=" << seed;
    for (const RecordedProgram& program : *made) {
      const absl::Status status = CheckInterpreter(program, tally);
      ASSERT_TRUE(status.ok()) << status << "\n"
                               << Blamed(seed, program.number) << "\nCOCONET_SEED=" << seed
                               << " --programs=" << programs << "\n"
                               << program.text;
    }
  }
  std::cout << tally.programs << " programs, " << tally.results << " results, " << tally.elements
            << " elements, " << tally.undetermined << " of them undetermined, all of floats\n";
}

INSTANTIATE_TEST_SUITE_P(, IntegersTest, testing::Range(0, kParts));

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
