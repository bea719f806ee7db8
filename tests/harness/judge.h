#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"
#include "runtime/mesh.h"
#include "tests/harness/rank_memory.h"

namespace coconet {

/// What was compared.
struct Tally {
  int64_t variants = 0;
  int64_t elements = 0;
  /// Elements of which the interpreter's bound was infinite, although no input or state has had a
  /// special value yet (TestValue).
  int64_t undetermined = 0;

  Tally& operator+=(const Tally& other);
};

/// Compares the results of all ranks with the interpreter's, step by step. Each rank compares a
/// share of the elements.
class Judge {
 public:
  /// `program` as written; `results` of the schedule that runs, in the order of RankMemory::Read.
  static absl::StatusOr<Judge> Create(const Graph& program, std::vector<Placed> results,
                                      const Mesh& mesh, int rank, uint64_t seed);

  /// `read[r]`: what RankMemory::Read returned on rank r after the step. Steps are judged in order,
  /// from 0: each begins with the states that the one before left. Internal with the first
  /// difference.
  absl::Status Step(int step, const std::vector<std::string>& read, Tally& tally);

 private:
  /// A tensor as all ranks have it.
  struct Stored {
    std::vector<Placement> placements;  // by rank of the world
    std::vector<std::string> parts;
    Number At(int rank, int64_t index) const;
    int FirstOf(int rank) const { return rank - rank % stage_size; }
    int stage_size = 1;
  };

  Judge(Interpreter interpreter, std::vector<Placed> results, const Mesh& mesh, int rank,
        uint64_t seed)
      : interpreter_(std::move(interpreter)),
        results_(std::move(results)),
        world_(mesh.size()),
        ranks_(mesh.stage_size()),
        first_(rank - rank % ranks_),
        rank_(rank),
        seed_(seed) {}
  std::map<std::string, Stored> Split(const std::vector<std::string>& read) const;
  std::vector<int64_t> Share(const TensorType& type) const;
  absl::Status Compare(const Placed& result, const Stored& have, const ElementSource& source,
                       Evaluator& evaluator, Tally& tally) const;

  Interpreter interpreter_;
  std::vector<Placed> results_;
  int world_;
  int ranks_, first_;  // of its stage
  int rank_;
  uint64_t seed_;
  std::map<std::string, DType> dtypes_;
  std::map<std::string, Stored> before_;  // after the last step
  bool is_ordinary_ = true;               // no step has had special values yet
};

}  // namespace coconet
