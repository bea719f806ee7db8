#include "tests/mutation/planted/mutation_cases.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "tests/harness/program_texts.h"

namespace coconet {
namespace {

constexpr char kSum[] = R"(coconet 1
program sum
input g : f32[N] local
state p : f32[N] replicated
update(p, all_reduce(sum, g))
)";
constexpr char kGather[] = R"(coconet 1
program gather
input x : f32[N] sliced(0)
output y = abs(all_gather(x))
)";
constexpr char kRows[] = R"(coconet 1
program rows
input x : f32[B, H] local
state r : f32[B, H] replicated
X = all_reduce(sum, x)
update(r, 0.5 * r + X * rsqrt(1 + mean(X * X, 1)))
)";
constexpr char kEpilogue[] = R"(coconet 1
program epilogue
input a : f32[M, K] local
input b : f32[K, N] local
input r : f32[M, N] replicated
output c = abs(all_reduce(sum, matmul(a, b)) + r)
)";
constexpr char kHalfEpilogue[] = R"(coconet 1
program epilogue
input a : bf16[M, K] local
input b : bf16[K, N] local
input r : bf16[M, N] replicated
output c = abs(all_reduce(sum, matmul(a, b)) + r)
)";

constexpr char kFused[] = R"(coconet 1
program fused
input a : bf16[M, K] sliced(0)
input w : bf16[K, N] replicated
input b : bf16[N] replicated
input r : bf16[M, N] replicated
output c = max(matmul(a, w) + b, 0) + r
)";

constexpr char kFusedF32[] = R"(coconet 1
program fused
input a : f32[M, K] replicated
input w : f32[K, N] sliced(1)
input r : f32[M, N] replicated
output c = matmul(a, w) * r
)";

constexpr char kActivation[] = R"(coconet 1
program activation
input a : bf16[M, K] local
input w : bf16[K, N] local
input b : bf16[N] replicated
output c = abs(all_reduce(sum, max(cast(f32, matmul(a, w) + b), 0)))
)";

constexpr char kActivationF32[] = R"(coconet 1
program activation
input a : f32[M, K] local
input w : f32[K, N] local
input b : f32[N] replicated
output c = all_reduce(sum, matmul(a, w) * b)
)";

constexpr char kGatheredActivation[] = R"(coconet 1
program activation
input a : bf16[M, K] sliced(0)
input w : bf16[K, N] sliced(1)
input b : bf16[N] replicated
output c = max(matmul(all_gather(abs(a)), w) + b, 0)
)";

constexpr char kFusedGather[] = R"(coconet 1
program fused
input a : f16[M, K] replicated
input w : f16[K, N] sliced(1)
input r : f16[M, N] replicated
output c = all_gather(matmul(a, w) * r)
)";

constexpr char kFusedExchange[] = R"(coconet 1
program fused
input a : bf16[M, K] sliced(0)
input w : bf16[K, N] replicated
input r : bf16[M, N] replicated
output c = all_to_all(matmul(a, w) * r, 1)
)";

constexpr char kGrouped[] = R"(coconet 1
program grouped
input a : bf16[E, G, M, K] replicated
input w : bf16[E, 1, K, N] replicated
input v : bf16[G, N, 24] replicated
input n : i32[E, G] replicated
output c = keep_rows(matmul(max(matmul(a, w), 0), v), n)
)";

constexpr char kBytes[] = R"(coconet 1
program bytes
input a : f8e4m3[M, K] replicated
input w : f8e5m2[N, K] replicated
input b : f32[N] replicated
output c = cast(bf16, matmul(a, w, transpose_b) * 0.5 + b)
)";

constexpr char kScaled[] = R"(coconet 1
program scaled
input a : f8e4m3[M, K] replicated
input w : f8e4m3[N, K] replicated
input x : f32[MB, KB] replicated
input y : f32[N, KB] replicated
input b : f32[N] replicated
output c = cast(bf16, matmul(a, w, x, y, transpose_b) * 0.5 + b)
)";

constexpr char kGathered[] = R"(coconet 1
program gathered
input a : bf16[M, K] sliced(0)
input w : bf16[K, N] sliced(1)
output c = matmul(all_gather(abs(a)), w)
)";

constexpr char kBias[] = R"(coconet 1
program bias
input x : f32[B, H] local
input b : f32[H] replicated
state r : f32[B, H] replicated
update(r, r + all_reduce(sum, x) + b)
)";
constexpr char kQuotients[] = R"(coconet 1
program quotients
input a : f32[N] local
input b : f32[N] replicated
s = all_reduce(sum, a)
output q = s / b
output r = sqrt(relu(s))
)";

constexpr char kInFlight[] =
    "generated vec=4 chunk=2048 blocks=1 stream=none one-shot=pull threads=32 unroll=8";
constexpr char kPull[] = "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=64";

}  // namespace

