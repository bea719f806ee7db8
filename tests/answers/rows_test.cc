// Every derived schedule of programs that take rows by index, or add to them, as operations_test
// does of others.

#include <string>

#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"rows_by_index",
     R"(input t : f32[V, D] replicated
input h : f16[V, D] sliced(0)
input c : bf16[V, D] sliced(1)
input n : i32[V] replicated
input i : i32[B, S] replicated
input j : i32[B, S] sliced(1)
input l : i32[S] local
input one : i32[]
state r : f32[B, S, D] replicated
x = cast(f32, all_reduce(sum, gather(h, i, 0)))
update(r, r * 0.5 + gather(t, abs(i), 0) + x)
output a = all_gather(gather(t, j, 0) * 2)
output b = all_gather(gather(c, i, 0))
output d = all_reduce(max, gather(t, l, 1))
output e = gather(n, gather(n, i, 0) - 1, 0) + i
output f = gather(t, one + 1, 0)
output g = all_gather(gather(n, j + 1, 0) * j)
output k = gather(t, iota(i32, t, 0) - iota(i32, t, 1), 1)
)",
     {{{"V", 1}, {"D", 3}, {"B", 1}, {"S", 1}},
      {{"V", 9}, {"D", 32}, {"B", 3}, {"S", 7}},
      {{"V", 33}, {"D", 5}, {"B", 2}, {"S", 65}}}},
    {"bags",
     R"(input t : f32[V, D] replicated
input h : f16[V, D] sliced(0)
input c : bf16[V, D] sliced(1)
input i : i32[B, L] replicated
input j : i32[B, L] sliced(0)
input k : i32[B, L] local
input w : f32[B, L] sliced(0)
input u : f32[B, L] replicated
state r : f32[B, D]
input x : f32[B, D] local
update(r, 0.5 * r + embedding_bag(t, abs(i), mean) + all_reduce(sum, x))
output a = all_gather(2 * embedding_bag(t, j, w, sum))
output b = all_reduce(sum, embedding_bag(h, i, mean))
output d = all_gather(embedding_bag(c, i, u, sum))
output e = all_reduce(max, embedding_bag(t, k, sum))
)",
     {{{"V", 1}, {"D", 3}, {"B", 1}, {"L", 1}},
      {{"V", 9}, {"D", 64}, {"B", 7}, {"L", 3}},
      {{"V", 33}, {"D", 40}, {"B", 65}, {"L", 2}}}},
    {"bags_of_several_tables",
     R"(input t : f32[A, V, D] local
input h : bf16[A, V, D] replicated
input i : i32[A, B, L] replicated
input w : f32[A, B, L] replicated
output a = embedding_bag(t, i, mean)
output b = embedding_bag(h, i, w, sum)
)",
     // Tables of one row lie together as one longer row.
     {{{"A", 2}, {"V", 1}, {"D", 31}, {"B", 1}, {"L", 1}},
      {{"A", 5}, {"V", 1}, {"D", 65}, {"B", 3}, {"L", 3}},
      {{"A", 3}, {"V", 9}, {"D", 40}, {"B", 7}, {"L", 2}}}},
    {"ragged_bags",
     R"(input t : bf16[V, D] replicated
input h : f32[V, D] sliced(0)
input c : f16[V, D] sliced(1)
input i : i32[M] replicated
input o : i32[B] replicated
input w : f32[M] replicated
input k : i32[M] local
input q : i32[B] local
state r : f32[B, D]
input x : f32[B, D] local
update(r, r + embedding_bag(t, i, o, w, sum) - all_reduce(sum, x))
output a = embedding_bag(t, i, o, mean)
output b = reduce_scatter(sum, embedding_bag(h, i, o, mean), 0)
output d = all_gather(embedding_bag(c, i, o, sum))
output e = all_reduce(sum, embedding_bag(t, k, q, sum))
)",
     {{{"V", 1}, {"D", 3}, {"B", 1}, {"M", 1}},
      {{"V", 9}, {"D", 64}, {"B", 7}, {"M", 31}},
      {{"V", 33}, {"D", 40}, {"B", 65}, {"M", 100}}}},
    {"tables",
     R"(input t : f16[T, V, D] sliced(0)
input i : i32[T, B, L] sliced(0)
input j : i32[T, B, L] replicated
input w : f32[T, B, L] sliced(1)
input k : i32[T, B, L] sliced(1)
input s : f32[T, V, D] replicated
output a = all_to_all(embedding_bag(t, i, sum), 1)
output b = all_gather(embedding_bag(t, j, mean) * 3)
output c = all_gather(embedding_bag(s, k, w, sum))
)",
     {{{"T", 1}, {"V", 3}, {"D", 3}, {"B", 2}, {"L", 1}},
      {{"T", 5}, {"V", 9}, {"D", 32}, {"B", 7}, {"L", 3}}}},
    {"no_bags",
     R"(input t : f32[V, D] replicated
input u : f32[V, D] sliced(0)
input i : i32[B, L] replicated
input m : i32[M] replicated
input o : i32[B] replicated
output a = embedding_bag(t, i, sum)
output b = all_reduce(sum, embedding_bag(u, i, mean)) + 1
output c = embedding_bag(t, m, o, mean)
)",
     {{{"V", 0}, {"D", 3}, {"B", 5}, {"L", 2}, {"M", 4}},
      {{"V", 4}, {"D", 0}, {"B", 3}, {"L", 2}, {"M", 4}},
      {{"V", 4}, {"D", 8}, {"B", 0}, {"L", 2}, {"M", 4}},
      {{"V", 4}, {"D", 8}, {"B", 3}, {"L", 0}, {"M", 0}}}},
    // A library skips rows of matrices that lie as they are, each with a count of its own.
    {"rows_of_products_in_use",
     R"(input a : f32[E, K, M] replicated
input w : f32[E, K, N] replicated
input n : i32[E] replicated
input x : bf16[E, G, M, K] replicated
input v : bf16[K, N] replicated
input u : f32[E, M, K] sliced(0)
input y : f32[E, K, N] sliced(0)
input k : i32[E] sliced(0)
output b = keep_rows(matmul(a, w, transpose_a), n)
output c = keep_rows(matmul(x, v), n)
output d = keep_rows(matmul(matmul(a, w, transpose_a), w, transpose_b), n)
output e = all_gather(keep_rows(matmul(u, y), k))
)",
     {{{"E", 1}, {"G", 3}, {"M", 5}, {"K", 1}, {"N", 9}},
      {{"E", 4}, {"G", 2}, {"M", 9}, {"K", 32}, {"N", 5}}}},
    {"rows_of_own_tables",
     R"(input t : f32[V, D] local
input h : bf16[V, D] local
input j : i32[B, L] sliced(1)
input k : i32[B, L] sliced(0)
state r : f32[B, D]
update(r, r - all_gather(embedding_bag(h, k, mean)))
output a = all_gather(gather(t, j, 0) * 2)
output b = all_gather(gather(h, j, 1))
)",
     {{{"V", 1}, {"D", 3}, {"B", 1}, {"L", 1}}, {{"V", 9}, {"D", 64}, {"B", 7}, {"L", 9}}}},
    {"added_rows",
     R"(input u : bf16[E, C, D] sliced(0)
input i : i32[E, C] sliced(0)
input w : f32[E, C] sliced(0)
input v : f32[E, C, D] sliced(2)
input j : i32[E, C] replicated
input l : f16[C, D] local
input m : i32[C] local
input k : f32[1, D] sliced(0)
state s : f32[V, D]
update(s, s * 0.5 + all_reduce(sum, scatter_add(u, i, w, [V, D])))
output a = all_gather(scatter_add(v, j, [V, D]) + 1)
output b = scatter_add(l, m, [V, D])
output d = scatter_add(cast(f32, j), j, [V])
output e = all_gather(scatter_add(k, const(2, i32), [V, 1, D]))
)",
     {{{"V", 1}, {"D", 3}, {"E", 1}, {"C", 1}},
      {{"V", 9}, {"D", 64}, {"E", 3}, {"C", 37}},
      {{"V", 70}, {"D", 21}, {"E", 9}, {"C", 5}},
      {{"V", 5}, {"D", 0}, {"E", 2}, {"C", 5}},
      {{"V", 5}, {"D", 8}, {"E", 0}, {"C", 3}}}},
    {"joined",
     R"(input a : f16[B, N] local
input b : f16[B, M] replicated
state s : f32[B, N + M]
state t : f32[2*B, N] replicated
x = all_reduce(sum, cast(f32, a))
update(s, s * 0.5 + concat(x, cast(f32, b), 1))
update(t, t + concat(x, x * x, 0))
output c = all_reduce(max, concat(b, a * 2, b, 1))
)",
     {{{"B", 1}, {"N", 1}, {"M", 1}},
      {{"B", 3}, {"N", 32}, {"M", 17}},
      {{"B", 17}, {"N", 7}, {"M", 0}},
      {{"B", 4}, {"N", 0}, {"M", 3}}}},
    {"joined_slices",
     R"(input x : bf16[B, N] replicated
input u : f32[B, N, D] sliced(0)
input v : f32[B, M, D] sliced(0)
input w : f32[B, N, D] sliced(2)
input l : f32[B, M, D] local
output d = concat(u, v, u + 1, 1) * 0.5
output e = all_gather(concat(l, w, w * 2, 1))
output f = all_gather(softmax(concat(v, u, 1)))
output g = concat(reshape(x, [N, B]), transpose(x, 1, 0), 1)
output h = norm(concat(x, x, x * 2, x, x, 0))
output k = all_to_all(concat(u, v, 1), 1)
)",
     {{{"B", 1}, {"N", 1}, {"M", 1}, {"D", 1}},
      {{"B", 3}, {"N", 32}, {"M", 17}, {"D", 16}},
      {{"B", 17}, {"N", 7}, {"M", 0}, {"D", 65}},
      {{"B", 4}, {"N", 0}, {"M", 3}, {"D", 33}}}},
    {"tables_joined",
     R"(input t : f32[V, D] sliced(1)
input h : bf16[R, D] sliced(1)
input e : f32[R, 8] replicated
input i : i32[B, L] replicated
input j : i32[B, K] replicated
input k : i32[B, K] sliced(0)
input dense : f32[B, 5] sliced(0)
x = all_to_all(embedding_bag(t, i, sum), 0)
y = all_to_all(embedding_bag(h, j, mean), 0)
output pooled = concat(dense, x, y, embedding_bag(e, k, sum), 1)
output both = all_to_all(concat(embedding_bag(t, i, sum), embedding_bag(h, j, sum), 0), 0)
output columns = all_to_all(concat(x * 0.5, dense, 1), 1)
)",
     {{{"V", 1}, {"R", 2}, {"D", 3}, {"B", 1}, {"L", 1}, {"K", 2}},
      {{"V", 9}, {"R", 33}, {"D", 64}, {"B", 7}, {"L", 3}, {"K", 1}},
      {{"V", 33}, {"R", 5}, {"D", 21}, {"B", 33}, {"L", 2}, {"K", 5}}}},
    {"groups",
     R"(input x : bf16[T, H] local
input token : i32[E, G, C] sliced(1)
input count : i32[E, G] sliced(1)
input weight : f32[E, G, C] sliced(1)
input up : bf16[E, 1, H, F] sliced(0)
input down : bf16[E, 1, H, F] sliced(0)
sent = keep_rows(gather(x, token, 0), count)
rows = keep_rows(all_to_all(sent, 0), all_to_all(count, 0))
back = all_to_all(matmul(gelu(matmul(rows, up)), down, transpose_b), 1)
output y = scatter_add(back, token, weight, [T, H])
)",
     {{{"T", 3}, {"H", 4}, {"E", 1}, {"G", 1}, {"C", 2}, {"F", 3}},
      {{"T", 17}, {"H", 32}, {"E", 5}, {"G", 8}, {"C", 9}, {"F", 40}},
      {{"T", 0}, {"H", 8}, {"E", 4}, {"G", 3}, {"C", 1}, {"F", 16}}}},
    {"embedding",
     R"(input table : bf16[V, D] sliced(0)
input tokens : i32[S] replicated
input positions : bf16[S, D] replicated
input seed : i64[]
state y : bf16[S, D]
x = all_reduce(sum, gather(table, tokens, 0)) + positions
update(y, rms_norm(dropout(x, seed, 0.1), 1e-3))
)",
     {{{"V", 2}, {"D", 8}, {"S", 3}}, {{"V", 17}, {"D", 48}, {"S", 33}}},
     {1, 2, 3, 4, 8, {4, 2}, {2, 1, 2}}},
    {"no_rows",
     R"(input t : f32[V, D] replicated
input u : f32[V, D] sliced(0)
input i : i32[S] replicated
output a = gather(t, i, 0)
output b = all_reduce(sum, gather(u, i, 0)) + 1
output c = gather(t, i, 1)
)",
     {{{"V", 0}, {"D", 3}, {"S", 5}},
      {{"V", 4}, {"D", 0}, {"S", 3}},
      {{"V", 4}, {"D", 8}, {"S", 0}}}},
};

class RowsTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(RowsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunSome(GetParam());
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, RowsTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
