#include <memory>
#include <utility>
#include <vector>

#include "autotune/measure/arena.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/choice.h"
#include "bench/harness/workload.h"
#include "bench/one_gpu/checks.h"
#include "bench/probe/probe_program.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int64_t kElements = 1003;

absl::StatusOr<Variant> VariantNamed(Rank& rank, const Choice& choice) {
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload("adam", DType::kF32, {{"N", kElements}}));
  ASSIGN_OR_RETURN(const ConfigSpace space, SpaceOfWorld(rank, SumOrder::kAny));
  return Chooser(program, space).One(choice);
}

absl::StatusOr<std::unique_ptr<Module>> ModuleOf(Rank& rank, const KernelSource& source) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, {.cache_dir = GetEnv().cache_dir}));
  ASSIGN_OR_RETURN(const auto paths, binaries->Compile({source}, {}));
  RETURN_IF_ERROR(paths[0].status());
  ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries->Load(*paths[0], source));
  RETURN_IF_ERROR(loaded.status);
  return std::move(loaded.module);
}

}  // namespace

absl::StatusOr<BoundVariant> BindAdam(
    Rank& rank, const Choice& choice, double timeout_s,
    const std::function<void(std::vector<std::unique_ptr<Memory>>& memory)>& replaced) {
  ASSIGN_OR_RETURN(const Variant variant, VariantNamed(rank, choice));
  ASSIGN_OR_RETURN(const Lowered lowered, LowerVariant(variant, TargetOf(rank)));
  BoundVariant bound;
  ASSIGN_OR_RETURN(bound.module, ModuleOf(rank, lowered.kernels));
  for (const Buffer& buffer : lowered.plan.buffers) {
    ASSIGN_OR_RETURN(bound.memory.emplace_back(), rank.Allocate(BytesOf(buffer), buffer.symmetric));
  }
  if (replaced) replaced(bound.memory);
  std::vector<Memory*> buffers;
  for (const std::unique_ptr<Memory>& memory : bound.memory) buffers.push_back(memory.get());
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(lowered.plan, *bound.module, buffers, timeout_s));
  return bound;
}

}  // namespace coconet::bench
