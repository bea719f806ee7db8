#pragma once

#include <cstdint>
#include <vector>

#include "coconet/schedule/schedule.h"
#include "coconet/testing/simulated_memory.h"

namespace coconet {

/// The ranks that run a schedule, with the values of its program in their memory. The schedule
/// outlives them.
class SimulatedRanks {
 public:
  SimulatedRanks(const Schedule& schedule, int ranks, int nodes, int stages,
                 const ElementSource& source);

  const Schedule& schedule() const { return schedule_; }
  const TypedGraph& program() const { return schedule_.program(); }
  const TensorType& type(NodeId id) const { return program().type(id); }
  /// The value that a node's operand means.
  NodeId Operand(NodeId id, size_t at) const { return program().value(program().inputs(id)[at]); }
  int LaunchOf(NodeId id) const { return schedule_.launches().of[id]; }

  int world() const { return memory_.world(); }
  int of_stage() const { return ranks_; }
  int of_node() const { return of_node_; }
  int FirstOfStage(int rank) const { return memory_.FirstOfStage(rank); }
  bool Owns(int rank, int64_t index, const TensorType& type) const {
    return memory_.Owns(rank, index, type);
  }

  /// The node in whose memory an update or output stores, or a value is kept: the state's if an
  /// update of the value's launch assigns it.
  NodeId HomeOf(NodeId id) const { return homes_[id]; }
  Number& At(int rank, NodeId home, int64_t index) { return memory_.At(rank, home, index); }
  Number& Cell(int rank, NodeId id, int64_t index) { return At(rank, HomeOf(id), index); }
  /// SimulatedMemory::Whole of what an update or output stores.
  std::vector<Number> Stored(int rank, NodeId store) const;

  /// An element of an AllReduce, ReduceScatter or ReduceTo.
  Number Reduced(ReduceKind kind, NodeId reduction, int rank, int64_t index);
  /// A fold's result from the sum or extremum of its elements.
  Number Finished(const Fold& fold, NodeId id, const Number& folded) const;

 private:
  const Schedule& schedule_;
  const int ranks_, of_node_;
  SimulatedMemory memory_;
  std::vector<NodeId> homes_;  // by node
};

}  // namespace coconet
