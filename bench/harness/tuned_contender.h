#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/session/session.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The value that element `index` of a tensor has in these benchmarks: between -1 and 1, determined
/// by the tensor's name, the index and, for Local tensors, the rank.
double NumberAt(absl::string_view tensor, int64_t index, int rank);

/// The value of element `index` of a tensor, on a rank.
using Numbers = std::function<double(absl::string_view tensor, int64_t index, int rank)>;

/// A program as Coconet runs it: tuned, on memory of the Session, filled with numbers. Scalars
/// are 1.
class TunedContender {
 public:
  /// Collective. `program` must be bound. `options.admits` may restrict its schedules. `written`:
  /// inputs, by their names in the program written out, in memory that `Written` reaches, too.
  static absl::StatusOr<std::unique_ptr<TunedContender>> Make(
      Rank& rank, const SessionOptions& options, const Graph& program,
      const Numbers& numbers = NumberAt, const std::vector<std::string>& written = {});

  absl::Status Run(int64_t steps);

  absl::StatusOr<std::vector<StepSpan>> Trace() { return bound_.Trace(); }
  /// Collective: all elements of an output, by its name in the program written out without lists.
  absl::StatusOr<std::vector<float>> Read(absl::string_view output) const;
  const TunedProgram& program() const { return program_; }
  /// This rank's elements of the k-th of the inputs that Make was told of.
  void* Written(size_t k) const { return written_[k].data(); }

 private:
  TunedContender(std::unique_ptr<Session> session, TunedProgram program,
                 std::vector<DeviceBuffer> written, BoundProgram bound)
      : session_(std::move(session)),
        program_(std::move(program)),
        written_(std::move(written)),
        bound_(std::move(bound)) {}
  absl::Status Fill(const Numbers& numbers);

  std::unique_ptr<Session> session_;
  TunedProgram program_;
  std::vector<DeviceBuffer> written_;
  BoundProgram bound_;  // destroyed before its buffers and its Session
};

}  // namespace coconet::bench
