#pragma once

namespace coconet {

// Programs with collectives that no workload has, for tests.

/// Two AllToAlls. Symbols A, S and D; A and S are multiples of the number of ranks.
inline constexpr char kExchange[] = R"(coconet 1
program exchange
input x : f32[A, S, D] sliced(0)
state y : f32[A, S, D] sliced(1)
h = all_to_all(x * 2, 2)
update(y, all_to_all(h * 2, 1) + y)
)";

/// Reductions to a rank, and a broadcast from it. Symbol N.
inline constexpr char kRooted[] = R"(coconet 1
program rooted
input g : f32[N] local
state s : f32[N] local
x = reduce(sum, g, 0)
y = broadcast(x / 2, 0)
update(s, s + reduce(max, y * g, 0))
output total = norm(y)
)";

/// Rows by index: sums of updates by index, of slices of places and of slices of columns; products
/// of few rows; bags of rows of which each rank has some, of fixed and of ragged length.
inline constexpr char kScatterProgram[] = R"(coconet 1
program scatter
input u : bf16[E, C, D] sliced(1)
input i : i32[E, C] sliced(1)
input w : f32[E, C] sliced(1)
state s : f32[V, D] replicated
update(s, s * 0.5 + all_reduce(sum, scatter_add(u, i, w, [V, D])))
)";
inline constexpr char kScatterColumnsProgram[] = R"(coconet 1
program scatter_columns
input u : f32[C, D, H] sliced(2)
input i : i32[C] replicated
output y = all_gather(scatter_add(u, i, [V, D, H]) + 1)
)";
inline constexpr char kFewRowsProgram[] = R"(coconet 1
program few_rows
input x : f32[T, K] sliced(1)
input w : f32[K, N] sliced(0)
input r : f32[T, N] replicated
output y = abs(all_reduce(sum, matmul(x, w)) + r)
)";
inline constexpr char kFewRowsTransposedProgram[] = R"(coconet 1
program few_rows_transposed
input x : bf16[T, K] sliced(1)
input w : bf16[N, K] sliced(1)
input r : bf16[T, N] replicated
output y = abs(all_reduce(sum, matmul(x, w, transpose_b)) + r)
)";
inline constexpr char kBagsProgram[] = R"(coconet 1
program bags
input t : f32[V, D] sliced(0)
input i : i32[B, L] replicated
input w : f32[B, L] replicated
output y = all_reduce(sum, embedding_bag(t, i, w, sum))
)";
inline constexpr char kMeansProgram[] = R"(coconet 1
program means
input t : f32[V, D] sliced(0)
input i : i32[M] replicated
input o : i32[B] replicated
output y = all_reduce(sum, embedding_bag(t, i, o, mean))
)";

/// Computation on both sides of an AllToAll: of a tensor, of the tensors of a list, and of bags.
inline constexpr char kExchangeProgram[] = R"(coconet 1
program exchange
input x : f32[B, S, H] sliced(1)
output y = all_to_all(2 * x, 2) + 1
)";
inline constexpr char kExchangeListProgram[] = R"(coconet 1
program both
input x : f32[B, N] sliced(0)
output y = all_to_all(2 * x, 1) + 1
)";
inline constexpr char kExchangedBagsProgram[] = R"(coconet 1
program exchanged_bags
input t : f16[T, V, D] sliced(0)
input i : i32[T, B, L] sliced(0)
output y = all_to_all(embedding_bag(t, i, sum), 1) * 2
)";

}  // namespace coconet
