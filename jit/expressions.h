#ifndef COCONET_JIT_EXPRESSIONS_H_
#define COCONET_JIT_EXPRESSIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/arguments.h"
#include "jit/buffers.h"
#include "jit/units.h"

namespace coconet {

/// The body of one phase's loop while it is being written. All loads come before all stores: an update may not be seen
/// by what reads the value before the step.
struct Phase {
  enum class Domain : uint8_t { kSlice, kWhole };
  Domain domain{};
  std::string values{}, stores{};         // statements
  std::map<NodeId, std::string> names{};  // of values
  bool reads_gathered = false;          // what an AllGather of the kernel brought
  int64_t bytes_per_element = 0;        // loaded and stored
};

/// Writes the expressions of one kernel: values of nodes from loads, as packs of V elements at index i.
class Expressions {
 public:
  /// The kernel of unit `unit`, over elements of `shape`. All must outlive this.
  Expressions(const Units& u, int unit, int ranks, const Shape& shape, const BufferTable& table, Arguments& args)
      : u_(u), g_(*u.graph), unit_(unit), ranks_(ranks), shape_(shape), table_(table), args_(args) {}

  /// The name of the value of `id` in `phase`, written there unless it is already. Internal when the kernel's phases
  /// do not allow it, which Fuse refuses.
  absl::StatusOr<std::string> Eval(Phase& phase, NodeId id);

  /// From now on the kernel's AllReduces load the ranks' copies of `operand` from the array of pointers `from`.
  void LoadAllFrom(NodeId operand, std::string from) { sources_[operand] = std::move(from); }

  bool InUnit(NodeId id) const { return u_.unit_of[id] == unit_; }
  /// Statements before the phases: what is computed once a launch.
  const std::string& scalars() const { return scalars_; }

 private:
  const TensorType& type(NodeId id) const { return u_.types[id]; }
  absl::StatusOr<std::string> EvalLoad(Phase& phase, NodeId id);
  absl::StatusOr<std::string> EvalBroadcast(Phase& phase, NodeId id, std::string base);
  absl::StatusOr<std::string> EvalCollective(Phase& phase, NodeId id);
  absl::StatusOr<std::string> Arithmetic(NodeId id, const std::vector<std::string>& operands, absl::string_view lanes);
  absl::StatusOr<std::string> Scalar(NodeId id);
  std::string InRange(NodeId id, std::string expression) const;
  std::string Define(Phase& phase, NodeId id, absl::string_view expression);
  bool DependsOnOwnCollective(NodeId id);
  bool OnlyStored(NodeId id) const;

  const Units& u_;
  const Graph& g_;
  const int unit_;
  const int ranks_;
  const Shape& shape_;
  const BufferTable& table_;
  Arguments& args_;
  std::string scalars_;
  std::map<NodeId, std::string> scalar_names_;
  std::map<NodeId, bool> depends_;  // DependsOnOwnCollective
  std::map<NodeId, std::string> sources_;  // LoadAllFrom
  int named_ = 0;                   // values, scalars and maps named so far
};

}  // namespace coconet

#endif  // COCONET_JIT_EXPRESSIONS_H_
