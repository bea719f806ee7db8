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

}  // namespace coconet
