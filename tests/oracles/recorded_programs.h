#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"
#include "tests/harness/variant_batch.h"

namespace coconet {

/// A program, the data of its steps, and what NumPy makes of them: what tests/recorded/recording.py
/// writes.
struct RecordedProgram {
  /// Elements by name: all of a tensor, of a local one of all ranks, one after the other.
  struct Step {
    std::map<std::string, std::string> given, want;
  };

  int number = 0;
  int ranks = 1;
  std::string text;
  Graph program;
  std::map<std::string, TensorType> types = {};  // of inputs, states and outputs
  std::set<std::string> floats = {};             // results that follow from floats that round
  std::vector<Step> steps = {};

  Number Given(const std::string& name, int step, int rank, int64_t index) const;
  Number Wanted(const std::string& result, int step, int rank, int64_t index) const;
  /// Whether it is what NumPy found: the same number, or NaN as well.
  static bool IsSame(const Number& want, const Number& have);

 private:
  Number ElementOf(const std::string& bytes, const std::string& name, int rank,
                   int64_t index) const;
};

/// `count` random programs of integers from number `first` on, made by Debian's own Python
/// (tests/recorded/integers.py). A tensor has at most `elements` elements. `every_value`: each
/// value is a result.
absl::StatusOr<std::vector<RecordedProgram>> MakeIntegerPrograms(uint64_t seed, int first,
                                                                 int count, int elements,
                                                                 bool every_value = false);

/// All programs of tests/recorded/choices.py, each with numbers on which arithmetic is exact, and
/// with others. A dimension has at most `extent` elements.
absl::StatusOr<std::vector<RecordedProgram>> MakeChoices(uint64_t seed, int extent);

/// What the interpreter was asked.
struct RecordedTally {
  int64_t programs = 0, results = 0, elements = 0;
  int64_t undetermined = 0;  // of results that follow from floats
  RecordedTally& operator+=(const RecordedTally& other);
};

/// Compares the interpreter with NumPy, element by element. Internal with the first difference, in
/// the order of results: another number, or one of a result without floats that is not wholly
/// determined.
absl::Status CheckInterpreter(const RecordedProgram& made, RecordedTally& tally);

/// Internal where an element of a result is neither what NumPy found nor, where floats round on the
/// way to it, what the interpreter takes for near it.
absl::Status CheckElement(const RecordedProgram& made, Evaluator& evaluator, int step,
                          const std::string& result, int rank, int64_t index, const Number& have);

/// Runs variants of the programs, by name, and calls CheckElement for all results of all steps.
/// `programs` outlives it.
RunsVariant AgainstNumPy(const std::map<std::string, const RecordedProgram*>& programs);

}  // namespace coconet
