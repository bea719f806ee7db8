#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/target.h"

namespace coconet {

// Programs of cases both on GPUs and on CPUs.
inline constexpr char kNormProgram[] = R"(coconet 1
program norm
input g : f32[N] local
state p : f32[N] replicated
G = all_reduce(sum, g)
update(p, p - G / (1 + norm(G)))
)";
inline constexpr char kBytesProgram[] = R"(coconet 1
program bytes
input g : f32[N] local
input w : f8e4m3[N] replicated
G = all_reduce(sum, g)
output y = cast(f8e4m3, G + cast(f32, w))
output z = cast(f8e5m2, select(w > 0, G, const(inf, f32)))
)";

/// A variant that mistakes are planted in (mutations.h), on a small world. Together the cases use
/// every way in which kernels exchange tensors. Each runs several steps, so that epochs move on and
/// halves of buffers are used again.
struct MutationCase {
  const char* name;
  const char* program;  // a workload's name, followed by "_bf16" or "_f16" for tensors of that
                        // type; else a program's text
  Sizes sizes;
  const char* schedule;  // as Describe says
  const char* config;
  Target target = 1;
  int steps = 3;
};
const std::vector<MutationCase>& MutationCases();  // on simulated GPUs
const std::vector<MutationCase>& HostCases();      // on CPUs; `steps` does not count there
// The cases of each that take rows by index, add to them, multiply few rows, or exchange slices.
std::vector<MutationCase> RowCases();
std::vector<MutationCase> HostRowCases();
/// One of either. InvalidArgument, with all names, where there is none of that name.
absl::StatusOr<MutationCase> FindMutationCase(absl::string_view name);

/// The case's program, bound.
absl::StatusOr<Graph> ProgramOf(const MutationCase& at);

/// What a case runs.
struct CaseVariant {
  Graph program;  // bound, as written
  Schedule schedule;
  Config config;
};
/// Fails where the program has no such schedule, naming those that it has, or the config is not
/// legal for it.
absl::StatusOr<CaseVariant> VariantOf(const MutationCase& at);

}  // namespace coconet
