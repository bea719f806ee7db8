#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

struct DeriveOptions {
  /// Operations, declarations included, above which a program counts as large.
  static constexpr int kLargeProgram = 512;

  int max_schedules = 1024;
  int large_program = kLargeProgram;
  /// For worlds of several nodes with several ranks each. Derive then also splits collectives by
  /// node (all collectives of a program in the same way), and fuses no collective over all ranks
  /// into a kernel, since a kernel reaches only the ranks of its node.
  bool by_node = false;
  /// Only the few schedules of a large program, whatever the size, and each of them with all its
  /// overlaps.
  bool few = false;
  /// Asked after every few thousand operations that were rewritten or analysed, at the same points
  /// on every machine; once it returns false, Derive returns what it has found so far, the baseline
  /// (IsBaseline) included. May be empty.
  std::function<bool()> go_on = nullptr;
};

/// Returns every schedule that the transformations reach from the program: in a deterministic
/// order, simplest first (schedules without overlaps before those with), without duplicates
/// (compared by canonical text). The first is the plain program. In every trace, graph
/// transformations come before fusions, and fusions before overlaps.
///
/// The number of schedules doubles with every place where a transformation applies. Above
/// max_schedules, Derive returns only the schedules that apply each kind of transformation in all
/// places; if these are also too many, only those that apply the kinds in one fixed order;
/// ResourceExhausted if even these are too many. Schedules whose kernels compute products tile by
/// tile, in all places where they can, come besides, as far as max_schedules go.
///
/// For a large program, Derive returns a few schedules: the plain program, and the programs that
/// result from applying each kind of graph transformation in all places, one kind after the other;
/// each of these also with its computations fused, and then also with the collectives before and
/// after them fused. It overlaps nothing. The work is bounded: a kind of transformation with too
/// many places for the size of the program is left out, the same ones on every machine.
absl::StatusOr<std::vector<Schedule>> Derive(const Graph& program,
                                             const DeriveOptions& options = {});

/// No kernel contains a collective: communication is left to whole-tensor collectives.
bool IsCommunicationUnfused(const Schedule& s);

/// Whether the schedule is what a careful user writes by hand: the program's own AllReduces as
/// library calls, and all computations that can be fused without them fused. At least one derived
/// schedule of every program is.
bool IsBaseline(const Schedule& s);

}  // namespace coconet
