#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "coconet/ir/op_row.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// Operations of one kind in a launch.
struct OutlinedWork {
  enum class Kind : uint8_t {
    kMatMul,
    kScatter,
    kReduceScatter,
    kAllReduce,
    kCompute,
    kFold,  // of tensors to scalars
    kAllGather,
    kSend,
    kAllToAll,
    kBroadcast,
    kReduceTo,
  };
  /// The operand of a reduction, or the result of a gather, if the schedule has several: a tensor,
  /// or the tensors that a scalar is computed from.
  struct Operand {
    bool is_scalar = false;
    std::vector<std::string> tensors;
    auto operator<=>(const Operand&) const = default;
  };

  Kind kind = Kind::kCompute;
  Span span = Span::kAll;
  bool sliced = false;         // a send of slices
  std::vector<int> dims = {};  // of the slices of a ReduceScatter or Send; none of vectors
  std::vector<Operand> operands = {};
  auto operator<=>(const OutlinedWork&) const = default;
};

/// A kernel, or successive launches of one operation each, all of one kind.
struct WorkGroup {
  bool is_kernel = false;
  std::vector<OutlinedWork> works = {};  // in the order that a kernel does them
  auto operator<=>(const WorkGroup&) const = default;
};

/// The launches of a schedule, without node numbers: two schedules of one program share the parts
/// of their outlines in which they do the same.
struct Outline {
  /// In execution order. One of several groups is an overlap.
  std::vector<std::vector<WorkGroup>> steps;
  std::vector<std::string> sliced_states;
  auto operator<=>(const Outline&) const = default;
};
Outline OutlineOf(const Schedule& s);

/// An outline in words, e.g. "AR; C", "RS; fuse(C); AG p; slice m v", "fuse(RS, C, AG)".
std::string Describe(const Schedule& s);

/// Describes the kernel of these nodes, or one node with a store of its result: "fuse(RS, C, AG)",
/// "AR". Names no tensors or dimensions.
std::string DescribeLaunch(const Graph& g, const std::vector<NodeId>& nodes);

}  // namespace coconet
