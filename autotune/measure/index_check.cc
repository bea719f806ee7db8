#include "autotune/measure/index_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"

namespace coconet {
namespace {

constexpr int64_t kPiece = 1 << 16;  // elements that are computed together

/// The names of the declarations that a rank computes `id` from; none where it needs what other
/// ranks have, or what a schedule slices, too.
std::optional<std::set<std::string>> NamesBelow(const TypedGraph& program, NodeId id,
                                                const std::set<std::string>& cut) {
  const Graph& g = program.graph();
  std::set<std::string> names;
  std::set<NodeId> seen = {id};
  for (std::vector<NodeId> stack = {id}; !stack.empty();) {
    const NodeId next = stack.back();
    stack.pop_back();
    if (Communicates(g.nodes[next].op)) return std::nullopt;
    if (const std::string* name = DeclaredName(g.nodes[next].op); name != nullptr) {
      if (cut.contains(*name)) return std::nullopt;
      names.insert(*name);
    }
    const bool updates = As<Update>(g, next) != nullptr;
    for (size_t i = updates ? 1 : 0; i < g.nodes[next].inputs.size(); ++i) {
      if (seen.insert(g.nodes[next].inputs[i]).second) stack.push_back(g.nodes[next].inputs[i]);
    }
  }
  return names;
}

/// "[1, 2]"
std::string PositionText(const Shape& shape, int64_t element) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d].size) at[d] = element % shape[d].size;
  return absl::StrCat("[", absl::StrJoin(at, ", "), "]");
}

}  // namespace

absl::StatusOr<IndexCheck> IndexCheck::Create(const TypedGraph& program,
                                              const std::vector<PlacedTensor>& tensors,
                                              const Mesh& mesh) {
  const Graph& g = program.graph();
  std::set<std::string> sliced, cut;
  for (const PlacedTensor& tensor : tensors) {
    if (tensor.type.layout.sliced()) sliced.insert(tensor.name);
  }
  for (NodeId id = 0; id < g.size(); ++id) {
    const std::string* name = DeclaredName(g.nodes[id].op);
    if (name != nullptr && sliced.contains(*name) && !program.type(id).layout.sliced())
      cut.insert(*name);
  }
  IndexCheck check;
  check.stage_size_ = mesh.stage_size();
  Graph looked{g.name, g.nodes};
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g.nodes[id].inputs.size() < 2) continue;
    const NodeId table = g.nodes[id].inputs[0], indices = g.nodes[id].inputs[1];
    const Shape& rows = program.type(table).shape;
    const std::optional<int> dim = RowDimOf(g.nodes[id].op, rows.size());
    if (!dim.has_value()) continue;
    const std::optional<std::set<std::string>> names = NamesBelow(program, indices, cut);
    if (!names.has_value()) continue;
    check.reads_.insert(names->begin(), names->end());
    const std::string result = absl::StrCat("coconet.indices.", id);
    looked.Add(Output{result}, {indices});
    check.gathers_[result] = {Described(g, id), Described(g, indices), program.type(indices),
                              rows[*dim].size};
    if (Layout& layout = check.gathers_[result].type.layout; layout == Layout::Auto())
      layout = Layout::Replicated();
  }
  if (check.empty()) return check;
  ASSIGN_OR_RETURN(
      Interpreter interpreter,
      Interpreter::Create(std::move(looked), mesh.stage_size(), mesh.stages, mesh.nodes));
  check.interpreter_.push_back(std::move(interpreter));
  return check;
}

absl::StatusOr<std::vector<std::string>> IndexCheck::Find(int rank,
                                                          const ElementSource& source) const {
  std::vector<std::string> found;
  for (const auto& [result, gather] : gathers_) {
    Evaluator evaluator(interpreter_[0], source);
    const Part part = PartOf(gather.type, stage_size_, rank % stage_size_);
    bool none = true;
    for (int64_t begin = 0; begin < part.elements() && none; begin += kPiece) {
      std::vector<int64_t> elements;
      for (int64_t at = begin; at < std::min(begin + kPiece, part.elements()); ++at)
        elements.push_back(part.Global(at));
      ASSIGN_OR_RETURN(const Expected index, evaluator.Evaluate(result, rank, elements));
      for (size_t i = 0; i < elements.size() && none; ++i) {
        if (index.error[i] > 0 ||
            (index.value[i].integer() >= 0 && index.value[i].integer() < gather.rows))
          continue;
        none = false;
        found.push_back(absl::StrCat(gather.text, ": ", gather.indices,
                                     PositionText(gather.type.shape, elements[i]), " is ",
                                     NumberText(index.value[i]), ", want an index from 0 to below ",
                                     gather.rows, "; the result has zeros there"));
      }
    }
  }
  return found;
}

}  // namespace coconet
