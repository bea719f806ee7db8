// Computation fused with the collective that depends on it, against a careful user's loops and MPI.
// bench/README.md explains the rows.

#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/layers/fused_cases.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "dlrm, low, micro, pooling, nodes, decode, moe; default: all");
ABSL_FLAG(std::vector<std::string>, ranks, {}, "processes; default: 2 and 4, of decode 2");
ABSL_FLAG(std::vector<std::string>, dtype, (std::vector<std::string>{"f32", "bf16"}),
          "of rows and weights");
ABSL_FLAG(std::vector<std::string>, indices, (std::vector<std::string>{"uniform", "zipf"}),
          "distributions of the indices");
ABSL_FLAG(std::string, fbgemm, "",
          "the site-packages folder of a Python that has torch and fbgemm-gpu-cpu: pooling is "
          "compared with FBGEMM's, and baselines pool by it where it is faster");
ABSL_FLAG(int64_t, local_batch, 512, "samples of a rank");

namespace coconet::bench {
namespace {

/// The tables of a preset of the workload.
EmbeddingCase TablesOf(absl::string_view preset) {
  const std::vector<SizePreset> presets = EmbeddingSizes();
  const auto found =
      absl::c_find_if(presets, [&](const SizePreset& p) { return p.name == preset; });
  return {.lookups = found->sizes.at("L").sizes,
          .rows = found->sizes.at("R").sizes[0],
          .columns = found->sizes.at("D").sizes[0]};
}

/// Rows of these tables, one for each distribution of the indices.
std::vector<RowTask> TableTasks(absl::string_view name, EmbeddingCase c, int ranks, DType dtype) {
  c.dtype = dtype;
  if (IsQuick()) c.rows = 100;
  c.samples = (IsQuick() ? 8 : absl::GetFlag(FLAGS_local_batch)) * ranks;
  c.seconds = IsQuick() ? 0.2 : 5;
  c.budget_s = TuningBudget(/*usual=*/30, /*quick=*/3);
  c.fbgemm = Resolve(absl::GetFlag(FLAGS_fbgemm));
  std::vector<RowTask> tasks;
  for (const std::string& indices : absl::GetFlag(FLAGS_indices)) {
    c.zipf = indices == "zipf" ? 1.05 : 0;
    tasks.push_back(EmbeddingTask(name, c, ranks));
  }
  return tasks;
}

/// What the flags name, in the order of the rows.
absl::StatusOr<std::vector<RowTask>> AllTasks() {
  const std::vector<std::string> cases = absl::GetFlag(FLAGS_case);
  const std::vector<int> named = IntegersOf(absl::GetFlag(FLAGS_ranks)),
                         some = named.empty() ? std::vector<int>{2, 4} : named,
                         pairs = named.empty() ? std::vector<int>{2} : named,
                         two(absl::c_linear_search(pairs, 2) ? 1 : 0, 2);
  std::vector<RowTask> tasks;
  const auto add = [&](absl::string_view name, const std::vector<int>& worlds, auto tasks_of) {
    if (!cases.empty() && !absl::c_linear_search(cases, name)) return;
    for (const int ranks : worlds) {
      for (const std::string& dtype : absl::GetFlag(FLAGS_dtype))
        absl::c_move(tasks_of(ranks, *ParseDType(dtype)), std::back_inserter(tasks));
    }
  };
  const auto add_tables = [&](absl::string_view name, const std::vector<int>& worlds,
                              const EmbeddingCase& tables) {
    add(name, worlds,
        [&](int ranks, DType dtype) { return TableTasks(name, tables, ranks, dtype); });
  };
  const EmbeddingCase dlrm = TablesOf("dlrm-v2");
  EmbeddingCase low = dlrm;  // without the tables of more look-ups
  std::erase_if(low.lookups, [](int64_t lookups) { return lookups > 3; });
  add_tables("dlrm", some, dlrm);
  add_tables("low", some, low);
  add_tables("micro", some, TablesOf("micro"));
  add_tables("pooling", {1}, dlrm);
  add_tables("nodes", two, dlrm);
  add("decode", pairs, DecodeTasks);
  add("moe", two, MoeTasks);
  if (!tasks.empty()) return tasks;
  return absl::InvalidArgumentError(
      "no row has what --case, --ranks, --dtype, --indices and --experts name: nodes and moe have "
      "2 ranks, with --quick moe has 8 experts");
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const std::vector<RowTask> tasks, AllTasks());
  return MeasureRows(
      tasks, ColumnsOf("case, ranks, dtype, of|text|what, ours|time, bound|time, of bound|ratio, "
                       "baseline|time, ratio|ratio, ceiling|ratio, bar, met, variant|result"));
}

const Registered kBenchmark({.name = "fused",
                             .purpose = "measures operators that compute while they communicate",
                             .heeds = {"quick", "budget"},
                             .positive = {"ranks", "local_batch"},
                             .words = {{"case", "dlrm, low, micro, pooling, nodes, decode, moe"},
                                       {"dtype", "f32, bf16"},
                                       {"indices", "uniform, zipf"},
                                       {"experts", "8, 64"}},
                             .run = Run});

}  // namespace
}  // namespace coconet::bench
