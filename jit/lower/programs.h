#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/lists.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/buffers.h"

namespace coconet {

/// The program of all tensors of one size. Their launches have the same numbers in every program of
/// a schedule.
struct SizedProgram {
  PlacedLaunches launches;
  BufferTable table;
};

/// The programs of a schedule, one per size that a tensor of its lists has. A schedule without
/// lists has one program, itself, and counts as one tensor.
class Programs {
 public:
  /// FailedPrecondition when the kernels depend on each other in a cycle.
  static absl::StatusOr<Programs> Of(const Schedule& schedule, const Config& config,
                                     const Target& target);

  int size() const { return static_cast<int>(list_.size()); }
  SizedProgram& operator[](int program) { return list_[program]; }
  const SizedProgram& operator[](int program) const { return list_[program]; }
  /// The launches of the first program.
  PlacedLaunches& launches() { return list_[0].launches; }
  const PlacedLaunches& launches() const { return list_[0].launches; }

  bool has_lists() const { return has_lists_; }
  /// Tensors of a list; 1 without lists.
  int tensors() const { return static_cast<int>(kinds_.of.size()); }
  /// By tensor: the number of its program.
  int of(int tensor) const { return kinds_.of[tensor]; }
  /// The first tensor of a program.
  int FirstTensor(int program) const { return kinds_.first[program]; }
  /// Whether each tensor has one of the launch.
  bool IsOfTensors(int launch) const;

 private:
  bool has_lists_ = false;
  TensorKinds kinds_;
  std::vector<SizedProgram> list_;
};

}  // namespace coconet
