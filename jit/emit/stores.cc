#include "jit/emit/stores.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

int Stores::TargetOf(NodeId id) const {
  if (IsStore(k_.g, id)) return k_.table.target[id];
  const int buffer = k_.table.of[id];
  return buffer >= 0 && k_.table.buffers[buffer].role == BufferRole::kTemp ? buffer : -1;
}

NodeId Stores::ValueOf(NodeId id) const {
  return IsStore(k_.g, id) ? k_.u.Value(StoredOperand(k_.g, id)) : id;
}

absl::Status Stores::AddStore(PhaseText& phase, NodeId id) {
  const NodeId value = ValueOf(id);
  const bool is_pushed = IsStore(k_.g, id) && k_.IsMember(value) &&
                         (Is<AllGather>(k_.g, value) || k_.IsExchanged(value));
  const int buffer = TargetOf(id);
  const bool is_there = !k_.IsMember(value) && k_.table.of[value] == buffer;  // by a product
  if (is_pushed || is_there || buffer < 0) return absl::OkStatus();
  const TensorType& t = k_.type(id);
  const std::string own = k_.args.Own(buffer, k_.type(value).dtype);
  if (k_.IsRow(value)) {
    ASSIGN_OR_RETURN(const std::string row, expressions_.Row(phase, value));
    const std::string at = loads_.RowOffset(id);
    absl::StrAppend(&phase.row_stores, "    if (grid.ThreadId() == 0) Store<kCached>(", own, " + ",
                    at, ", ", row, ");\n");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string name, expressions_.Element(phase, phase.elements, value));
  phase.bytes_per_element += static_cast<int64_t>(SizeOf(t.dtype));
  absl::StrAppend(&phase.elements.stores, "      Store<", k_.StoreMode(buffer), ">(", own,
                  t.layout.sliced() ? " + (i - c.shift), " : " + i, ", name, ");\n");
  return absl::OkStatus();
}

absl::Status Stores::AddPush(PhaseText& phase, NodeId gather) {
  ASSIGN_OR_RETURN(const std::string name,
                   expressions_.Element(phase, phase.elements, k_.g.nodes[gather].inputs[0]));
  const DType dtype = k_.type(gather).dtype;
  for (int buffer : k_.table.push_targets.at(gather)) {
    phase.bytes_per_element += k_.target.ranks_per_node() * static_cast<int64_t>(SizeOf(dtype));
    const std::string peers = k_.args.Peers(buffer, dtype);
    if (rings_.AreUsed()) {
      absl::StrAppend(&phase.elements.stores, "      StoreAround<", k_.StoreMode(buffer),
                      ">(sync, ", peers, ", i, ", name, ");\n");
      rings_.PassOn(buffer);
      continue;
    }
    absl::StrAppend(&phase.elements.stores, "      StorePeers<", k_.StoreMode(buffer), ">(",
                    k_.Multicasts() ? absl::StrCat(k_.args.OnAll(buffer, dtype), ", ") : "", peers,
                    ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

absl::Status Stores::AddExchange(PhaseText& phase, NodeId exchange) {
  ASSIGN_OR_RETURN(const std::string name,
                   expressions_.Element(phase, phase.elements, k_.g.nodes[exchange].inputs[0]));
  const DType dtype = k_.type(exchange).dtype;
  for (int buffer : k_.table.push_targets.at(exchange)) {
    phase.bytes_per_element += static_cast<int64_t>(SizeOf(dtype));
    absl::StrAppend(&phase.elements.stores, "      Store<", k_.StoreMode(buffer), ">(",
                    k_.args.Peers(buffer, dtype), "[to] + (i - c.there), ", name, ");\n");
  }
  return absl::OkStatus();
}

absl::Status Stores::AddSend(PhaseText& phase, NodeId send) {
  ASSIGN_OR_RETURN(const std::string name,
                   expressions_.Element(phase, phase.elements, k_.g.nodes[send].inputs[0]));
  const DType dtype = k_.type(send).dtype;
  for (int buffer : k_.table.push_targets.at(send)) {
    phase.bytes_per_element += static_cast<int64_t>(SizeOf(dtype));
    absl::StrAppend(&phase.elements.stores, "      StoreBeside<", k_.StoreMode(buffer), ">(",
                    k_.args.OnBeside(buffer, dtype), ", ",
                    As<Send>(k_.g, send)->shift > 0 ? "true, " : "false, ",
                    k_.args.Own(buffer, dtype),
                    k_.type(send).layout.sliced() ? ", i - c.shift, " : ", i, ", name, ");\n");
  }
  return absl::OkStatus();
}

/// The value that a scalar's store needs, and the store, by one thread.
absl::Status Stores::AddScalar(NodeId id, std::string* stores) {
  const int buffer = TargetOf(id);
  if (buffer < 0) return absl::OkStatus();
  const NodeId value = ValueOf(id);
  ASSIGN_OR_RETURN(const std::string name, expressions_.Scalar(value));
  absl::StrAppend(stores, "    Store<kCached>(", k_.args.Own(buffer, k_.type(value).dtype), ", ",
                  name, ");\n");
  return absl::OkStatus();
}

absl::StatusOr<std::string> Stores::ScalarsText(Rounds& rounds) {
  std::string text, stores, of_tensor, of_tensors;
  expressions_.OpenSection(&text);
  expressions_.OpenTensorSection(&of_tensor);
  for (NodeId id : k_.phases.scalars)
    RETURN_IF_ERROR(AddScalar(id, k_.u.each[id] ? &of_tensors : &stores));
  if (!of_tensors.empty()) {
    absl::StrAppend(&text, rounds.BeforeScalarsText(),
                    "  for (Index t = grid.BlockId(); t < p.tensors; t += grid.GridSize()) {\n",
                    Arguments::TensorLocals(), of_tensor,
                    "    if (grid.ThreadId() != 0) continue;\n", of_tensors, "  }\n");
  }
  if (stores.empty()) return text;
  return absl::StrCat(text, "  if (grid.BlockId() == 0 && grid.ThreadId() == 0) {\n", stores,
                      "  }\n");
}

}  // namespace coconet
