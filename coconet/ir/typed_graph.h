#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// A graph with its types, and what else follows from the graph alone, computed once. Immutable:
/// copies share one allocation, and threads may read them at the same time.
class TypedGraph {
 public:
  /// A program without operations.
  TypedGraph();
  /// InvalidArgument if the graph does not infer (infer.h).
  static absl::StatusOr<TypedGraph> Of(Graph graph);

  /// The program written out, without lists (lists.h); the program itself if it has none.
  TypedGraph Expanded() const;

  const Graph& graph() const { return facts_->graph; }
  NodeId size() const { return graph().size(); }
  const Op& op(NodeId id) const { return graph().nodes[id].op; }
  const std::vector<NodeId>& inputs(NodeId id) const { return graph().nodes[id].inputs; }

  /// By node; an Output has the type of its operand.
  const std::vector<TensorType>& types() const { return facts_->types; }
  const TensorType& type(NodeId id) const { return facts_->types[id]; }
  /// By node: the nodes that take it as an input, ascending.
  const std::vector<std::vector<NodeId>>& users() const { return facts_->users; }
  /// By node: the node whose value its users read: for an Update the assigned value, for others the
  /// node itself.
  const std::vector<NodeId>& values() const { return facts_->values; }
  NodeId value(NodeId id) const { return facts_->values[id]; }
  /// Slices of the bound type on `ranks` ranks.
  TensorSlicing slicing(NodeId id, int ranks) const { return SlicingOf(type(id), ranks); }
  /// By node: there is one per tensor of a list (EachNodes).
  const std::vector<bool>& each() const { return facts_->each; }

  /// Traits of the operation, as its row has them (op_table.h).
  bool communicates(NodeId id) const { return facts_->traits[id].communicates; }
  bool is_kernel_work(NodeId id) const { return facts_->traits[id].is_kernel_work; }
  Span span(NodeId id) const { return facts_->traits[id].span; }

  /// A computation on scalars: it is done anew wherever its result is needed.
  bool IsRecomputed(NodeId id) const { return type(id).shape.empty() && IsComputation(op(id)); }
  /// The first and the last node that takes a value, seen through the updates that assign it and
  /// through what is recomputed from it; -1: none.
  struct Takers {
    NodeId first = -1, last = -1;
  };
  const Takers& takers(NodeId id) const { return facts_->takers[id]; }

 private:
  struct Traits {
    bool communicates = false, is_kernel_work = false;
    Span span = Span::kAll;
  };
  struct Facts {
    Graph graph;
    std::vector<Traits> traits;  // by node
    std::vector<TensorType> types;
    std::vector<std::vector<NodeId>> users;
    std::vector<NodeId> values;
    std::vector<bool> each;
    std::vector<Takers> takers;
  };
  explicit TypedGraph(std::shared_ptr<const Facts> facts) : facts_(std::move(facts)) {}
  static std::vector<Takers> FindTakers(const TypedGraph& program);

  std::shared_ptr<const Facts> facts_;  // never null
};

}  // namespace coconet