const std::vector<MutationCase>& MutationCases() {
  static const auto* cases = [] {
    auto* all = new std::vector<MutationCase>{
        {"pull", "adam", {{"N", 93}}, "fuse(AR, C)", kPull, 3},
        {"in-flight", "adam_bf16", {{"N", 2507}}, "fuse(AR, C)", kInFlight, 2},
        {"in-flight-f16", "momentum_f16", {{"N", 2507}}, "fuse(AR, C)", kInFlight, 2},
        {"bytes", kBytesProgram, {{"N", 2507}}, "fuse(AR, C)", kInFlight, 2},
        {"wide-packs",
         "momentum",
         {{"N", 333}},
         "fuse(AR, C)",
         "generated vec=8 chunk=64 blocks=2 stream=none one-shot=pull threads=32",
         2},
        {"bias",
         kBias,
         {{"B", 5}, {"H", 70}},
         "fuse(AR, C)",
         "generated vec=4 chunk=128 blocks=2 stream=none one-shot=pull threads=32",
         2},
        {"quotients", kQuotients, {{"N", 333}}, "fuse(AR, C)", kPull, 2},
        {"staged",
         "adam_bf16",
         {{"N", 333}},
         "fuse(AR, C)",
         "generated vec=4 chunk=64 blocks=2 stream=none one-shot=staged threads=64",
         3},
        {"ll",
         "adam_bf16",
         {{"N", 93}},
         "fuse(AR, C)",
         "generated vec=4 chunk=64 blocks=2 stream=none one-shot=ll threads=64",
         3},
        {"two-shot", "adam", {{"N", 333}}, "fuse(RS, AG, C)", kPull, 3},
        {"slices", "adam", {{"N", 333}}, "fuse(RS, C, AG); slice m v", kPull, 3},
        {"ring",
         "adam",
         {{"N", 333}},
         "fuse(RS, C, AG); slice m v",
         "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=64 ring=1",
         4},
        {"bulk",
         kSum,
         {{"N", 60000}},  // 30 parts, in a ring of 11 stages
         "RS; AG p",
         "generated vec=4 chunk=16384 blocks=1 stream=none one-shot=pull threads=96 bulk=1",
         2,
         1},
        {"bulk-read",
         kGather,
         {{"N", 20000}},
         "AG; C",
         "generated vec=4 chunk=4096 blocks=2 stream=none one-shot=pull threads=96 bulk=1",
         2},
        {"bulk-odd",
         kSum,
         {{"N", 37}},
         "RS; AG p",
         "generated vec=4 chunk=64 blocks=1 stream=none one-shot=pull threads=96 bulk=1",
         2,
         1},
        {"rows",
         kRows,
         {{"B", 5}, {"H", 70}},
         "fuse(AR, C)",
         "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=96",
         2},
        {"folds",
         kNormProgram,
         {{"N", 333}},
         "fuse(RS, C, fold, AR, C, AG)",
         "generated vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=96",
         3},
        {"list",
         "clip",
         {{"N", std::vector<int64_t>{100, 3, 131}}},
         "fuse(RS, C, fold, AR, C, AG); slice m v",
         kPull,
         2},
        {"tiles",
         kEpilogue,
         {{"M", 90}, {"N", 70}, {"K", 40}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=256 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=64",
         2,
         2},
        {"half-tiles",
         kHalfEpilogue,
         {{"M", 70}, {"N", 72}, {"K", 104}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=256 blocks=1 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=64",
         1,
         1},
        {"odd-tiles",
         kHalfEpilogue,
         {{"M", 70}, {"N", 67}, {"K", 41}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=4096 blocks=1 stream=none one-shot=pull threads=64 beside=3 "
         "tiles=64",
         1},
        {"wide-tiles",
         kHalfEpilogue,
         {{"M", 150}, {"N", 136}, {"K", 200}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=4096 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3",
         1,
         1},
        {"tma-tiles",
         kHalfEpilogue,
         {{"M", 150}, {"N", 136}, {"K", 200}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=4096 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3 tma=1",
         1,
         2},
        {"fused-tiles",
         kFused,
         {{"M", 300}, {"N", 136}, {"K", 72}},
         "fuse(MM, C)",
         "generated vec=2 chunk=4096 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"fused-f32",
         kFusedF32,
         {{"M", 70}, {"N", 201}, {"K", 40}},
         "fuse(MM, C)",
         "generated vec=2 chunk=4096 blocks=2 stream=none one-shot=pull threads=64 tiles=64",
         2,
         1},
        {"fused-gather",
         kFusedGather,
         {{"M", 160}, {"N", 304}, {"K", 16}},
         "fuse(MM, C, AG)",
         "generated vec=16 chunk=64 blocks=3 stream=none one-shot=pull threads=32 tiles=256 "
         "tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"fused-beside",
         kActivation,
         {{"M", 150}, {"N", 136}, {"K", 72}},
         "ol(fuse(MM, C), fuse(RS[flat], C, AG))",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"fused-beside-f32",
         kActivationF32,
         {{"M", 140}, {"N", 70}, {"K", 40}},
         "ol(fuse(MM, C), fuse(AR))",
         "generated vec=2 chunk=64 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=64",
         2,
         1},
        {"fused-gathered",
         kGatheredActivation,
         {{"M", 300}, {"N", 144}, {"K", 72}},
         "ol(fuse(C, AG), fuse(MM, C))",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"fused-exchange",
         kFusedExchange,
         {{"M", 150}, {"N", 136}, {"K", 72}},
         "fuse(MM, C, A2A)",
         "generated vec=2 chunk=4096 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3",
         2,
         1},
        {"awaited-tiles",
         kHalfEpilogue,
         {{"M", 300}, {"N", 136}, {"K", 72}},
         "fuse(MM, RS[flat], C, AG)",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"grouped-tiles",
         kGrouped,
         {{"E", 2}, {"G", 3}, {"M", 150}, {"N", 72}, {"K", 72}},
         "C; fuse(MM, C); fuse(MM, C)",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3 tma=1",
         1,
         1},
        {"grouped-copies",
         kGrouped,
         {{"E", 2}, {"G", 3}, {"M", 150}, {"N", 72}, {"K", 72}},
         "C; fuse(MM, C); fuse(MM, C)",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3",
         1,
         1},
        {"tiles-of-bytes",
         kBytes,
         {{"M", 150}, {"N", 136}, {"K", 336}},
         "fuse(MM, C)",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3 tma=1",
         1,
         1},
        {"scaled-tiles",
         kScaled,
         {{"M", 150}, {"N", 136}, {"K", 384}, {"MB", 50}, {"KB", 3}},
         "fuse(MM, C)",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 tiles=128 "
         "tile-columns=64 stages=3 tma=1",
         1,
         1},
        {"gathered-tiles",
         kGathered,
         {{"M", 150}, {"N", 144}, {"K", 200}},
         "ol(fuse(C, AG), MM); C",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3 tma=1",
         2,
         1},
        {"gathered-copies",
         kGathered,
         {{"M", 150}, {"N", 144}, {"K", 200}},
         "ol(fuse(C, AG), MM); C",
         "generated vec=2 chunk=512 blocks=2 stream=none one-shot=pull threads=64 beside=2 "
         "tiles=128 tile-columns=64 stages=3",
         2,
         1},
        {"stages",
         "pipeline",
         {{"B", 1}, {"S", 5}, {"H", 33}},
         "fuse(AR, C, send)",
         kPull,
         {2, 1, 2}},
        {"nodes",
         "momentum",
         {{"N", 333}},
         "RS(node); AR(across); fuse(C, AG(node))",
         kPull,
         {4, 2}},
        {"all-to-all",
         kExchangeProgram,
         {{"B", 2}, {"S", 5}, {"H", 21}},
         "C; A2A; C",
         "library vec=4 chunk=64 blocks=2 stream=none one-shot=pull threads=64",
         2},
    };
    for (const MutationCase& at : RowCases()) all->push_back(at);
    return all;
  }();
  return *cases;
}

absl::StatusOr<Graph> ProgramOf(const MutationCase& at) {
  absl::string_view name = at.program;
  if (absl::StartsWith(name, "coconet 1\n")) {
    ASSIGN_OR_RETURN(const Graph symbolic, Parse(name));
    ASSIGN_OR_RETURN(const Graph bound, BindSizes(symbolic, at.sizes));
    return Canonicalize(bound).graph;
  }
  DType dtype = DType::kF32;
  if (absl::ConsumeSuffix(&name, "_bf16")) dtype = DType::kBF16;
  if (absl::ConsumeSuffix(&name, "_f16")) dtype = DType::kF16;
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(std::string(name), {.dtype = dtype}));
  return BindSizes(symbolic, at.sizes);
}

absl::StatusOr<MutationCase> FindMutationCase(absl::string_view name) {
  std::vector<std::string> names;
  for (const auto* cases : {&MutationCases(), &HostCases()}) {
    for (const MutationCase& at : *cases) {
      if (at.name == name) return at;
      names.emplace_back(at.name);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("case ", name, ": want one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<CaseVariant> VariantOf(const MutationCase& at) {
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(at));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules,
                   Derive(program, {.by_node = at.target.nodes > 1}));
  const auto schedule =
      absl::c_find_if(schedules, [&](const Schedule& s) { return Describe(s) == at.schedule; });
  if (schedule == schedules.end()) {
    std::vector<std::string> known;
    for (const Schedule& s : schedules) known.push_back(Describe(s));
    return absl::NotFoundError(absl::StrCat(at.name, ": no schedule '", at.schedule, "'; have\n",
                                            absl::StrJoin(known, "\n")));
  }
  ASSIGN_OR_RETURN(const Config config, ParseConfig(at.config));
  const ConfigSpace space{
      .ranks = at.target.ranks, .nodes = at.target.nodes, .stages_apart = at.target.stages_apart};
  RETURN_IF_ERROR(WithContext(Validate(config, *schedule, space), at.name));
  return CaseVariant{program, *schedule, config};
}

}  // namespace coconet
