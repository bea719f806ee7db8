#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/loads.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// Whether `id` is a function of the mathematical library, which GPUs compute by dozens of
/// instructions, some of them in f64.
bool IsCostly(const Graph& g, NodeId id);

/// Writes the values of one kernel, each once where it is needed, after its operands: as packs of V
/// elements at index i, as packs of one per row r, or, for scalars, of one per launch or per tensor
/// t.
class Expressions {
 public:
  /// Both must outlive this.
  Expressions(KernelContext& k, Loads& loads);

  /// The name of the value of `id` in `pass` of `phase`, written there unless it is already.
  /// Internal if the kernel's phases do not allow it, which Fuse refuses.
  absl::StatusOr<std::string> Element(PhaseText& phase, PassText& pass, NodeId id);
  /// The same for a value that exists once per row.
  absl::StatusOr<std::string> Row(PhaseText& phase, NodeId id);
  /// The same for a scalar: a pack of one. Statements go to the section that is open.
  absl::StatusOr<std::string> Scalar(NodeId id);

  void OpenSection(std::string* text) { section_ = text; }
  /// Opens the section for scalars that each tensor of a list has: in the scope of tensor `t`.
  void OpenTensorSection(std::string* text) {
    tensor_section_ = text;
    tensor_names_.clear();
  }
  /// Names a fold of the kernel to a scalar, or an AllReduce of it.
  void NameScalar(NodeId id, std::string name) { scalar_names_[id] = std::move(name); }
  /// Sets the expression that computes it for tensor `t`, wherever it is needed from now on.
  void GiveTensorScalar(NodeId id, std::string expression) {
    tensor_sources_[id] = std::move(expression);
  }
  /// AllReduce `sum` adds up `expression` over the tensors t.
  void GiveTotal(NodeId sum, std::string expression) { totals_[sum] = std::move(expression); }
  /// Whether some scalar so far added up something of all tensors.
  bool has_totals() const { return has_totals_; }

 private:
  enum class Form : uint8_t { kElement, kRow, kScalar };
  /// Where a value comes from.
  enum class Source : uint8_t {
    kConstant,
    kScalar,      // the scalar form of the same node
    kRow,         // its row form
    kMemory,      // what another launch or an earlier phase stored
    kTile,        // the product whose tiles the kernel goes through
    kCollective,  // what a collective of the launch brings
    kView,
    kRowFold,     // a loop over the row
    kGiven,       // GiveTensorScalar
    kGivenTotal,  // GiveTotal
    kTotal,       // over the tensors of a list
    kOperands,
    kUnknown  // needed before it is known
  };
  /// A value that is needed, while those that it is computed from are written.
  struct Wanted {
    Form form;
    NodeId id;
    PassText* pass = nullptr;  // of an element
    // Once it is begun:
    bool begun = false;
    Source source{};
    std::vector<NodeId> operands = {};
    size_t next = 0;        // of the operands
    PassText loop = {};     // kRowFold: its body
    std::string body = {};  // kTotal: statements of the scope of tensor `t`, and what they hide
    std::string* outer_section = nullptr;
    std::map<NodeId, std::string> outer_names = {};
  };

  /// Writes `wanted` after all that it needs. No recursion follows operands: graphs are deep.
  absl::StatusOr<std::string> Write(PhaseText* phase, Wanted wanted);
  const std::string* NameOf(PhaseText* phase, const Wanted& wanted);
  void Begin(PhaseText* phase, Wanted& wanted);
  Wanted OperandOf(Wanted& wanted);
  absl::Status Finish(PhaseText* phase, Wanted& wanted);
  absl::StatusOr<std::string> TextOf(PhaseText* phase, Wanted& wanted);
  absl::StatusOr<std::string> OperationOf(PhaseText* phase, const Wanted& wanted);
  absl::StatusOr<std::string> ViewOf(PhaseText* phase, const Wanted& wanted);
  std::string RowFold(PhaseText* phase, Wanted& wanted);
  std::string TotalOfTensors(Wanted& wanted);
  void Define(PhaseText* phase, const Wanted& wanted, const std::string& expression);

  Source SourceOfElement(const PhaseText& phase, NodeId id);
  Source SourceOfRow(const PhaseText& phase, NodeId id) const;
  Source SourceOfScalar(NodeId id) const;
  bool IsScalarValue(NodeId id) const {
    return k_.type(id).shape.empty() && !k_.space.shape.empty();
  }
  bool IsTensorScalar(NodeId id) const { return k_.u.tensors > 0 && k_.u.each[id]; }
  bool IsStoredBefore(const PhaseText& phase, NodeId id) const;
  bool DependsOnOwnCollective(NodeId id);

  KernelContext& k_;
  Loads& loads_;
  /// The elements are scalars, some of which are overwritten: then only the thread that stores one
  /// loads it. Other threads, which do not need it, might load it later.
  bool updates_scalars_ = false;
  std::string* section_ = nullptr;
  std::map<NodeId, std::string> scalar_names_;
  std::string* tensor_section_ = nullptr;
  std::map<NodeId, std::string> tensor_names_, tensor_sources_;
  std::map<NodeId, std::string> totals_;  // GiveTotal
  bool has_totals_ = false;
  std::map<NodeId, bool> depends_;  // DependsOnOwnCollective
};

}  // namespace coconet
