#include "coconet/testing/simulated_memory.h"

#include <limits>

#include "coconet/base/status.h"
#include "coconet/testing/reductions.h"

namespace coconet {
namespace {

const Number kPoison = std::numeric_limits<double>::quiet_NaN();

}  // namespace

SimulatedMemory::SimulatedMemory(const TypedGraph& program, int ranks, int nodes, int stages,
                                 const ElementSource& source)
    : ranks_(ranks), of_node_(ranks / nodes), elements_(ranks * stages) {
  const Graph& g = program.graph();
  for (int rank = 0; rank < world(); ++rank) {
    elements_[rank].resize(g.nodes.size());
    for (NodeId id = 0; id < g.size(); ++id) {
      const TensorType& type = program.type(id);
      elements_[rank][id].assign(NumElements(type.shape), kPoison);
      const auto* input = As<Input>(g, id);
      const auto* state = As<State>(g, id);
      if (input == nullptr && state == nullptr) continue;
      for (int64_t i = 0; i < NumElements(type.shape); ++i) {
        if (!Owns(rank, i, type)) continue;
        const int asked = type.layout.kind == Layout::Kind::kLocal ? rank : FirstOfStage(rank);
        const Number element = source(input != nullptr ? input->name : state->name, asked, i);
        At(rank, id, i) = IsFloat(type.dtype) ? element.real() : Stored(type.dtype, element);
      }
    }
  }
}

bool SimulatedMemory::Owns(int rank, int64_t index, const TensorType& type) const {
  if (!type.layout.sliced()) return true;
  const int owner = OwnerOf(index, type, ranks_);
  return type.layout.by_place() ? owner % of_node_ == rank % of_node_ : owner == rank % ranks_;
}

Number& SimulatedMemory::At(int rank, NodeId node, int64_t index) {
  CC_CHECK(index >= 0 && index < static_cast<int64_t>(elements_[rank][node].size()));
  return elements_[rank][node][index];
}

std::vector<Number> SimulatedMemory::Whole(int rank, NodeId node, const TensorType& type) const {
  std::vector<Number> whole = elements_[rank][node];
  for (size_t i = 0; i < whole.size() && type.layout.sliced(); ++i) {
    const int owner = FirstOfStage(rank) + OwnerOf(static_cast<int64_t>(i), type, ranks_);
    whole[i] = elements_[owner][node][i];
  }
  return whole;
}

}  // namespace coconet
