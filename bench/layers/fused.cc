// Computation fused with the collective that depends on it, against a careful user's loops and MPI.
// README.md in this folder explains the rows.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/embedding/embedding.h"
#include "bench/harness/launch.h"
#include "bench/harness/user.h"
#include "bench/layers/decode.h"
#include "bench/layers/moe.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"
#include "jit/compile/temp_dir.h"

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
ABSL_FLAG(std::vector<std::string>, experts, (std::vector<std::string>{"8", "64"}),
          "numbers of experts of moe");
ABSL_FLAG(int64_t, local_batch, 512, "samples of a rank");

namespace coconet::bench {
namespace {

struct Tables {
  absl::string_view name;
  std::vector<int64_t> lookups;
  int64_t rows = 0, columns = 0;
};

/// The tables of the workload's presets; "low" is DLRM v2 without the tables of more than 3
/// look-ups.
std::vector<Tables> AllTables() {
  std::vector<Tables> all;
  for (const SizePreset& preset : EmbeddingSizes()) {
    const Tables tables{.name = preset.name == "dlrm-v2" ? "dlrm" : "micro",
                        .lookups = preset.sizes.at("L").sizes,
                        .rows = preset.sizes.at("R").sizes[0],
                        .columns = preset.sizes.at("D").sizes[0]};
    if (preset.name == "small") continue;
    all.push_back(tables);
    if (all.back().name != "dlrm") continue;
    Tables& low = all.emplace_back(tables);
    low.name = "low";
    std::erase_if(low.lookups, [](int64_t lookups) { return lookups > 3; });
  }
  return all;
}

/// A row's choices.
struct Wanted {
  Tables tables;
  int ranks = 0;
  DType dtype = DType::kF32;
  std::string indices;
  EmbeddingCase::Work work = EmbeddingCase::Work::kExchanged;
  std::optional<DecodeCase> decode = std::nullopt;  // instead of tables, as the next
  std::optional<MoeCase> moe = std::nullopt;
};

/// The row's "case".
absl::string_view NameOf(const Wanted& wanted) {
  switch (wanted.work) {
    case EmbeddingCase::Work::kPooling:
      return "pooling";
    case EmbeddingCase::Work::kNodes:
    case EmbeddingCase::Work::kNodesParts:
      return "nodes";
    case EmbeddingCase::Work::kExchanged:
      break;
  }
  return wanted.tables.name;
}

/// Numbers of ranks and types that the flags name; `usual` where they name no ranks.
absl::StatusOr<std::vector<std::pair<int, DType>>> Worlds(std::vector<std::string> usual) {
  std::vector<std::pair<int, DType>> worlds;
  const std::vector<std::string> named = absl::GetFlag(FLAGS_ranks);
  for (const std::string& ranks_text : named.empty() ? usual : named) {
    for (const std::string& dtype : absl::GetFlag(FLAGS_dtype)) {
      int ranks = 0;
      const std::optional<DType> type = ParseDType(dtype);
      if (!absl::SimpleAtoi(ranks_text, &ranks) || ranks < 1 ||
          (type != DType::kF32 && type != DType::kBF16))
        return absl::InvalidArgumentError("want --ranks from 1 on, --dtype f32 or bf16");
      worlds.emplace_back(ranks, *type);
    }
  }
  return worlds;
}

/// What the flags name, in the order of the rows.
absl::StatusOr<std::vector<Wanted>> AllWanted() {
  const std::vector<std::string> names = absl::GetFlag(FLAGS_case);
  const std::vector<Tables> all = AllTables();
  for (const std::string& name : names) {
    if (name != "decode" && name != "pooling" && name != "nodes" && name != "moe" &&
        absl::c_none_of(all, [&](const Tables& tables) { return tables.name == name; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--case: want dlrm, low, micro, pooling, nodes, decode or moe, have ", name));
    }
  }
  const auto is_named = [&](absl::string_view name) {
    return names.empty() || absl::c_linear_search(names, name);
  };
  ASSIGN_OR_RETURN(const auto worlds, Worlds({"2", "4"}));
  std::vector<Wanted> wanted;
  for (const std::string& indices : absl::GetFlag(FLAGS_indices)) {
    if (indices != "uniform" && indices != "zipf")
      return absl::InvalidArgumentError("want --indices uniform or zipf");
  }
  for (const Tables& tables : all) {
    if (!is_named(tables.name)) continue;
    for (const auto& [ranks, dtype] : worlds) {
      for (const std::string& indices : absl::GetFlag(FLAGS_indices))
        wanted.push_back({tables, ranks, dtype, indices});
    }
  }
  for (const auto& [ranks, dtype] : worlds) {
    if (!is_named("pooling") || ranks != worlds[0].first) continue;  // once per type
    for (const std::string& indices : absl::GetFlag(FLAGS_indices))
      wanted.push_back({all[0], 1, dtype, indices, EmbeddingCase::Work::kPooling});
  }
  ASSIGN_OR_RETURN(const auto pairs, Worlds({"2"}));
  for (const auto& [ranks, dtype] : pairs) {
    if (!is_named("nodes") || ranks != 2) continue;
    for (const std::string& indices : absl::GetFlag(FLAGS_indices))
      wanted.push_back({all[0], ranks, dtype, indices, EmbeddingCase::Work::kNodes});
  }
  for (const auto& [ranks, dtype] : pairs) {
    if (!is_named("decode")) break;
    for (const DecodeCase& c : DecodeCases(dtype))
      wanted.push_back({.tables = {.name = "decode", .lookups = {}},
                        .ranks = ranks,
                        .dtype = dtype,
                        .indices = "",
                        .decode = c});
  }
  for (const auto& [ranks, dtype] : pairs) {
    if (!is_named("moe") || ranks != 2) continue;
    for (const MoeCase& c : MoeCases(dtype)) {
      if (!absl::c_linear_search(absl::GetFlag(FLAGS_experts), absl::StrCat(c.experts))) continue;
      wanted.push_back({.tables = {.name = "moe", .lookups = {}},
                        .ranks = ranks,
                        .dtype = dtype,
                        .indices = "",
                        .moe = c});
    }
  }
  return wanted;
}

absl::StatusOr<Row> MeasuredRow(const Wanted& wanted, const std::string& scratch) {
  if (wanted.decode.has_value()) return DecodeRow(*wanted.decode, wanted.ranks, scratch);
  if (wanted.moe.has_value()) return MoeRow(*wanted.moe, scratch);
  const Tables& tables = wanted.tables;
  return EmbeddingRow(
      NameOf(wanted),
      {.work = wanted.work,
       .dtype = wanted.dtype,
       .lookups = tables.lookups,
       .rows = IsQuick() ? 100 : tables.rows,
       .columns = tables.columns,
       .samples = (IsQuick() ? 8 : absl::GetFlag(FLAGS_local_batch)) * wanted.ranks,
       .zipf = wanted.indices == "zipf" ? 1.05 : 0,
       .seconds = IsQuick() ? 0.2 : 5,
       .budget_s = TuningBudget(/*usual=*/30, /*quick=*/3),
       .fbgemm = absl::GetFlag(FLAGS_fbgemm).empty() ? "" : Resolve(absl::GetFlag(FLAGS_fbgemm))},
      wanted.ranks, scratch);
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const std::vector<Wanted> all, AllWanted());
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::vector<Row> rows;
  for (const Wanted& wanted : all) {
    absl::FPrintF(stderr, "%s, %d ranks, %s%s\n", NameOf(wanted), wanted.ranks, Name(wanted.dtype),
                  wanted.decode.has_value() ? absl::StrCat(", ", wanted.decode->tokens,
                                                           " tokens of ", wanted.decode->hidden)
                  : wanted.moe.has_value()  ? absl::StrCat(", ", wanted.moe->experts, " experts")
                                            : absl::StrCat(", ", wanted.indices));
    ASSIGN_OR_RETURN(rows.emplace_back(), MeasuredRow(wanted, scratch->path()));
  }
  return Show(rows,
              ColumnsOf("case, ranks, dtype, of|text|what, ours|time, bound|time, of bound|ratio, "
                        "baseline|time, ratio|ratio, ceiling|ratio, bar, met, variant|result"));
}

const Registered kBenchmark(
    {.name = "fused",
     .usage = "see bench/README.md\n\n  fused [--case=dlrm,low,micro,pooling,nodes,decode,moe] "
              "[--ranks=2,4] [--fbgemm=DIR] [--json=FILE] [--quick]",
     .run = Run});

}  // namespace
}  // namespace coconet::bench
