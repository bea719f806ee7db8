#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"

namespace coconet {

/// A random program of integers, the data of its steps, and what NumPy makes of them: what
/// tests/integers/programs.py writes.
struct IntegerProgram {
  /// Elements by name: all of a tensor, of a local one of all ranks, one after the other.
  struct Step {
    std::map<std::string, std::string> given, want;
  };

  int number = 0;
  int ranks = 1;
  std::string text;
  Graph program;
  std::map<std::string, TensorType> types = {};  // of inputs, states and outputs
  std::set<std::string> floats = {};             // results that follow from floats
  std::vector<Step> steps = {};

  Number Given(const std::string& name, int step, int rank, int64_t index) const;
  Number Wanted(const std::string& result, int step, int rank, int64_t index) const;
  /// Whether it is what NumPy found: the same number, or NaN as well.
  static bool IsSame(const Number& want, const Number& have);

 private:
  Number ElementOf(const std::string& bytes, const std::string& name, int rank,
                   int64_t index) const;
};

/// `count` programs from number `first` on, made by Debian's own Python. Of `elements` elements a
/// tensor at most. `every_value`: each value is a result.
absl::StatusOr<std::vector<IntegerProgram>> MakeIntegerPrograms(uint64_t seed, int first, int count,
                                                                int elements,
                                                                bool every_value = false);

/// What the interpreter was asked.
struct IntegerTally {
  int64_t programs = 0, results = 0, elements = 0;
  int64_t undetermined = 0;  // of results that follow from floats
  IntegerTally& operator+=(const IntegerTally& other);
};

/// Compares the interpreter with NumPy, element by element. Internal with the first difference, in
/// the order of results: another number, or one of a result without floats that is not wholly
/// determined.
absl::Status CheckInterpreter(const IntegerProgram& made, IntegerTally& tally);

}  // namespace coconet
