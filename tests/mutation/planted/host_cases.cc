#include "tests/harness/program_texts.h"
#include "tests/mutation/planted/mutation_cases.h"

namespace coconet {
namespace {

constexpr char kRange[] = R"(coconet 1
program range
input g : f32[N] local
input h : f32[N] local
output low = all_reduce(min, g)
output high = all_reduce(max, h)
)";
constexpr char kGuarded[] = R"(coconet 1
program guarded
input g : f32[N] local
input d : f32[N] replicated
state p : f32[N] replicated
G = all_reduce(sum, g)
q = min(max(G / d, -0.75), 1.5)
update(p, select(q > 0, relu(p) * sqrt(q), sign(p) * abs(q)))
)";
constexpr char kIntegers[] = R"(coconet 1
program integers
input g : i32[N] local
input h : i32[N] replicated
input x : f32[N] replicated
output y = cast(u8, all_reduce(sum, g) / h) + cast(u8, 100 * x)
output z = cast(i32, 4 * x) - all_reduce(max, g)
)";
constexpr char kBits[] = R"(coconet 1
program bits
input g : i32[N] local
input h : i32[N] replicated
input u : u32[N] replicated
output y = shift_left(all_reduce(sum, g), 8 * h)
output z = shift_right_logical(all_reduce(max, g), 3) + bit_cast(i32, u / bit_not(u * 0))
)";
constexpr char kFunctions[] = R"(coconet 1
program functions
input x : f32[N] local
output y = sigmoid(all_reduce(max, x)) + 0
output z = log(all_reduce(min, x))
)";
constexpr char kOldState[] = R"(coconet 1
program old_state
input g : f32[N] local
state p : f32[N] replicated
update(p, p + all_reduce(sum, g))
output q = p * all_reduce(max, g)
)";
constexpr char kTransposed[] = R"(coconet 1
program transposed
input a : f32[K, M] sliced(0)
input b : f32[N, K] sliced(1)
output c = all_reduce(sum, matmul(a, b, transpose_a, transpose_b))
)";
constexpr char kColumns[] = R"(coconet 1
program columns
input a : f32[M, K] local
input b : f32[N, K] local
input r : f32[M, N] replicated
output c = abs(all_reduce(sum, matmul(a, b, transpose_b)) + r)
)";
constexpr char kHalves[] = R"(coconet 1
program halves
input g : f32[N] local
output y = cast(f16, all_reduce(sum, g))
)";
constexpr char kRows[] = R"(coconet 1
program rows
input x : f32[B, H] local
X = all_reduce(sum, x)
output y = X - amax(X, 1)
)";
constexpr char kLongFold[] = R"(coconet 1
program fold
input g : f32[N] local
output n = sum(all_reduce(max, g * g))
)";
constexpr char kEmbedding[] = R"(coconet 1
program embedding
input t : f32[V, H] sliced(0)
input i : i32[S] replicated
output y = all_reduce(sum, gather(t, i, 0))
)";
constexpr char kLongProduct[] = R"(coconet 1
program product
input a : f16[M, K] sliced(1)
input b : f16[K, N] sliced(0)
output c = all_reduce(sum, matmul(a, b))
)";
constexpr char kSoftmax[] = R"(coconet 1
program softmax
input x : f32[B, H] local
X = all_reduce(sum, x)
e = exp(X - amax(X, 1))
output y = e / sum(e, 1)
)";

constexpr char kPull[] = "generated vec=8 chunk=1024 blocks=2 stream=none one-shot=pull";
constexpr char kStaged[] = "generated vec=8 chunk=1024 blocks=2 stream=none one-shot=staged";
constexpr char kMessages[] = "generated vec=8 chunk=1024 blocks=2 stream=none one-shot=ll";
constexpr char kRing[] = "generated vec=8 chunk=1024 blocks=2 stream=none one-shot=pull ring=1";
constexpr char kLibrary[] = "library vec=8 chunk=1024 blocks=1 stream=none one-shot=pull";

}  // namespace

