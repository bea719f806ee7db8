#include "autotune/measure/tensors.h"

#include <map>

#include "coconet/base/status.h"

namespace coconet {

std::vector<PlacedTensor> PlaceTensors(const TypedGraph& program, const Plan& plan) {
  const Graph& graph = program.graph();
  std::map<std::string, int> buffers;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferRole role = plan.buffers[i].role;
    if (role != BufferRole::kTemp && role != BufferRole::kSync)
      buffers[plan.buffers[i].name] = static_cast<int>(i);
  }
  std::vector<PlacedTensor> tensors;
  std::map<NodeId, size_t> states;
  for (NodeId id = 0; id < graph.size(); ++id) {
    std::string name;
    if (const auto* input = As<Input>(graph, id)) name = input->name;
    if (const auto* state = As<State>(graph, id)) name = state->name;
    if (const auto* output = As<Output>(graph, id)) name = output->name;
    if (As<Update>(graph, id) != nullptr)
      tensors[states.at(graph.nodes[id].inputs[0])].updated = true;
    if (name.empty()) continue;
    if (As<State>(graph, id) != nullptr) states[id] = tensors.size();
    const auto buffer = buffers.find(name);
    CC_CHECK(buffer != buffers.end());
    tensors.push_back(
        {name, plan.buffers[buffer->second].role, program.type(id), buffer->second, false});
    Layout& layout = tensors.back().type.layout;
    if (layout.kind == Layout::Kind::kAuto) layout = Layout::Replicated();
  }
  return tensors;
}

int SlicedDim(const TensorType& type) {
  return type.layout.sliced() && type.shape.size() > 1 ? type.layout.dim : Layout::kFlat;
}

Part PartOf(const TensorType& type, int ranks, int rank) {
  if (!type.layout.sliced()) return {1, NumElements(type.shape), 0, 0, 0};
  const TensorSlicing s = SlicingOf(type, ranks);
  const Range range = s.slicing.Of(rank);
  return {.runs = s.outer,
          .run = range.size() * s.inner,
          .begin = range.begin * s.inner,
          .global_stride = s.slicing.extent * s.inner,
          .storage_stride = s.slicing.per * s.inner};
}

}  // namespace coconet
