// Every derived schedule of programs whose tensors are cut by weights, on 1 to 8 ranks, at odd
// sizes, with configs drawn at random, against the interpreter.

#include <string>

#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"parts",
     R"(input x : f32[M, N] sliced(1, by 3+5/11)
input r : f16[M, N] sliced(0, by 0+9/10)
input v : f32[M] sliced(0, by 2+1/24)
input t : f32[L, M, N] sliced(0, by 1+4/7)
input u : f32[L, N, M] sliced(0, by 1+4/7)
input w : f32[M, M] replicated
input b : f32[N] replicated
input i : i32[M, L] replicated
state s : f32[M, N] sliced(1, by 3+5/11)
z = x * 2 + b
output a = all_to_all(x, 0)
output c = all_gather(all_to_all(z, 0) - 1)
output d = all_gather(all_to_all(r, 1))
output e = all_gather(matmul(w, x))
output f = all_gather(v * 2) + sum(w, 1)
output g = matmul(t, u)
output h = all_reduce(sum, sum(cast(f32, r), 0)) + all_gather(sum(x, 0))
output k = all_gather(softmax(cast(f32, r)))
output l = all_gather(embedding_bag(x, i, mean))
output m = all_reduce(sum, embedding_bag(r, i, sum))
output n = all_gather(transpose(x, 1, 0) + 1) + transpose(all_gather(x), 1, 0)
output p = all_reduce(sum, gather(r, i, 0))
update(s, s - softmax(z))
)",
     {{{"L", 1}, {"M", 1}, {"N", 3}}, {{"L", 6}, {"M", 7}, {"N", 129}}}},
    {"tables",
     R"(input t : bf16[R, D] sliced(1, by L)
input i : i32[B, L] replicated
input g : f32[B, D] sliced(1, by L)
state s : f32[B, D] sliced(1, by L)
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
    {"exchange",
     R"(input t : f32[R, D] sliced(1, by L)
input i : i32[B, L] replicated
state s : f32[B, D] sliced(0) each
pooled = embedding_bag(t, i, sum)
update(s, s + all_to_all(pooled, 0) * 2)
)",
     {{{"R", 9}, {"B", 5}, {"D", 32}, {"L", {3, 1, 0, 12}}},
      {{"R", {1, 5, 9}}, {"B", 33}, {"D", {64, 5, 129}}, {"L", {0, 2, 2}}}},
     {1, 2, 3, 4, 8, {4, 2}, {3, 3}, {2, 1, 2}}},
};

class WeightsTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(WeightsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunSome(GetParam());
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, WeightsTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
