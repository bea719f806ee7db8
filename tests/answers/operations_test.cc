// Every derived schedule of programs with folds, rows, dropout and views, on 1 to 8 ranks, at odd
// sizes, with configs drawn at random, against the interpreter.

#include <string>

#include "gtest/gtest.h"
#include "tests/harness/schedule_sampler.h"

namespace coconet {
namespace {

const SampledProgram kPrograms[] = {
    {"lamb",
     R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
state v : f32[N]
input lr : f32[]
G = all_reduce(sum, g) / world
m1 = update(m, 0.9 * m + 0.1 * G)
v1 = update(v, 0.999 * v + 0.001 * G * G)
r = m1 / (sqrt(abs(v1)) + 1e-3) + 0.01 * p
update(p, p - lr * norm(p) / (norm(r) + 1e-6) * r)
)",
     {{{"N", 1}}, {{"N", 65}}, {{"N", 4099}}}},
    {"clip",
     R"(input g : f16[N] local
state p : f16[N] replicated
state w : f32[N]
state count : f32[] replicated
G = cast(f32, all_reduce(sum, g)) / world
size = norm(G)
w1 = update(w, w - G * min(1 / (size + 1), 0.5))
update(p, cast(f16, w1))
update(count, size)
output most = amax(G)
output least = amin(abs(G))
)",
     {{{"N", 3}}, {{"N", 500}}, {{"N", 33000}}}},
    {"bytes",
     R"(input g : f8e5m2[N] local
input h : f8e4m3[N] local
state p : f8e4m3[N] replicated
state w : f32[N]
G = cast(f32, all_reduce(sum, g)) / world
w1 = update(w, 0.5 * w - 0.25 * G)
update(p, cast(f8e4m3, w1))
output most = 2 * all_reduce(max, h)
output sums = all_reduce(sum, h)
output size = norm(w1)
)",
     {{{"N", 1}}, {{"N", 65}}, {{"N", 4099}}}},
    {"products_of_bytes",  // cuBLASLt takes: along k, rows of multiples of 16 bytes
     R"(input x : f8e4m3[M, K] local
input w : f8e5m2[N, K] replicated
input v : f8e4m3[N, K] replicated
input t : f8e5m2[M, K] sliced(0)
input s : f32[]
output y = cast(bf16, s * all_reduce(sum, matmul(x, w, transpose_b)))
output z = all_gather(matmul(t, v, transpose_b) + 0)
output u = cast(f8e4m3, 0.125 * matmul(v, w, transpose_b))
)",
     {{{"M", 1}, {"K", 16}, {"N", 96}},
      {{"M", 33}, {"K", 48}, {"N", 96}},
      {{"M", 65}, {"K", 32}, {"N", 96}}}},
    {"rows",
     R"(input g : f32[B, S, H] local
input b : f32[H] replicated
input scale : f32[S, 1] replicated
state r : f32[B, S, H] replicated
input seed : i64[]
x = dropout(all_reduce(sum, g) + b, seed, 0.25)
y = update(r, r + layer_norm(x, 1e-3) * scale)
output z = softmax(y)
output q = amax(y, 2) - mean(y, 2)
)",
     {{{"B", 1}, {"S", 3}, {"H", 1}},
      {{"B", 2}, {"S", 5}, {"H", 48}},
      {{"B", 3}, {"S", 2}, {"H", 37}}}},
    {"columns",
     R"(input x : f32[B, S, H] replicated
input u : f32[B, S, H] sliced(1)
input n : i32[S, H] local
output a = sum(x, 0)
output b = amax(x, 1)
output c = mean(x, 0, 2)
output d = sum(u, 0)
output e = all_reduce(sum, sum(u, 1))
output f = all_gather(amin(u, 0, 2))
output g = all_reduce(max, amax(n))
output h = all_reduce(sum, sum(n, 0))
)",
     {{{"B", 1}, {"S", 2}, {"H", 3}},
      {{"B", 3}, {"S", 7}, {"H", 64}},
      {{"B", 4}, {"S", 33}, {"H", 20}}}},
    {"views",
     R"(input x : f32[M, N] replicated
input y : f32[N, M] local
t = transpose(x, 1, 0)
output a = t * y
output b = all_reduce(sum, y + slice(t, 1, 0, 1))
output c = reshape(x, [N, M]) - t
output d = all_gather(shard(x, 1) * shard(x, 1))
output e = norm(shard(t, flat))
)",
     {{{"M", 1}, {"N", 1}}, {{"M", 5}, {"N", 32}}, {{"M", 19}, {"N", 23}}}},
    {"turned_and_repeated",
     R"(input g : f32[M, N] local
input u : f16[B, M, N] sliced(1)
input v : bf16[M, N] sliced(flat)
input n : i16[M, 1] replicated
state s : f32[M, N]
G = all_reduce(sum, g)
p = update(s, s * 0.5 + reverse(G, 1))
output a = all_gather(expand(sum(u, 2), [2, B, M, 3]) * 2)
output b = all_gather(reverse(u, 0, 2))
output c = reverse(expand(n, [2, M, N]), 0, 1, 2) + n
output d = all_reduce(sum, reverse(expand(g[0:1], [3, N]), 0, 1))
output e = all_gather(expand(v, [M, N]))
output f = matmul(reverse(p, 0), expand(sum(G, 0), [M, N]), transpose_b)
)",
     {{{"B", 1}, {"M", 1}, {"N", 1}},
      {{"B", 2}, {"M", 5}, {"N", 32}},
      {{"B", 3}, {"M", 33}, {"N", 17}}}},
    {"integers_of_all_widths",
     R"(input a : i8[M, N] local
input b : i16[N] replicated
input c : u16[M, N] sliced(0)
input d : u32[N] local
input e : u64[M, N] local
state s : u32[N]
update(s, bit_xor(s * 3, all_reduce(sum, d)) - 1)
output f = all_reduce(sum, a * cast(i8, b) / 16)
output h = all_reduce(max, sum(cast(i32, a), 1))
output i = all_gather(shift_left(c, 3) - c / 2)
output j = all_reduce(min, amin(d)) + rem(amax(s), 7)
output k = all_reduce(sum, sum(bit_and(e, 15), 0))
output l = all_gather(reduce_scatter(max, bit_or(b, cast(i16, rank(i32))), 0))
output m = shift_right_logical(b, 5) + shift_right(b, 5)
)",
     {{{"M", 1}, {"N", 1}}, {{"M", 5}, {"N", 67}}, {{"M", 33}, {"N", 64}}},
     {1, 2, 3, 4, 8, {4, 2}, {2, 1, 2}}},
    {"whole_numbers_and_waves",
     R"(input g : f32[N] local
input h : bf16[N] local
input x : f64[N] replicated
state s : f32[N]
G = all_reduce(sum, g)
update(s, s * 0.5 + sin(G) * cos(G))
output a = floor(G * 3) + ceil(s * 0.5) - round(s * 4)
output b = all_reduce(sum, log1p(abs(h)) - expm1(h))
output c = rem(x * 5, 1.5) + floor(x)
output d = all_reduce(max, rem(g, abs(g) + 0.25))
)",
     {{{"N", 1}}, {{"N", 67}}, {{"N", 1024}}}},
    {"views_of_slices",
     R"(input u : f32[B, M, N] sliced(1)
input v : f16[M, N] sliced(flat)
input w : f32[M, 1] sliced(0)
input g : f32[M, N] local
state s : f32[M, N]
output a = all_gather(transpose(u, 1, 2, 0) * 2)
output b = all_gather(transpose(u, 2, 0, 1)) + 1
output c = all_gather(slice(slice(u, 2, 1, 3), 0, 1, 2))
output d = all_reduce(sum, sum(reshape(u, [1, B, M, N]) * 0.5, 2))
output e = reshape(v, [N, M])
output f = all_gather(reshape(w, [M]) * 3)
G = all_reduce(sum, g)
p = update(s, s * 0.5 + G)
output h = transpose(p, 1, 0) + amax(slice(G, 1, 0, 2), 1)[0:1]
output q = reshape(p, [1, M, N]) - slice(u, 0, 0, 1)
)",
     {{{"B", 2}, {"M", 1}, {"N", 3}},
      {{"B", 2}, {"M", 5}, {"N", 32}},
      {{"B", 3}, {"M", 33}, {"N", 17}}}},
    {"local_values_of_slices",
     R"(input x : f32[B, S, H] sliced(1)
input b : f32[H] local
input c : f32[S, H] local
input n : f16[B, S] sliced(flat)
input m : f16[B, S] local
input w : f32[H, K] local
input v : f32[B, S, K] local
state s : f32[B, S, K]
y = matmul(x * b + rank(f32), w)
output a = all_gather(y * 0.5)
output d = x + c
output e = all_reduce(sum, sum(x * c, 1))
output f = all_gather(select(n < m, n, m))
z = update(s, s * 0.5 + all_gather(silu(y)))
output g = all_reduce(sum, v * z)
)",
     {{{"B", 1}, {"S", 3}, {"H", 1}, {"K", 2}},
      {{"B", 2}, {"S", 5}, {"H", 48}, {"K", 16}},
      {{"B", 3}, {"S", 33}, {"H", 7}, {"K", 5}}},
     {1, 2, 3, 4, 8, {4, 2}, {2, 1, 2}}},
    {"views_of_scalars",
     R"(input a : f32[] replicated
input g : f32[N] local
output y = reshape(a + 1, [1, 1])
output z = all_reduce(sum, g) * reshape(a * a, [1])
)",
     {{{"N", 1}}, {{"N", 67}}}},
    {"signs",
     R"(input g : bf16[N] local
input n : i32[N] local
state p : f32[N] replicated
state m : f32[N]
input lr : f32[]
G = cast(f32, all_reduce(sum, g))
m1 = update(m, 0.9 * m + 0.1 * G)
update(p, p - lr * sign(m1))
output s = sign(reduce_scatter(sum, n, 0))
output t = norm(sign(G))
)",
     {{{"N", 1}}, {{"N", 67}}, {{"N", 4099}}}},
    {"indices",
     R"(input g : f16[B, S, H] local
input u : f32[B, S, H] sliced(1)
input w : bf16[B, H] sliced(flat)
state r : f32[B, S, H] replicated
state n : i32[S, H]
G = cast(f32, all_reduce(sum, g))
row = iota(i32, G, 1)
column = iota(i32, G, 2)
masked = select(column <= row, G, -9)
y = update(r, softmax(r + masked))
update(n, n + iota(i32, n, 0) - iota(i32, n, 1))
output at = iota(i32, u, 1) * 1000 + iota(i32, u, 0) * 100 + iota(i32, u, 2)
output last = all_gather(iota(i64, w, 1) + 7 * iota(i64, w, 0))
output rows = sum(y, 2) * cast(f32, iota(i32, sum(y, 2), 1))
)",
     {{{"B", 1}, {"S", 3}, {"H", 1}},
      {{"B", 2}, {"S", 5}, {"H", 48}},
      {{"B", 3}, {"S", 2}, {"H", 37}}}},
    {"greatest",
     R"(input g : bf16[M, N] local
input u : f16[M, N] sliced(0)
input n : u8[N, M] replicated
state s : i32[M, 1]
G = all_reduce(sum, g)
update(s, argmax(i32, G * 0.5, 1) + s)
output a = argmax(i64, u, 0)
output b = all_gather(argmax(i32, u + u, 1))
output c = argmax(i32, n, 0) + argmax(i32, n, 1)
output d = gather(n, argmax(i32, sum(cast(i32, n), 1), 0), 0)
)",
     {{{"M", 1}, {"N", 1}}, {{"M", 5}, {"N", 67}}, {{"M", 33}, {"N", 64}}}},
    {"sums_of_narrow_values",
     R"(input g : bf16[M, N] local
input h : f16[N] local
input u : u8[N] local
state p : f32[M, N]
state q : f32[N] replicated
input lr : f32[]
update(p, p - lr * all_reduce(sum, cast(f32, g)))
update(q, all_reduce(sum, cast(f32, h)))
output a = all_reduce(sum, cast(i32, u))
output b = all_gather(reduce_scatter(sum, cast(f32, h * h), 0) * 2)
output c = all_reduce(max, cast(f32, cast(bf16, p * rank(f32))))
)",
     {{{"M", 1}, {"N", 1}}, {{"M", 3}, {"N", 67}}, {{"M", 33}, {"N", 128}}},
     {1, 2, 3, 4, 8, {4, 2}, {6, 3}, {2, 1, 2}}},
    {"numbers",
     R"(input g : f16[M, N] local
input u : f32[M, N] sliced(1)
input n : i32[N] local
state r : f32[M, N] replicated
G = cast(f32, all_reduce(sum, g * rank(f16)))
update(r, r + G / extent(f32, g, 1) + count(f32, [M, N]))
output a = all_reduce(sum, rank(i64))
output b = all_reduce(max, select(n > rank(i32) and not n == extent(i32, n, 0), n, rank(i32)))
output c = all_gather(u * extent(f32, u, 1) - extent(f32, u, 0))
output d = rank(u8)
output e = count(bf16, [M, N])
output f = erf(mean(G) * extent(f32, g, N))
)",
     {{{"M", 1}, {"N", 1}}, {{"M", 3}, {"N", 67}}, {{"M", 33}, {"N", 64}}},
     {1, 2, 3, 4, 8, {4, 2}, {2, 1, 2}}},
    {"epilogue",
     R"(input x : f32[B, S, K] sliced(2)
input w : f32[K, H] sliced(0)
input b : f32[H] replicated
state r : f32[B, S, H] replicated
input seed : i64[]
update(r, r + dropout(all_reduce(sum, matmul(x, w)) + b, seed, 0.1))
)",
     {{{"B", 1}, {"S", 1}, {"K", 3}, {"H", 5}},
      {{"B", 2}, {"S", 9}, {"K", 33}, {"H", 16}},
      {{"B", 3}, {"S", 16}, {"K", 8}, {"H", 32}}}},
    {"few_rows",
     R"(input x : f32[T, K] sliced(1)
input w : f32[N, K] sliced(1)
input v : f32[K, N] sliced(0)
input g : f32[N] replicated
state s : f32[T, N] replicated
z = all_reduce(sum, matmul(x, w, transpose_b)) + s
y = rms_norm(z, 1e-3) * g
update(s, y)
output d = reduce_scatter(sum, matmul(x, v), 0) * 2
)",
     {{{"T", 1}, {"K", 3}, {"N", 5}},
      {{"T", 4}, {"K", 1100}, {"N", 37}},
      {{"T", 9}, {"K", 70}, {"N", 80}},
      {{"T", 64}, {"K", 33}, {"N", 19}},
      {{"T", 2}, {"K", 0}, {"N", 4}},
      {{"T", 3}, {"K", 40}, {"N", 2100}}}},
    {"few_rows_of_halves",
     R"(input x : bf16[K, T] replicated
input h : f16[T, K] local
input w : bf16[N, K] sliced(0)
input v : bf16[K, N] sliced(1)
input u : f16[K, N] replicated
state s : bf16[T, N] sliced(1)
a = matmul(x, w, transpose_a, transpose_b)
b = matmul(x, v, transpose_a)
update(s, a)
output y = silu(a) * b + s
output m = all_reduce(max, matmul(h, u))
output q = b
)",
     {{{"T", 1}, {"K", 7}, {"N", 3}},
      {{"T", 6}, {"K", 64}, {"N", 130}},
      {{"T", 17}, {"K", 35}, {"N", 48}},
      {{"T", 0}, {"K", 5}, {"N", 8}}}},
    {"nothing",
     R"(input x : f32[N] local
input y : f32[M, N] replicated
output a = mean(x)
output b = mean(y, 1)
output c = all_reduce(sum, sum(x))
)",
     {{{"N", 0}, {"M", 3}}}},
    {"few_rows_exchanged",
     R"(input x : f32[B, S, K] replicated
input w : f32[K, N] sliced(1)
input v : f32[N, K] replicated
y = all_to_all(matmul(x, w), 1)
output a = gelu(y)
output b = all_gather(matmul(y, v) - 1)
)",
     {{{"B", 1}, {"S", 2}, {"K", 3}, {"N", 5}}, {{"B", 3}, {"S", 5}, {"K", 24}, {"N", 33}}}},
    {"sequence_parallel",
     R"(input x : bf16[S, H] sliced(0)
input w1 : bf16[H, F] sliced(1)
input w2 : bf16[F, H] sliced(0)
state y : bf16[S, H] sliced(0)
h = gelu(matmul(all_gather(rms_norm(x, 1e-3)), w1))
update(y, x + reduce_scatter(sum, matmul(h, w2), 0))
)",
     {{{"S", 5}, {"H", 8}, {"F", 12}}, {{"S", 32}, {"H", 17}, {"F", 64}}}},
    {"heads",
     R"(input q : f16[A, S, D] sliced(0)
input k : f16[A, S, D] sliced(0)
input v : f16[A, S, D] sliced(0)
p = softmax(matmul(q, k, transpose_b) * 0.25)
output y = all_gather(matmul(p, v))
output t = all_gather(matmul(v, k, transpose_a))
)",
     {{{"A", 1}, {"S", 3}, {"D", 4}}, {{"A", 5}, {"S", 7}, {"D", 16}}}},
    {"dropout",
     R"(input g : bf16[N] local
input seed : i64[]
state s : f32[N]
x = dropout(all_reduce(sum, g), seed, 0.1)
update(s, s + cast(f32, x) * dropout(s, seed + 1, 0.5, 77))
)",
     {{{"N", 1}}, {{"N", 4099}}}},
    {"rooted",
     R"(input g : f16[N] local
state s : f32[N] local
state top : bf16[N] replicated
x = reduce(sum, g, 0)
y = broadcast(x / 2, 0)
update(s, s + cast(f32, reduce(max, y * g, 0)))
update(top, cast(bf16, broadcast(g, 0)) + top)
output total = norm(y)
)",
     {{{"N", 1}}, {{"N", 1025}}},
     {1, 2, 3, 8, {4, 2}, {2, 1, 3}, {4, 2, 2}}},
    {"exchange",
     R"(input x : f16[A, S, D] sliced(0)
input w : f16[D, S] replicated
state y : f16[A, S, D] sliced(1)
h = all_to_all(gelu(x), 2)
z = all_to_all(h * 2, 1)
update(y, z + y)
output p = matmul(all_to_all(all_to_all(x, 1), 0), w)
output q = all_gather(all_to_all(z, 0))
)",
     {{{"A", 1}, {"S", 2}, {"D", 3}}, {{"A", 5}, {"S", 33}, {"D", 32}}},
     {1, 2, 3, 4, 8, {4, 2}, {3, 3}, {2, 1, 2}}},
    {"pipeline",
     R"(input x : bf16[B, S, H] local
input b : bf16[H] replicated
state r : bf16[B, S, H] replicated
input seed : i64[]
y = dropout(all_reduce(sum, x) + b, seed, 0.1) + r
update(r, send(y, next))
output back = send(norm(r), previous)
)",
     {{{"B", 1}, {"S", 3}, {"H", 5}}, {{"B", 2}, {"S", 33}, {"H", 64}}},
     {1, {1, 1, 2}, {2, 1, 2}, {2, 1, 2, true}, {3, 1, 3}, {4, 1, 2}, {2, 2, 2}, {4, 2, 2}}},
    {"long_scalars",  // h5 takes 93 operations on scalars, and more than one kernel takes it
     R"(input g : f32[N] local
state p : f32[N] replicated
state q : f32[M] replicated
G = all_reduce(sum, g) / world
n = sum(G * G) / 1000
h1 = n * 0.25 + n * 0.5
h2 = h1 * 0.25 + h1 * 0.5
h3 = h2 * 0.25 + h2 * 0.5
h4 = h3 * 0.25 + h3 * 0.5
h5 = exp(-(h4 * 0.25 + h4 * 0.5))
update(p, p - G * h5)
update(q, q * h5 + pow(h5 + 1, 2))
)",
     {{{"N", 5}, {"M", 3}}, {{"N", 1000}, {"M", 77}}}},
    {"states_into_themselves",
     R"(state s : f32[N] replicated
state t : f16[N] local
state u : f32[N] local
state v : f32[N] local
state w : f64[N] replicated
update(s, send(s, next))
update(t, reduce(sum, t, 0))
update(u, send(v, next))
update(v, send(u, previous))
w1 = update(w, send(2 * w, next))
output x = w1 + 1
)",
     {{{"N", 1}}, {{"N", 1027}}, {{"N", 8192}}},
     {1, 2, 3, {1, 1, 2}, {2, 1, 2}, {2, 1, 3}, {4, 1, 2}, {2, 1, 2, true}}},
    {"fused_sends",
     R"(input x : f16[N] local
state p : f16[N] replicated
state q : f16[N]
state far : f16[N] local
y = p + all_reduce(sum, x)
update(p, send(y, next))
update(q, q + 0.5 * send(y * y, previous))
update(far, send(x - 1, previous))
output down = send(abs(p), next)
output most = amax(y - p)
)",
     {{{"N", 1}}, {{"N", 1027}}, {{"N", 8192}}},
     {1, {1, 1, 2}, {2, 1, 2}, {4, 1, 2}, {1, 1, 3}, {2, 1, 3}, {4, 1, 3}, {2, 1, 2, true}}},
    {"overlap",
     R"(input x : f32[S, K] sliced(1)
input w : f32[K, H] sliced(0)
input b : f32[H] replicated
state r : f32[S, H] replicated
input seed : i64[]
z = all_reduce(sum, matmul(x, w))
update(r, rms_norm(dropout(z + b, seed, 0.1) + r, 1e-3))
)",
     {{{"S", 3}, {"K", 5}, {"H", 7}},
      {{"S", 97}, {"K", 33}, {"H", 64}},
      {{"S", 256}, {"K", 16}, {"H", 32}}},
     {1, 2, 3, 4, 8, {2, 2}, {4, 2}, {3, 3}}},
    {"overlap_gather",
     R"(input x : bf16[B, S, H] sliced(1)
input w1 : bf16[H, F] sliced(1)
input w2 : bf16[F, H] sliced(0)
state y : bf16[B, S, H] sliced(1)
h = gelu(matmul(all_gather(rms_norm(x, 1e-3)), w1))
update(y, x + reduce_scatter(sum, matmul(h, w2), 1))
)",
     {{{"B", 1}, {"S", 5}, {"H", 8}, {"F", 12}}, {{"B", 1}, {"S", 96}, {"H", 17}, {"F", 64}}},
     {1, 2, 3, 4, {2, 2}, {4, 2}}},
    {"overlap_send",
     R"(input x : bf16[S, H] local
input b : bf16[H] replicated
state r : bf16[S, H] replicated
y = silu(all_reduce(sum, x) + b) + r
update(r, send(y, next))
)",
     {{{"S", 3}, {"H", 5}}, {{"S", 129}, {"H", 64}}},
     {{1, 1, 2}, {2, 1, 2}, {2, 1, 2, true}, {3, 1, 3}, {2, 2, 2}, {4, 2, 2}}},
    {"nodes",
     R"(input g : f16[N] local
state w : f16[N] replicated
state m : f32[N]
input lr : f32[]
G = cast(f32, all_reduce(sum, g)) / world
m1 = update(m, 0.9 * m + G)
update(w, cast(f16, cast(f32, w) - lr * m1 / (norm(m1) + 1)))
)",
     {{{"N", 1}}, {{"N", 4099}}},
     {{2, 2}, {4, 2}, {6, 3}, {4, 2, 2}}},
    {"moved_in_place",
     R"(state s : f32[N, N] replicated
state p : f32[N, N] replicated
state q : f32[N, N] replicated
input w : f32[N, N] local
update(s, transpose(s, 1, 0))
update(p, p + transpose(p, 1, 0))
update(q, all_reduce(sum, matmul(w, q)) + p)
)",
     {{{"N", 3}}, {{"N", 21}}}},
    {"product_in_place",
     R"(state s : f32[N, N] replicated
input w : f32[N, N] local
update(s, all_reduce(sum, matmul(w, s)))
)",
     {{{"N", 3}}, {{"N", 21}}}},
    {"empty",
     R"(input x : f32[A, B] local
input y : f32[A, C] replicated
input z : i32[A, B] replicated
state a : f32[] replicated
state b : f32[] replicated
output p = all_reduce(sum, matmul(x, y, transpose_a))
output q = all_reduce(sum, matmul(matmul(x, y, transpose_a), y, transpose_b))
output r = 2 * y + sum(y * y, 1)
output s = sum(z, 1)
update(a, a + 0.5 * b)
update(b, b - 0.5 * a)
)",
     {{{"A", 3}, {"B", 0}, {"C", 2}},
      {{"A", 0}, {"B", 4}, {"C", 3}},
      {{"A", 4}, {"B", 3}, {"C", 0}},
      {{"A", 5}, {"B", 3}, {"C", 2}}}},
    {"ninth_buffer_is_bool",
     R"(input x0 : f32[N] local
input x1 : f32[N] local
input x2 : f32[N] replicated
input x3 : f32[N] replicated
state s0 : f32[N]
state s1 : f32[N]
state s2 : f32[N]
state s3 : f32[N]
state s4 : bool[N]
s = all_reduce(sum, x0 * x1)
update(s0, s * x2)
update(s1, s * x3)
update(s2, s + s2)
update(s3, s - s3)
update(s4, s > x2)
)",
     {{{"N", 70}}}},
};

class OperationsTest : public testing::TestWithParam<SampledProgram> {};

TEST_P(OperationsTest, EveryScheduleComputesWhatTheProgramSays) {
  const Tally tally = RunSome(GetParam());
  EXPECT_LE(tally.undetermined * 100, tally.elements);
}

INSTANTIATE_TEST_SUITE_P(, OperationsTest, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coconet
