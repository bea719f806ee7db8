// Every derived schedule of programs whose tensors lie whole on one rank each, on 1 to 8 ranks, at
// odd sizes, with configs drawn at random, against the interpreter.

#include <string>

#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"of_one_owner",
     R"(input x : f32[M, N] owned(after 3, 2)
input b : f32[N] replicated
input c : f32[M, 1] owned(after 3, 2)
input w : f32[N, M] replicated
input i : i32[M, L] replicated
input g : f32[M, N] local
state s : f32[M, N] owned(after 3, 2)
z = x * c + b
r = reduce_scatter(sum, g, owned(after 3, 2))
output a = all_gather(softmax(z)) + 1
output d = all_gather(matmul(matmul(x, x, transpose_b), r))
output e = all_gather(matmul(transpose(x, 1, 0), x))
output f = all_gather(mean(z, 0) + b)
output h = all_gather(gather(x, i, 0)[:, :, 0:1])
output k = embedding_bag(x, i, mean)
output l = all_gather(reshape(x, [N, M]) * w)
output m = all_reduce(max, amax(x))
output n = x * sum(x * g)
output o = shard(matmul(w, w, transpose_b), owned(after 3, 2))
output p = all_gather(argmax(i32, x, 1))
update(s, s * 0.5 + r / norm(r))
)",
     {{{"L", 1}, {"M", 1}, {"N", 3}}, {{"L", 3}, {"M", 7}, {"N", 129}}}},
    {"sums_of_an_owner",
     R"(input x : f32[M, N] owned
input i : i32[M] replicated
input w : f32[M] owned
input o : i32[M] owned
input l : f32[M, 2] replicated
state s : f32[L, N] owned
update(s, s + scatter_add(x, i, w, [L, N]))
output j = all_gather(concat(l, x, reshape(w, [M, 1]), l, 1))
output y = all_gather(scatter_add(x * 2, i, [L, N]))
output z = all_gather(scatter_add(x, o, [L, N]))
)",
     {{{"L", 4}, {"M", 7}, {"N", 33}}}},
    {"exchange",
     R"(input x : f32[M, N] owned(after 5)
input v : f32[M] owned(after 5)
input y : f32[M, N] sliced(1)
input t : f32[M, L, N] sliced(1)
state s : f32[M, N] owned(after 5)
update(s, s + all_to_all(y * 2, owned(after 5)))
output a = all_to_all(x * 3, 0) + 1
output b = all_to_all(x, 1)
output c = all_to_all(v, 0) * 2
output d = all_to_all(t, owned(after 5, 1)) + 1
)",
     {{{"L", 5}, {"M", 1}, {"N", 3}}, {{"L", 2}, {"M", 7}, {"N", 129}}},
     {1, 2, 3, 4, 5, 8, {4, 2}, {3, 3}, {2, 1, 2}}},
    {"muon",
     R"(input g : f32[R, D] local
state m : f32[R, D] owned(by W)
state p : f32[R, D] replicated
input lr : f32[]
b = update(m, 0.95 * m + reduce_scatter(sum, g, owned(by W)) / world)
x = b / (norm(b) + 0.001)
a = matmul(x, x, transpose_b)
o = 3.4445 * x + matmul(-4.775 * a + 2.0315 * matmul(a, a), x)
update(p, p - lr * all_gather(o))
)",
     {{{"R", {5, 9, 1}}, {"D", {17, 3, 65}}, {"W", {3, 100, 1}}},
      {{"R", {7}}, {"D", {33}}, {"W", {0}}},
      {{"R", {0, 4, 3, 3, 3, 2}}, {"D", {8, 8, 9, 9, 9, 5}}, {"W", {9, 0, 2, 2, 2, 1}}}},
     {1, 2, 3, 4, 5, {4, 2}, {3, 3}, {2, 1, 2}}},
    {"tables",
     R"(input t : bf16[R, D] owned(by L)
input i : i32[B, L] replicated
input g : f32[B, D] owned(by L)
state s : f32[B, D] owned(by L)
pooled = embedding_bag(t, i, sum)
output y = all_to_all(pooled, 0)
update(s, s * 0.5 + g * pooled)
z = pooled + g
output whole = all_gather(z)
output n = all_reduce(sum, total(sum(z)))
)",
     {{{"R", 9}, {"B", 5}, {"D", 32}, {"L", {3, 1, 0, 12}}},
      {{"R", {1, 5, 9}}, {"B", 33}, {"D", {64, 5, 129}}, {"L", {0, 2, 2}}},
      {{"R", {7, 8}}, {"B", 6}, {"D", 1}, {"L", {0, 0}}}}},
    {"gradients_of_bags",
     R"(input g : f32[B, D] sliced(0) each
input i : i32[B, L] replicated
state t : f32[R, D] owned(by L)
rows = reshape(all_to_all(g, owned(by L)), [B, 1, D])
update(t, t - 0.5 * scatter_add(rows, i, [R, D]))
)",
     {{{"R", {9, 0, 65, 5}}, {"B", 7}, {"D", 32}, {"L", {3, 1, 0, 12}}}}},
    {"gradients_of_tables",
     R"(input g : f32[R, D] sliced(0) each
state t : f32[R, D] owned(by L)
update(t, t - 0.5 * all_to_all(g, owned(by L)))
output y = all_to_all(t * 2, 1)
)",
     {{{"R", 9}, {"D", 32}, {"L", {3, 1, 0, 12}}},
      {{"R", {1, 5, 9}}, {"D", {64, 5, 129}}, {"L", {0, 2, 2}}}},
     {1, 2, 3, 4, 5, 8, {4, 2}, {3, 3}, {2, 1, 2}}},
};

class OwnersTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(OwnersTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunSome(GetParam());
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, OwnersTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
