// What programs do with indices, offsets and counts that are none: as docs/language.md says, the
// same under every schedule and on every backend, and never with a store outside of a buffer.

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"rows",
     R"(input t : f32[V, D] replicated
input h : bf16[V, D] sliced(0)
input wild.i : i32[S] replicated
input wild.j : i32[S] sliced(0)
input wild.n : i32[V] replicated
state s : f32[S, D]
update(s, s * 0.5 + gather(t, wild.i, 0))
output a = all_gather(gather(t, wild.j, 0) * 2)
output b = all_reduce(sum, gather(h, wild.i, 0))
output c = gather(wild.n, wild.i, 0)
output d = gather(t, gather(wild.n, wild.i, 0), 0)
)",
     {{{"V", 9}, {"D", 32}, {"S", 33}}, {{"V", 0}, {"D", 5}, {"S", 7}}}},
    {"bags",
     R"(input t : f32[V, D] replicated
input h : bf16[V, D] sliced(0)
input c : f16[V, D] sliced(1)
input wild.i : i32[M] replicated
input wild.o : i32[B] replicated
input wild.f : i32[B, 3] sliced(0)
input w : f32[M] replicated
output a = embedding_bag(t, wild.i, wild.o, mean)
output b = reduce_scatter(sum, embedding_bag(h, wild.i, wild.o, sum), 0)
output d = all_to_all(embedding_bag(c, wild.i, wild.o, w, sum), 0)
output e = all_gather(embedding_bag(t, wild.f, sum))
)",
     {{{"V", 9}, {"D", 64}, {"B", 17}, {"M", 40}},
      {{"V", 0}, {"D", 8}, {"B", 5}, {"M", 6}},
      {{"V", 5}, {"D", 8}, {"B", 5}, {"M", 0}}}},
    {"sums_by_index",
     R"(input u : f32[E, C, D] sliced(0)
input v : bf16[S, D] replicated
input wild.i : i32[E, C] sliced(0)
input wild.j : i32[S] replicated
input w : f32[E, C] sliced(0)
state s : f32[V, D]
update(s, s * 0.5 + all_reduce(sum, scatter_add(u, wild.i, w, [V, D])))
output a = scatter_add(v, wild.j, [V, D]) * 2
)",
     {{{"V", 9}, {"D", 24}, {"E", 5}, {"C", 7}, {"S", 37}},
      {{"V", 0}, {"D", 3}, {"E", 2}, {"C", 2}, {"S", 4}},
      {{"V", 7}, {"D", 3}, {"E", 2}, {"C", 0}, {"S", 0}}}},
    {"one_place",
     R"(input x : f32[D] replicated
input y : f32[D] local
input wild.i : i32[] replicated
input w : f32[]
output a = scatter_add(x, wild.i + 1, [V, D])
output b = scatter_add(x * 2, const(3, i32), const(2, f32), [V, D])
output c = all_reduce(sum, scatter_add(y, rank(i32), w + cast(f32, rank(i32)), [V, D]))
output d = grad(sum(gather(x, wild.i + 1, 0) * 3), x)
)",
     {{{"V", 6}, {"D", 5}}, {{"V", 1}, {"D", 33}}}},
    {"rows_in_use",
     R"(input x : f32[E, G, C, H] sliced(0)
input wild.n : i32[E, G] sliced(0)
input y : bf16[C, H] local
input wild.m : i32[] local
output a = all_to_all(keep_rows(x, wild.n), 1)
output b = all_reduce(sum, keep_rows(y, wild.m))
output none = keep_rows(x, wild.n * 0 - 1)
output all = keep_rows(x, wild.n * 0 + 100000)
)",
     {{{"E", 4}, {"G", 3}, {"C", 5}, {"H", 17}}, {{"E", 3}, {"G", 2}, {"C", 0}, {"H", 4}}}},
    // Experts that have places for fewer tokens than want them, in all ways at once.
    {"experts",
     R"(input x : f32[T, H] local
input wild.token : i32[E, G, C] sliced(1)
input wild.count : i32[E, G] sliced(1)
input weight : f32[E, G, C] sliced(1)
input up : f32[E, 1, H, F] sliced(0)
n = all_to_all(keep_rows(gather(x, wild.token, 0), wild.count), 0)
z = all_to_all(matmul(gelu(matmul(n, up)), up, transpose_b), 1)
output y = scatter_add(z, wild.token, weight, [T, H])
)",
     {{{"T", 7}, {"H", 16}, {"E", 5}, {"G", 4}, {"C", 3}, {"F", 8}}}},
    {"one_expert",
     R"(input x : f32[T, H] local
input token : i32[E, G, C] sliced(1)
input weight : f32[E, G, C] sliced(1)
input up : f32[E, 1, H, F] sliced(0)
expert = iota(i32, token, 0)
first = select(expert < 1, abs(token), -1)
count = 1000 * cast(i32, sum(expert, 2) < 1)
n = all_to_all(keep_rows(gather(x, first, 0), reshape(count, [E, G])), 0)
z = all_to_all(matmul(gelu(matmul(n, up)), up, transpose_b), 1)
output y = scatter_add(z, first, weight, [T, H])
nothing = keep_rows(gather(x, token, 0), reshape(count * 0, [E, G]))
output none = all_to_all(matmul(all_to_all(nothing, 0), up), 1)
)",
     {{{"T", 7}, {"H", 16}, {"E", 5}, {"G", 4}, {"C", 3}, {"F", 8}}}},
    {"tables_of_a_list",
     R"(input t : f32[R, 24] sliced(1, by L)
input wild : i32[B, L] replicated
input wild.u : i32[N] replicated each
input u : f32[N, 24] replicated each
output p = all_to_all(embedding_bag(t, wild, mean), 0)
output q = scatter_add(u, wild.u, [R, 24])
)",
     {{{"R", {9, 0, 5}}, {"L", {3, 1, 0}}, {"B", 7}, {"N", 5}}}},
};

class BadIndicesTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(BadIndicesTest, DoWhatTheLanguageSays) { RunSome(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, BadIndicesTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

/// Each rank has other values of what a program says is replicated.
StepData Disagreeing(int rank, uint64_t seed) {
  return [=](const std::string& name, DType dtype, int step, int /*rank*/, int64_t index) {
    return TestValue(Mix(seed, static_cast<uint64_t>(rank)), name, dtype, step, rank, index);
  };
}

TEST(RanksThatDisagree, StoreNothingOutsideOfTheirBuffers) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch(
      TheMachine(),
      [&](Rank& rank, const Module& kernels, const LoweredVariant& variant, uint64_t of_run,
          int steps, Tally& tally) -> absl::Status {
        ASSIGN_OR_RETURN(const StepResults found,
                         RunSteps(rank, kernels, variant, Disagreeing(rank.rank(), of_run), steps));
        tally.variants += rank.rank() == 0;
        return rank.exchange().Agree(found.memory);
      });
  ScheduleSampler sampler({2, 3, 8}, random, batch);
  for (const SampledProgram& program : kPrograms) {
    const absl::StatusOr<Graph> symbolic =
        Parse(absl::StrCat("coconet 1\nprogram ", program.name, "\n", program.statements));
    ASSERT_TRUE(symbolic.ok()) << symbolic.status();
    const absl::StatusOr<Graph> bound = BindSizes(*symbolic, program.sizes[0]);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const absl::Status added = sampler.AddSome(*bound);
    ASSERT_TRUE(added.ok()) << added;
  }
  EXPECT_EQ(batch.Run(seed, /*steps=*/2), "") << "COCONET_SEED=" << seed;
  EXPECT_GT(batch.tally().variants, 0);
}

}  // namespace
}  // namespace coconet
