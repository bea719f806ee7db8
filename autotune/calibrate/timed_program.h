#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/cost/work.h"
#include "autotune/runner/binaries.h"
#include "coconet/ir/typed_graph.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// Collective. The plainest config of a world's kernels: packs as wide as the widest vectors of all
/// ranks.
absl::StatusOr<Config> PlainConfig(Rank& rank);

/// A program that is lowered to one launch.
struct TimedProgram {
  TypedGraph program;  // of the schedule
  Work work;
  Lowered lowered;
};

/// Fuses all that a kernel can compute. FailedPrecondition if the program is then not one launch,
/// naming what is apart, or why. `program` is bound.
absl::StatusOr<TimedProgram> MakeTimedProgram(const Graph& program, const Config& config,
                                              const Target& target);

/// Rows of the smallest table that the program takes rows of by index; a few if there is none.
int64_t RowsOf(const TypedGraph& program);

/// Collective: compiles the kernels of all programs as one source, which the compiler may split
/// (CompilerOptions::part_kernels), and loads them as one module. Ranks pass equal programs.
/// Cancelled if `watch` stops it.
absl::StatusOr<std::shared_ptr<Module>> CompilePrograms(Binaries& binaries,
                                                        absl::Span<const TimedProgram> programs,
                                                        const CompileWatch& watch = {});

}  // namespace coconet
