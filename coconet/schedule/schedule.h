#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/schedule/launches.h"
#include "coconet/schedule/transformation.h"

namespace coconet {

/// A transformed program with its analysis (types, users, launches, traffic), which is made once.
/// Immutable: copies share one allocation, and threads may read them at the same time.
class Schedule {
 public:
  /// The schedule of a program without operations.
  Schedule() : Schedule(TypedGraph(), {}) {}
  /// `kernels` partition some of the nodes: disjoint, each ascending, ordered by first node.
  /// Nothing checks that they are legal: Apply makes those that are. `program` is canonical.
  Schedule(TypedGraph program, Kernels kernels);

  const TypedGraph& program() const { return parts_->analysis->program; }
  const Graph& graph() const { return program().graph(); }
  const std::vector<TensorType>& types() const { return program().types(); }
  const TensorType& type(NodeId id) const { return program().type(id); }

  /// Operations in no kernel are kernels or library calls of their own.
  const Kernels& kernels() const { return parts_->analysis->kernels; }
  /// By overlap, the first nodes of its launches in the order of execution; disjoint, sorted.
  const std::vector<std::vector<NodeId>>& overlaps() const { return parts_->overlaps; }
  /// By bucket, its AllReduces; disjoint, sorted.
  const std::vector<std::vector<NodeId>>& buckets() const { return parts_->buckets; }
  /// The first nodes of all launches in the order of an Order transformation; empty if there is
  /// none.
  const std::vector<NodeId>& issued() const { return parts_->issued; }
  /// The transformations that make this schedule from the plain program; not part of its identity.
  const std::vector<Transformation>& trace() const { return parts_->trace; }

  const Launches& launches() const { return parts_->analysis->launches; }
  /// The launch of a node that has one.
  const Launch& launch(NodeId id) const { return launches()[launches().of[id]]; }
  /// A topological order of the launches, level by level and collectives first. Shorter than the
  /// list if kernels depend on each other in a cycle; Apply makes no such kernels.
  const std::vector<int>& order() const { return parts_->analysis->order; }
  /// By launch.
  const std::vector<Traffic>& traffic() const { return parts_->analysis->traffic; }
  /// By node: Levels.
  const std::vector<int>& levels() const { return *parts_->analysis->levels; }

  // These make other schedules of the same program, or of a transformed one. They check nothing;
  // the results are canonical only if the arguments are.
  Schedule WithKernels(Kernels kernels) const;
  Schedule WithOverlap(const Overlap& overlap) const;
  Schedule WithBucket(const Bucket& bucket) const;
  Schedule WithOrder(const Order& order) const;
  Schedule WithTrace(std::vector<Transformation> trace) const;
  /// The same transformations of the same nodes with other sizes.
  Schedule Resized(TypedGraph program) const;

  /// The kinds of tensors that a program over a list has, and by kind the schedule of one tensor
  /// (ProgramOf). Made at the first call. Requires a program with lists, bound.
  const TensorKinds& kinds() const;
  const std::vector<Schedule>& of_kinds() const;

 private:
  struct Analysis {
    TypedGraph program;
    Kernels kernels;
    std::shared_ptr<const std::vector<int>> levels;
    Launches launches;
    std::vector<int> order;
    std::vector<Traffic> traffic;
  };
  struct OfKinds;
  struct Parts {
    std::shared_ptr<const Analysis> analysis;
    std::vector<std::vector<NodeId>> overlaps = {}, buckets = {};
    std::vector<NodeId> issued = {};
    std::vector<Transformation> trace = {};
    std::shared_ptr<OfKinds> of_kinds = nullptr;  // null without lists
  };
  static std::shared_ptr<const Analysis> Analysed(TypedGraph program, Kernels kernels,
                                                  std::shared_ptr<const std::vector<int>> levels);
  explicit Schedule(Parts parts);
  const OfKinds& MadeOfKinds() const;

  std::shared_ptr<const Parts> parts_;  // never null
};

/// The schedule of an untransformed (bound) program; canonicalises it. If updates exchange values
/// of states, one of the values is copied first (cast to its own dtype), so that the updates have
/// an order.
absl::StatusOr<Schedule> InitialSchedule(const Graph& program);

/// Applies `t`, or says which condition failed at which operation (FailedPrecondition;
/// InvalidArgument for a stale node id). A pure, total function; the result is canonical. The
/// conditions are in docs/schedules.md.
absl::StatusOr<Schedule> Apply(const Schedule& s, const Transformation& t);

/// The result of applying a Recompute, with the new numbers of the nodes.
struct RecomputedSchedule {
  Schedule schedule;
  std::vector<NodeId> renamed;  // by node of the schedule before
  std::vector<NodeId> copies;   // ascending, with the casts that tell them apart
};
absl::StatusOr<RecomputedSchedule> ApplyRecompute(const Schedule& s, const Recompute& recompute);

/// Whether one launch can contain the nodes of a fusion. Apply also checks that no kernel of the
/// schedule lies across it, and that no other launch must run in the middle of it.
absl::Status CheckFuse(const TypedGraph& program, const Fuse& fuse);

/// Applies disjoint fusions to a schedule without overlaps, analysed together: near linear in the
/// number of operations, however many fusions there are. OK with the same result exactly if Apply
/// is, one after the other.
absl::StatusOr<Schedule> FuseAll(const Schedule& s, absl::Span<const Fuse> fuses);

/// Applies the transformations one after the other to InitialSchedule(program).
absl::StatusOr<Schedule> Replay(const Graph& program, const std::vector<Transformation>& trace);

/// Canonical text: Print(graph), one "kernel %a %b ..." line per kernel, one "overlap %a %b ..."
/// line per overlap, one "bucket %a %b ..." line per bucket, and an "order %a %b ..." line if
/// launches have a given order. Equal text = equal schedule.
std::string Print(const Schedule& s);

}  // namespace coconet