const std::vector<MutationCase>& HostCases() {
  static const auto* cases = [] {
    auto* all = new std::vector<MutationCase>{
        {"host-adam", "adam", {{"N", 20011}}, "fuse(AR, C)", kPull, 3},
        {"host-staged", "adam_bf16", {{"N", 9001}}, "fuse(AR, C)", kStaged, 3},
        {"host-messages", "momentum", {{"N", 9001}}, "fuse(AR, C)", kMessages, 3},
        {"host-halves", kHalves, {{"N", 9001}}, "fuse(AR, C)", kPull, 3},
        {"host-bytes", kBytesProgram, {{"N", 9001}}, "fuse(AR, C)", kPull, 3},
        {"host-functions", kFunctions, {{"N", 5001}}, "fuse(AR x, C); fuse(AR x, C)", kPull, 2},
        {"host-library-fused", "adam", {{"N", 20011}}, "fuse(RS, AG); fuse(C)", kPull, 2},
        {"host-old-state", kOldState, {{"N", 5001}}, "AR g g; C", kLibrary, 2},
        {"host-transposed", kTransposed, {{"M", 70}, {"N", 50}, {"K", 90}}, "MM; AR", kLibrary, 2},
        {"host-columns",
         kColumns,
         {{"M", 50}, {"N", 37}, {"K", 24}},
         "ol(MM, RS[0], fuse(C), AG c)",
         "library vec=8 chunk=8 blocks=2 stream=none one-shot=pull pieces=3 columns=1",
         3},
        {"host-rows", kRows, {{"B", 200}, {"H", 6}}, "fuse(AR, C)", kPull, 2},
        {"host-even", "sgd", {{"N", 20480}}, "fuse(AR, C)", kPull, 2},
        {"host-odd-dropout",
         "attention",
         {{"B", 1}, {"S", 37}, {"H", 41}, {"K", 64}},
         "MM; fuse(RS[flat], C, AG)",
         kPull,
         2},
        {"host-long-fold",
         kLongFold,
         {{"N", 400003}},
         "C; fuse(RS, fold, AR)",
         "generated vec=1 chunk=1024 blocks=1 stream=none one-shot=pull",
         2},
        {"host-norm", kNormProgram, {{"N", 400003}}, "fuse(RS, C, fold, AR, C, AG)", kPull, 2},
        {"host-two-shot", "sgd", {{"N", 20011}}, "fuse(RS, AG, C)", kPull, 4},
        {"host-slices", "adamw", {{"N", 20011}}, "fuse(RS, C, AG); slice m v", kPull, 3},
        {"host-streams",
         "adamw",
         {{"N", 20011}},
         "fuse(RS, C, AG); slice m v",
         "generated vec=8 chunk=1024 blocks=2 stream=all one-shot=pull",
         2},
        {"host-ring", "adam", {{"N", 20011}}, "fuse(RS, C, AG); slice m v", kRing, 3},
        {"host-lamb",
         "lamb",
         {{"N", std::vector<int64_t>{3001, 7, 1200, 3001}}},
         "fuse(RS, C, fold, AR); fuse(C, AG); slice m v",
         kPull,
         2},
        {"host-clip",
         "clip",
         {{"N", std::vector<int64_t>{3001, 7, 1200, 3001}}},
         "fuse(RS, C, fold, AR, C, AG); slice m v",
         kPull,
         3},
        {"host-groups",
         "groups_bf16",
         {{"N", std::vector<int64_t>{3001, 7, 1200, 64}}},
         "fuse(RS, C, AG); slice w m v",
         kPull,
         2},
        {"host-loss-scale",
         "loss_scale",
         {{"N", std::vector<int64_t>{3001, 7, 1200}}},
         "fuse(RS, C, fold, AR, C, AG); C; slice m v",
         kPull,
         2},
        {"host-stochastic", "stochastic", {{"N", 9001}}, "fuse(RS, C, AG); slice m v", kPull, 3},
        {"host-library", "adam", {{"N", 20011}}, "RS; fuse(C); AG p; slice m v", kLibrary, 3},
        {"host-pieces",
         "momentum",
         {{"N", 20011}},
         "ol(RS, fuse(C), AG p); slice m",
         "library vec=8 chunk=1024 blocks=1 stream=none one-shot=pull pieces=4",
         2},
        {"host-attention",
         "attention",
         {{"B", 1}, {"S", 37}, {"H", 48}, {"K", 96}},
         "MM; fuse(RS[1], C, AG)",
         kPull,
         2},
        {"host-mlp",
         "mlp",
         {{"B", 1}, {"S", 70}, {"H", 96}, {"K", 200}},
         "ol(MM, fuse(RS[flat], C, AG))",
         "generated vec=8 chunk=256 blocks=1 stream=none one-shot=pull beside=1 tiles=64",
         2},
        {"host-sequence",
         "sequence",
         {{"B", 1}, {"S", 33}, {"H", 40}, {"K", 72}},
         "fuse(C, AG); MM; C; MM; fuse(RS[1], C)",
         kPull,
         2},
        {"host-pipeline",
         "pipeline",
         {{"B", 2}, {"S", 33}, {"H", 40}},
         "fuse(AR, C, send)",
         kPull,
         {2, 1, 2}},
        {"host-nodes",
         "momentum",
         {{"N", 9001}},
         "RS(node); AR(across); fuse(C, AG(node))",
         kPull,
         {4, 2}},
        {"host-all-to-all",
         kExchangeProgram,
         {{"B", 3}, {"S", 33}, {"H", 70}},
         "C; A2A; C",
         kLibrary,
         3},
        {"host-rooted",
         kRooted,
         {{"N", 5001}},
         "reduce; C; broadcast; fuse(C, fold, AR); reduce; fuse(C); C",
         kLibrary,
         3},
        {"host-range", kRange, {{"N", 5001}}, "fuse(AR h); fuse(RS g, AG)", kPull, 3},
        {"host-guarded", kGuarded, {{"N", 5001}}, "fuse(AR, C)", kPull, 2},
        {"host-integers", kIntegers, {{"N", 5001}}, "fuse(AR g, C); fuse(AR g, C)", kPull, 2},
        {"host-bits", kBits, {{"N", 5001}}, "fuse(AR g, C); fuse(AR g, C)", kPull, 2},
        {"host-embedding", kEmbedding, {{"V", 101}, {"H", 40}, {"S", 70}}, "C; fuse(AR)", kPull, 2},
        {"host-product",
         kLongProduct,
         {{"M", 65}, {"N", 66}, {"K", 8192}},
         "ol(MM, fuse(RS[flat], AG))",
         "generated vec=8 chunk=256 blocks=1 stream=none one-shot=pull beside=1 tiles=64",
         2},
        {"host-softmax", kSoftmax, {{"B", 50}, {"H", 120}}, "fuse(RS[0], C, AG)", kPull, 2},
        {"host-large",
         "momentum",
         {{"N", 5000011}},
         "fuse(RS, C, AG); slice m",
         "generated vec=8 chunk=4096 blocks=2 stream=none one-shot=pull",
         2},
    };
    for (const MutationCase& at : HostRowCases()) all->push_back(at);
    return all;
  }();
  return *cases;
}

}  // namespace coconet
