#include "coconet/testing/simulated_ranks.h"

#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"
#include "coconet/testing/reductions.h"

namespace coconet {

SimulatedRanks::SimulatedRanks(const Schedule& schedule, int ranks, int nodes, int stages,
                               const ElementSource& source)
    : schedule_(schedule),
      ranks_(ranks),
      of_node_(ranks / nodes),
      memory_(schedule.program(), ranks, nodes, stages, source),
      homes_(program().values()) {
  for (NodeId id = 0; id < program().size(); ++id) {
    if (!As<Update>(program().graph(), id)) continue;
    homes_[id] = program().inputs(id)[0];
    const NodeId value = program().value(id);
    // A prologue is in memory before anything else of its kernel is stored.
    if (LaunchOf(value) == LaunchOf(id) &&
        !IsOfPrologue(program(), schedule_.launches()[LaunchOf(id)].nodes, value))
      homes_[value] = homes_[id];
  }
}

std::vector<Number> SimulatedRanks::Stored(int rank, NodeId store) const {
  return memory_.Whole(rank, HomeOf(store), type(store));
}

Number SimulatedRanks::Reduced(ReduceKind kind, NodeId reduction, int rank, int64_t index) {
  const int launch = LaunchOf(reduction);
  const NodeId operand = CrossingValue(program(), reduction, schedule_.launches()[launch].nodes);
  const RankGroup members = MembersOf(SpanOf(program().op(reduction)), rank, ranks_, of_node_);
  Number result = Cell(members.first, operand, index);
  for (int i = 1; i < members.count; ++i)
    result = Combined(kind, type(operand).dtype, result,
                      Cell(members.first + i * members.stride, operand, index));
  return result;
}

Number SimulatedRanks::Finished(const Fold& fold, NodeId id, const Number& folded) const {
  if (fold.kind != FoldKind::kMean) return folded;
  const int64_t results = NumElements(type(id).shape);
  if (results == 0) return 0.0;
  return folded.real() / static_cast<double>(NumElements(type(Operand(id, 0)).shape) / results);
}

}  // namespace coconet
