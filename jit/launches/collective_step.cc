#include "jit/launches/collective_step.h"

#include <variant>

#include "coconet/base/status.h"
#include "coconet/ir/op_row.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

using Kind = CollectiveStep::Kind;

/// Operations that move no data between ranks: one arm of the visits that are for the others.
template <class T>
concept MovesNothing = kRow<T>.role != Role::kCollective && kRow<T>.role != Role::kTransfer &&
                       kRow<T>.role != Role::kSend;

Group GroupOf(Span span) {
  switch (span) {
    case Span::kAll:
      return Group::kStage;
    case Span::kNode:
      return Group::kNode;
    case Span::kAcross:
      return Group::kAcross;
  }
  CC_CHECK(false);
}

}  // namespace

CollectiveStep StepOf(const Op& op) {
  CollectiveStep step;
  step.group = GroupOf(SpanOf(op));
  const auto reduce = [&](Kind kind, ReduceKind by) {
    step.kind = kind;
    step.reduce = by;
  };
  std::visit(Match{[&](const AllReduce& o) { reduce(Kind::kAllReduce, o.kind); },
                   [&](const ReduceScatter& o) { reduce(Kind::kReduceScatter, o.kind); },
                   [&](const AllGather&) { step.kind = Kind::kAllGather; },
                   [&](const AllToAll&) { step.kind = Kind::kAllToAll; },
                   [&](const Broadcast& o) {
                     step.kind = Kind::kBroadcast;
                     step.root = o.root;
                   },
                   [&](const ReduceTo& o) {
                     reduce(Kind::kReduce, o.kind);
                     step.root = o.root;
                   },
                   [&](const Send& o) {
                     step.kind = Kind::kSend;
                     step.shift = o.shift;
                   },
                   [](const MovesNothing auto&) { CC_CHECK(false); }},
             op);
  return step;
}

}  // namespace coconet
