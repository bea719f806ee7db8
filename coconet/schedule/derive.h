#ifndef COCONET_SCHEDULE_DERIVE_H_
#define COCONET_SCHEDULE_DERIVE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

struct DeriveOptions {
  /// Operations, declarations included, above which a program counts as large.
  static constexpr int kLargeProgram = 512;

  int max_schedules = 1024;
  int large_program = kLargeProgram;
  /// For worlds of several nodes with several ranks each: collectives are split by node, too, all
  /// of a program alike; and kernels hold no collective over all ranks, as they do not reach those
  /// of other nodes.
  bool by_node = false;
};

/// Every schedule reachable from the program by the transformations, deterministic order, simplest
/// first (those that overlap nothing before those that do), no duplicates (compared by canonical
/// text). The first is the plain program. Graph transformations come before fusions, and these
/// before overlaps, in every trace. Where that makes more than max_schedules (every place doubles
/// them), only the schedules that make each move wherever it can be made, and where these are too
/// many, too, those of them that make the kinds of moves in one order. ResourceExhausted when even
/// these are more.
///
/// Of a large program a few: the plain program, and what comes of making each kind of graph
/// transformation wherever it can be made, one kind after the other; each of these also with its
/// computations fused as far as they can be, and then with the collectives that feed them or take
/// from them. Nothing is overlapped. The work is bounded: a kind of moves that has too many places
/// for the size of the program is left out, the same on every machine.
absl::StatusOr<std::vector<Schedule>> Derive(const Graph& program,
                                             const DeriveOptions& options = {});

/// No kernel contains a collective: communication is left to whole-tensor collectives.
bool IsCommunicationUnfused(const Schedule& s);

/// What a careful user writes by hand: the program's own AllReduces, and its computations fused as
/// far as they can be without them. At least one derived schedule of every program is.
bool IsBaseline(const Schedule& s);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_DERIVE_H_
