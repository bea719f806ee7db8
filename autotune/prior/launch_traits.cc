#include "autotune/prior/launch_traits.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "autotune/cost/kernel_work.h"
#include "autotune/cost/work.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

template <class T>
bool Is(const TypedGraph& p, NodeId id) {
  return As<T>(p.graph(), id) != nullptr;
}
bool Stores(const TypedGraph& p, NodeId id) { return RoleOf(p.op(id)) == Role::kStore; }

/// Counts one launch of a program without lists.
class LaunchCounter {
 public:
  LaunchCounter(const TypedGraph& program, const std::vector<NodeId>& nodes, int ranks)
      : p_(program), nodes_(nodes), ranks_(ranks) {}

  LaunchTraits Count() && {
    SetKind();
    CountMemory();
    if (t_.kind == LaunchTraits::Kind::kProduct) {
      const Work work = WorkOf(p_, nodes_, ranks_);
      t_.flops = 2.0 * static_cast<double>(work.batch) * static_cast<double>(work.m) *
                 static_cast<double>(work.n) * static_cast<double>(work.k);
      t_.dtype = p_.type(p_.inputs(nodes_[0])[0]).dtype;
    } else {
      CountElements();
    }
    return t_;
  }

 private:
  bool Inside(NodeId id) const { return absl::c_binary_search(nodes_, id); }

  void SetKind() {
    const auto all = [&](auto is) {
      return absl::c_all_of(nodes_, [&](NodeId id) { return is(id) || Stores(p_, id); });
    };
    if (all([&](NodeId id) { return Communicates(p_.op(id)); }))
      t_.kind = LaunchTraits::Kind::kCollective;
    else if (all([&](NodeId id) { return Is<MatMul>(p_, id); }))
      t_.kind = LaunchTraits::Kind::kProduct;
    t_.gathers = t_.kind == LaunchTraits::Kind::kCollective &&
                 all([&](NodeId id) { return Is<AllGather>(p_, id); });
  }

  void CountMemory() {
    std::set<NodeId> read;
    for (NodeId id : nodes_) {
      for (NodeId operand : ValueOperands(p_.graph(), id)) {
        const NodeId from = p_.value(operand);
        if (!Inside(from) && read.insert(from).second)
          t_.read += BytesOnRank(p_.type(from), ranks_);
      }
      const bool is_kept = absl::c_any_of(
          p_.users()[id], [&](NodeId user) { return Inside(user) && Stores(p_, user); });
      const bool is_taken =
          absl::c_any_of(p_.users()[id], [&](NodeId user) { return !Inside(user); });
      if (Stores(p_, id) || (is_taken && !is_kept)) t_.written += BytesOnRank(p_.type(id), ranks_);
      if (Communicates(p_.op(id))) CountCollective(id);
    }
  }

  void CountCollective(NodeId id) {
    const double operand = BytesOnRank(p_.type(p_.inputs(id)[0]), ranks_),
                 result = BytesOnRank(p_.type(id), ranks_),
                 others = static_cast<double>(ranks_ - 1) / ranks_;
    ++t_.meetings;
    if (Is<AllReduce>(p_, id)) {
      t_.all_reduced += operand;
      t_.crossing += 2 * others * operand;
    } else {
      t_.flag_per_chunk = t_.flag_per_chunk || Is<AllGather>(p_, id) || Is<AllToAll>(p_, id);
      t_.crossing += others * std::max(operand, result);
    }
  }

  /// Counts a product in a kernel.
  void CountProduct(NodeId id) {
    t_.tiled = FitsTiles(p_, id);
    t_.dtype = p_.type(p_.inputs(id)[0]).dtype;
    const Shape& a = p_.type(p_.inputs(id)[0]).shape;
    const int64_t depth = a[a.size() - (As<MatMul>(p_.graph(), id)->transpose_a ? 2 : 1)].size;
    t_.flops +=
        2 * static_cast<double>(NumElements(p_.type(id).shape)) * static_cast<double>(depth);
  }

  /// Counts the values that ranks load, once for each rank whose result they are reduced to.
  void CountElements() {
    const int64_t whole = NumElements(SpaceOf(p_, nodes_).shape);
    bool on_slices = false;
    std::set<NodeId> loaded;
    for (NodeId id : nodes_) {
      on_slices = on_slices || p_.type(id).layout.sliced();
      const bool reduces = Is<ReduceScatter>(p_, id) || Is<AllReduce>(p_, id);
      if (Is<MatMul>(p_, id))
        CountProduct(id);
      else if (!Stores(p_, id) && !Communicates(p_.op(id)))
        t_.operations += 1;
      for (NodeId operand : ValueOperands(p_.graph(), id)) {
        const NodeId from = p_.value(operand);
        const TensorType& type = p_.type(from);
        if (Inside(from) || NumElements(type.shape) * 2 < whole || !loaded.insert(from).second)
          continue;
        t_.loaded += (reduces ? ranks_ : 1) * static_cast<double>(SizeOf(type.dtype));
      }
    }
    t_.elements = static_cast<double>(on_slices ? (whole + ranks_ - 1) / ranks_ : whole);
    t_.operations *= t_.elements;
  }

  const TypedGraph& p_;
  const std::vector<NodeId>& nodes_;
  const int ranks_;
  LaunchTraits t_;
};

std::vector<LaunchTraits> OfOneTensor(const Schedule& schedule, int ranks) {
  std::vector<LaunchTraits> all;
  for (const Launch& launch : schedule.launches().list)
    all.push_back(LaunchCounter(schedule.program(), launch.nodes, ranks).Count());
  for (size_t o = 0; o < schedule.overlaps().size(); ++o) {
    for (NodeId first : schedule.overlaps()[o]) {
      const int launch = schedule.launches().of[first];
      if (launch >= 0) all[launch].overlap = static_cast<int>(o);
    }
  }
  return all;
}

void AddTensors(const LaunchTraits& one, int count, LaunchTraits& sum) {
  sum.read += count * one.read;
  sum.written += count * one.written;
  sum.all_reduced += count * one.all_reduced;
  sum.crossing += count * one.crossing;
  sum.elements += count * one.elements;
  sum.operations += count * one.operations;
  sum.flops += count * one.flops;
  sum.tensors += count;
}

}  // namespace

std::vector<LaunchTraits> TraitsOfLaunches(const Schedule& schedule, int ranks) {
  if (TensorCount(schedule.graph()) == 0) return OfOneTensor(schedule, ranks);
  const TensorKinds& kinds = schedule.kinds();
  std::vector<LaunchTraits> all;
  for (size_t kind = 0; kind < kinds.first.size(); ++kind) {
    const std::vector<LaunchTraits> of_kind = OfOneTensor(schedule.of_kinds()[kind], ranks);
    for (size_t launch = 0; launch < of_kind.size(); ++launch) {
      if (launch == all.size()) {
        LaunchTraits& none = all.emplace_back(of_kind[launch]);
        none.read = none.written = none.all_reduced = none.crossing = none.elements =
            none.operations = none.flops = 0;
        none.tensors = 0;
      }
      AddTensors(of_kind[launch], kinds.count[kind], all[launch]);
    }
  }
  return all;
}

}  // namespace coconet
