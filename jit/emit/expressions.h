#ifndef COCONET_JIT_EMIT_EXPRESSIONS_H_
#define COCONET_JIT_EMIT_EXPRESSIONS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/schedule/kernel_phases.h"
#include "jit/config/target.h"
#include "jit/config/units.h"
#include "jit/storage/arguments.h"
#include "jit/storage/buffers.h"
#include "jit/storage/stored_map.h"

namespace coconet {

/// The body of one loop over elements while it is being written. All loads come before all stores:
/// an update may not be seen by what reads the value before the step.
struct Pass {
  std::string values{}, stores{};         // statements
  std::map<NodeId, std::string> names{};  // of values
};

/// The text of one phase of a kernel while it is being written: for each row (where the kernel
/// folds rows) what is computed once a row, with the loops that fold it, then the loop over
/// elements.
struct Phase {
  bool on_slices = false;
  int number = 0;                          // in KernelPhases
  std::string row_values{}, row_stores{};  // statements
  std::map<NodeId, std::string> row_names{};
  Pass elements{};
  bool reads_gathered = false;     // what an AllGather of the kernel brought
  int64_t bytes_per_element = 0;   // loaded and stored
  std::set<std::string> loaded{};  // what bytes_per_element counts already
};

/// "SumOf", "MaxOf", "MinOf" of the dialect.
absl::string_view FoldKindText(FoldKind kind);
/// "LoadSum", "LoadMax", "LoadMin".
absl::string_view LoadFrom(ReduceKind kind);
/// What folding nothing gives.
double FirstOfFold(FoldKind kind, DType dtype);

/// Writes the expressions of one kernel: values of nodes from loads, as packs of V elements at
/// index i, as packs of one at row `row`, or, for scalars, of one a launch.
class Expressions {
 public:
  struct Kernel {
    const Units& units;
    int unit;
    Target target;
    const IterationSpace& space;
    const KernelPhases& phases;
    const BufferTable& table;
    bool multicast;  // sums of slices, in any order, by addresses for all ranks
  };
  /// All must outlive this.
  Expressions(const Kernel& kernel, Arguments& args)
      : k_(kernel), u_(kernel.units), g_(u_.graph()), table_(kernel.table), args_(args) {}

  /// The name of the value of `id` in `pass` of `phase`, written there unless it is already.
  /// Internal when the kernel's phases do not allow it, which Fuse refuses.
  absl::StatusOr<std::string> Element(Phase& phase, Pass& pass, NodeId id);
  /// The same of what there is one of a row.
  absl::StatusOr<std::string> Row(Phase& phase, NodeId id);
  /// The same of a scalar: a pack of one. Statements go to the section that is open.
  absl::StatusOr<std::string> Scalar(NodeId id);
  void OpenSection(std::string* text) { section_ = text; }
  /// Where the statements of scalars go of which each tensor of a list has one: in the scope of
  /// tensor `t`.
  void OpenTensorSection(std::string* text) {
    tensor_section_ = text;
    tensor_names_.clear();
  }
  /// What a fold of the kernel to a scalar, or an AllReduce of it, is called.
  void NameScalar(NodeId id, std::string name) { scalar_names_[id] = std::move(name); }
  /// What computes it for tensor `t`, wherever it is needed from now on.
  void GiveTensorScalar(NodeId id, std::string expression) {
    tensor_sources_[id] = std::move(expression);
  }
  /// AllReduce `sum` adds up what `expression` gives for tensor `t`.
  void GiveTotal(NodeId sum, std::string expression) { totals_[sum] = std::move(expression); }
  /// Some scalar so far added up something of all tensors.
  bool has_totals() const { return has_totals_; }

  /// From now on the kernel's AllReduces load the ranks' copies of `operand` from the array of
  /// pointers `from`.
  void LoadAllFrom(NodeId operand, std::string from) { sources_[operand] = std::move(from); }

  /// ReduceScatter `id` takes what `ring` has, a Ring.
  void ReduceAround(NodeId id, std::string ring) { rings_[id] = std::move(ring); }

  /// Declares an accumulator for fold `id`: its name and the statement.
  std::pair<std::string, std::string> Accumulator(NodeId id);
  /// "Averaged<f32>(x, p.count3)", from a total of that fold: the value in the compute type.
  std::string FromTotal(NodeId id, absl::string_view total);

  bool InUnit(NodeId id) const { return u_.unit_of[id] == k_.unit; }
  /// There is one of it a row.
  bool IsRow(NodeId id) const;
  /// The expression for the index, in its storage, of what there is one of a row.
  std::string RowOffset(NodeId id);

 private:
  const TensorType& type(NodeId id) const { return u_.program.types()[id]; }
  bool IsScalarValue(NodeId id) const { return type(id).shape.empty() && !k_.space.shape.empty(); }
  /// Counts the bytes of an element that is loaded, once a phase.
  void Count(Phase& phase, absl::string_view what, NodeId id, int copies = 1) const;
  absl::StatusOr<std::string> ScalarText(NodeId id);
  absl::StatusOr<std::string> TotalText(NodeId id);
  std::string TotalOf(ReduceKind kind, DType dtype, absl::string_view statements,
                      absl::string_view result);
  bool IsTensorScalar(NodeId id) const { return u_.tensors > 0 && u_.each[id]; }
  absl::StatusOr<std::string> Load(Phase& phase, Pass& pass, NodeId id);
  absl::StatusOr<std::string> LoadMapped(Pass& pass, NodeId id, const StoredMap& map,
                                         std::string base);
  absl::StatusOr<std::string> Collective(Phase& phase, Pass& pass, NodeId id);
  absl::StatusOr<std::string> FoldRow(Phase& phase, NodeId id);
  absl::StatusOr<std::string> Arithmetic(NodeId id, const std::vector<std::string>& operands,
                                         absl::string_view lanes, absl::string_view index);
  std::string DroppedText(NodeId id, const std::vector<std::string>& operands,
                          absl::string_view lanes, absl::string_view index);
  /// The map's argument, and its base moved to where the rank's storage of `stored` begins.
  std::string MapField(const StoredMap& map, const TensorType& stored, std::string* base);
  std::string InRange(NodeId id, std::string expression) const;
  std::string Define(Pass& pass, NodeId id, absl::string_view expression);
  bool DependsOnOwnCollective(NodeId id);
  bool UpdatesScalars() const;
  bool OnlyStored(NodeId id) const;

  const Kernel k_;
  const Units& u_;
  const Graph& g_;
  const BufferTable& table_;
  Arguments& args_;
  std::string* section_ = nullptr;
  std::map<NodeId, std::string> scalar_names_;
  std::string* tensor_section_ = nullptr;
  std::map<NodeId, std::string> tensor_names_, tensor_sources_;
  std::map<NodeId, std::string> totals_;  // GiveTotal
  bool has_totals_ = false;
  std::map<NodeId, bool> depends_;         // DependsOnOwnCollective
  std::map<NodeId, std::string> sources_;  // LoadAllFrom
  std::map<NodeId, std::string> rings_;    // ReduceAround
  int named_ = 0;                          // values, scalars and maps named so far
};

}  // namespace coconet

#endif  // COCONET_JIT_EMIT_EXPRESSIONS_H_
