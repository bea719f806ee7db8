#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "coconet/base/json.h"
#include "tests/harness/differential_body.h"
#include "tests/oracles/numpy_data.h"

namespace coconet {

/// What variants were given and what they left behind, written for a program that is not ours:
/// PATH.bin has elements as they lie in memory (little-endian), PATH.json says where which are. It
/// is a list with one object per step of a variant, in order:
///
///   case, program (its text), schedule, trace, config, ranks, data (its kind), step, seed
///   given  inputs, and in a variant's first step states: name, dtype, shape, layout, at (the
///   offset
///          in bytes of all elements of the tensor; of a local one, of all ranks one after the
///          other)
///   found  states and outputs after the step: name, dtype, shape, layout
///   read   per rank the offset in bytes of its elements of all that is found, one after the other
class Recording {
 public:
  /// One rank's part of one result.
  struct Part {
    std::string test_case, schedule, name;
    NumpyDataKind kind;
    int ranks, step, rank;
    TensorType type;
    int64_t at, elements;  // offset in bytes; of this rank
  };

  Recording(std::string path, std::string test_case, uint64_t seed);

  /// Collective: runs a variant on every kind of data, and records it. Internal where it wrote what
  /// it must not write.
  absl::Status Run(Rank& rank, const Module& kernels, const LoweredVariant& variant, int steps);
  /// Writes the list; nothing can be recorded after that.
  void Finish();

  std::string data_path() const { return path_ + ".bin"; }
  std::string list_path() const { return path_ + ".json"; }
  const std::vector<Part>& parts() const { return parts_; }

 private:
  /// What is recorded of a step.
  struct Step {
    NumpyDataKind kind;
    int ranks, step;
    const LoweredVariant& variant;
    const StepData& data;
  };
  void Record(const Step& step, const std::vector<Placed>& results,
              const std::vector<std::string>& read);
  JsonText Given(const Step& step);
  JsonText Found(const Step& step, const std::vector<Placed>& results,
                 const std::vector<int64_t>& at);
  int64_t WriteTensor(const Step& step, const std::string& name, const TensorType& type);
  int64_t Write(const std::string& bytes);

  const std::string path_, case_;
  const uint64_t seed_;
  std::ofstream data_;  // written by rank 0, as all that follows
  int64_t written_ = 0;
  std::map<std::tuple<NumpyDataKind, int, int, std::string>, int64_t> given_;
  std::vector<JsonText> rows_;
  std::vector<Part> parts_;
};

}  // namespace coconet
