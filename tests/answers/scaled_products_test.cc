// Products of 8-bit floats that GPUs' libraries do not take, most with scales per block, as
// operations_test tries other programs.

#include <string>

#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"of_any_operands",
     R"(input x : f8e4m3[M, K] local
input w : f8e5m2[N, K] replicated
input v : f8e4m3[K, N] sliced(1)
input s : f32[]
output y = cast(bf16, s * all_reduce(sum, matmul(x, w, transpose_b)))
output z = matmul(x, v) + 0
output u = cast(f8e4m3, 0.125 * matmul(x, x, transpose_a))
)",
     {{{"M", 1}, {"K", 3}, {"N", 5}},
      {{"M", 33}, {"K", 40}, {"N", 70}},
      {{"M", 129}, {"K", 17}, {"N", 24}}}},
    {"rows_and_blocks",
     R"(input x : f8e4m3[M, K] local
input x.s : f32[M, L] local
input w : f8e5m2[N, K] replicated
input w.s : f32[P, L] replicated
input v : f8e4m3[K, N] replicated
input v.s : f32[1, 1] replicated
input b : f32[N] replicated
output y = all_reduce(sum, matmul(x, w, x.s, w.s, transpose_b)) + b
output z = all_reduce(max, matmul(x, v, x.s, v.s))
output u = all_reduce(sum, matmul(x, x, x.s, x.s, transpose_a))
output t = cast(f16, matmul(w, v, w.s, v.s, transpose_a, transpose_b))
)",
     {{{"M", 1}, {"K", 1}, {"L", 1}, {"N", 1}, {"P", 1}},
      {{"M", 33}, {"K", 70}, {"L", 5}, {"N", 70}, {"P", 7}},
      {{"M", 129}, {"K", 18}, {"L", 18}, {"N", 18}, {"P", 3}},
      {{"M", 0}, {"K", 4}, {"L", 2}, {"N", 4}, {"P", 2}},
      {{"M", 3}, {"K", 0}, {"L", 0}, {"N", 0}, {"P", 1}}},
     {1, 2, 3}},
    {"batches",
     R"(input x : f8e4m3[B, H, M, K] local
input of_rows : f32[B, 1, M, L] local
input of_matrices : f32[G, H, 1, L] replicated
input of_batches : f32[G, 1, 1, L] replicated
input of_groups : f32[B, J, 1, 1] replicated
input w : f8e5m2[H, K, N] replicated
input w.s : f32[J, L, 1] replicated
input v : f8e4m3[1, N, K] replicated
input v.s : f32[1, P, L] replicated
output a = all_reduce(sum, matmul(x, w, of_rows, w.s))
output b = all_reduce(sum, matmul(x, v, of_rows, v.s, transpose_b))
output c = all_reduce(sum, matmul(x, w, of_matrices, w.s))
output d = all_reduce(sum, matmul(x, v, of_matrices, v.s, transpose_b))
output e = all_reduce(sum, matmul(x, w, of_batches, w.s))
output f = all_reduce(sum, matmul(x, v, of_batches, v.s, transpose_b))
output g = all_reduce(sum, matmul(x, x, of_groups, of_rows, transpose_a))
output h = all_reduce(sum, matmul(x, v, of_groups, v.s, transpose_b))
)",
     {{{"B", 2}, {"G", 1}, {"H", 4}, {"J", 2}, {"M", 3}, {"K", 6}, {"L", 2}, {"N", 5}, {"P", 5}},
      {{"B", 4}, {"G", 2}, {"H", 3}, {"J", 1}, {"M", 9}, {"K", 5}, {"L", 1}, {"N", 6}, {"P", 2}},
      {{"B", 6}, {"G", 3}, {"H", 6}, {"J", 3}, {"M", 1}, {"K", 9}, {"L", 9}, {"N", 4}, {"P", 1}}},
     {1, 2, 3}},
    {"slices",
     R"(input x : f8e4m3[M, K] sliced(0)
input x.s : f32[M, L] sliced(0)
input k : f8e4m3[M, K] sliced(1)
input k.s : f32[1, L] sliced(1)
input w : f8e5m2[K, N] sliced(0)
input w.s : f32[L, P] sliced(0)
input v : f8e4m3[N, K] sliced(0)
input v.s : f32[P, 1] sliced(0)
input u : f8e5m2[K, N] local
input u.s : f32[1, P] local
input r : f8e4m3[M, K] replicated
input r.s : f32[1, L] local
output a = all_gather(matmul(x, u, x.s, u.s))
output b = all_reduce(sum, matmul(k, w, k.s, w.s))
output c = all_reduce(sum, matmul(w, k, w.s, k.s, transpose_a, transpose_b))
output d = all_gather(matmul(r, v, r.s, v.s, transpose_b))
)",
     {{{"M", 5}, {"K", 30}, {"L", 6}, {"N", 36}, {"P", 12}},
      {{"M", 1}, {"K", 6}, {"L", 6}, {"N", 12}, {"P", 6}},
      {{"M", 40}, {"K", 192}, {"L", 6}, {"N", 384}, {"P", 6}}},
     {1, 2, 3}},
    {"slices_of_matrices",
     R"(input x : f8e4m3[E, M, K] sliced(0)
input x.s : f32[F, M, 1] sliced(0)
input w : f8e4m3[E, K, N] sliced(0)
input w.s : f32[1, L, P] replicated
input v : f8e5m2[K, N] replicated
input v.s : f32[L, 1] replicated
output a = all_gather(matmul(x, w, x.s, w.s))
output b = all_gather(matmul(x, v, x.s, v.s))
output c = all_reduce(sum, sum(matmul(x, x, x.s, x.s, transpose_a), 0))
)",
     {{{"E", 12}, {"F", 6}, {"M", 3}, {"K", 10}, {"L", 2}, {"N", 9}, {"P", 3}},
      {{"E", 6}, {"F", 6}, {"M", 7}, {"K", 4}, {"L", 4}, {"N", 5}, {"P", 1}},
      {{"E", 1}, {"F", 1}, {"M", 2}, {"K", 4}, {"L", 1}, {"N", 5}, {"P", 5}}},
     {1, 2, 3}},
    {"experts",
     R"(input x : f8e4m3[E, G, C, H] sliced(1)
input x.s : f32[E, G, C, L] sliced(1)
input w : f8e4m3[E, 1, K, H] sliced(0)
input w.s : f32[E, 1, P, L] sliced(0)
input v : f8e5m2[K, H] replicated
input v.s : f32[P, 1] replicated
of_x = all_to_all(x.s, 0)
c = matmul(all_to_all(x, 0), w, of_x, w.s, transpose_b)
output y = all_gather(tanh(all_to_all(c, 1)))
z = all_to_all(matmul(x, v, x.s, v.s, transpose_b), 0)
output z = all_gather(tanh(z))
)",
     {{{"E", 6}, {"G", 5}, {"C", 3}, {"H", 8}, {"L", 2}, {"K", 6}, {"P", 3}},
      {{"E", 3}, {"G", 2}, {"C", 70}, {"H", 12}, {"L", 1}, {"K", 5}, {"P", 1}}},
     {1, 2, 3}},
    {"scales_of_rows",
     R"(input x : f32[M, K] sliced(0)
input g : f32[M, K] local
input w : f8e4m3[N, K] replicated
input w.s : f32[P, L] replicated
state n : i32[E] replicated
input e : f8e4m3[E, C, K] replicated
input e.s : f32[E, C, L] replicated
all = all_gather(x)
s = (amax(abs(all), 1) + 0.125) * 0.0078125
output y = relu(matmul(cast(f8e4m3, all / s), w, s, w.s, transpose_b))
t = (amax(abs(g), 1) + 0.5) / 64
output z = relu(all_reduce(sum, matmul(cast(f8e5m2, g / t), w, t, w.s, transpose_b)))
output r = keep_rows(matmul(e, w, e.s, w.s, transpose_b) * 2, n)
)",
     {{{"M", 9}, {"K", 12}, {"L", 3}, {"N", 10}, {"P", 5}, {"E", 3}, {"C", 4}},
      {{"M", 70}, {"K", 64}, {"L", 2}, {"N", 33}, {"P", 1}, {"E", 2}, {"C", 19}}},
     {1, 2, 3}},
};

class ScaledProductsTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(ScaledProductsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunSome(GetParam());
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, ScaledProductsTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
