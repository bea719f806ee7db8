#include "bench/compiler/layers.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/training_steps.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet::bench {

absl::StatusOr<Row> MeasureLayers(int64_t layers) {
  constexpr int kRanks = 2, kRounds = 3;
  ASSIGN_OR_RETURN(const Graph step, GptStep({.layers = layers,
                                              .width = 256,
                                              .heads = 4,
                                              .vocabulary = 1000,
                                              .sequence = 128,
                                              .examples = 4}));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(step));
  const Schedule& fused = schedules.back();
  const std::vector<Config> configs = Configs(fused, {.ranks = kRanks});
  ASSIGN_OR_RETURN(const Lowered lowered, Lower(fused, configs[0], kRanks));
  double fastest_s = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Compiler> compiler,
        MakeCompilerFor(/*arch=*/"", /*simulated=*/false, {.cache_dir = folder->path()}));
    const absl::Time begin = absl::Now();
    RETURN_IF_ERROR(compiler->Compile(lowered.source).status());
    fastest_s = std::min(fastest_s, absl::ToDoubleSeconds(absl::Now() - begin));
  }
  Row row;
  row.Set("case", std::string("gpt_step")).Set("layers", layers);
  row.Set("operations", static_cast<int64_t>(step.size()));
  row.Set("kernels", static_cast<int64_t>(lowered.kernels.size()));
  row.Set("compile_s", fastest_s);
  return row;
}

}  // namespace coconet::bench
