// A dozen and more programs against NumPy, which knows nothing of this library: schedules drawn at
// random run on worlds of 1, 2 and 3 ranks, on natural and on special numbers, and
// tests/numpy/check.py computes what every rank should have found from the mathematics alone. It
// says what tolerances follow from (tests/numpy/intervals.py).

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"
#include "tests/harness/schedule_sampler.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"
#include "tests/oracles/numpy_recording.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 2;

struct Case {
  const char* name;  // of the function in tests/numpy/programs.py
  Sizes sizes;
  const char* text = "";      // "": the workload of that name
  DType dtype = DType::kF32;  // of the workload
  absl::StatusOr<Graph> Program() const {
    if (*text == '\0') return BindTo(MakeWorkload(name, {.dtype = dtype}));
    return BindTo(Parse(absl::StrCat("coconet 1\nprogram ", name, "\n", text)));
  }

 private:
  absl::StatusOr<Graph> BindTo(const absl::StatusOr<Graph>& symbolic) const {
    RETURN_IF_ERROR(symbolic.status());
    return BindSizes(*symbolic, sizes);
  }
};
std::ostream& operator<<(std::ostream& out, const Case& test_case) { return out << test_case.name; }

const Case kCases[] = {
    {"momentum", {{"N", 1027}}},
    {"adam", {{"N", 515}}, "", DType::kF16},
    {"adamw", {{"N", 1027}}},
    {"lamb", {{"N", 1027}}},
    {"clip", {{"N", {5, 130, 515}}}},
    {"loss_scale", {{"N", 515}}},
    {"adagrad",
     {{"N", 1027}},
     R"(input g : f32[N] local
state p : f32[N] replicated
state v : f32[N]
input lr : f32[]
G = all_reduce(sum, g) / world
v1 = update(v, v + G * G)
update(p, p - lr * G / (sqrt(v1) + 1e-10))
)"},
    {"local_sgd",
     {{"N", 515}},
     R"(input x : f32[N] local
input t : f32[N] local
input lr : f32[]
state w : f32[N] local
state m : f32[N] local
state z : f32[N]
state v : f32[N]
v1 = update(v, 0.7 * v + all_reduce(sum, w - z) / world)
z1 = update(z, z + v1)
off = w * x - t
m1 = update(m, 0.9 * m + grad(sum(off * off), w))
w1 = w - lr * m1
update(w, w1 - 0.6 * (w1 - z1))
)"},
    {"rmsprop",
     {{"N", 1027}},
     R"(input g : bf16[N] local
state p : bf16[N] replicated
state w : f32[N]
state v : f32[N]
input lr : f32[]
G = cast(f32, all_reduce(sum, g)) / world
v1 = update(v, 0.99 * v + 0.01 * (G * G))
w1 = update(w, w - lr * G * rsqrt(v1 + 1e-8))
update(p, cast(bf16, w1))
)"},
    {"layer_norm",
     {{"S", 37}, {"H", 19}},
     R"(input x : f32[S, H] sliced(0)
input gain : f32[H] replicated
input bias : f32[H] replicated
y = layer_norm(x, 1e-5) * gain + bias
output y = y
output whole = all_gather(y)
)"},
    {"rms_norm",
     {{"S", 13}, {"H", 33}},
     R"(input x : f16[S, H] local
output y = rms_norm(all_reduce(sum, x), 1e-3)
)"},
    {"cross_entropy",
     {{"B", 29}, {"C", 37}},
     R"(input x : f32[B, C] sliced(0)
input index : i32[B, 1] sliced(0)
z = x - amax(x, 1)
e = exp(z)
s = sum(e, 1)
hit = iota(i32, x, 1) == index
loss = select(hit, log(s) - z, 0)
output loss = all_reduce(sum, sum(loss)) / 29
output gradient = (e / s - cast(f32, hit)) / 29
)"},
    {"losses",
     {{"N", 700}},
     R"(input prediction : f32[N] local
input target : f32[N] local
d = prediction - target
near = abs(d) < 1
huber = select(near, 0.5 * (d * d), abs(d) - 0.5)
output mse = all_reduce(sum, mean(d * d)) / world
output huber = all_reduce(sum, mean(huber)) / world
output gradient = select(near, d, max(min(d, 1), -1))
output worst = all_reduce(max, amax(abs(d)))
)"},
    {"gelu_mlp",
     {{"S", 9}, {"H", 17}, {"F", 21}},
     R"(input x : f32[S, H] replicated
input v : f32[H, F] sliced(1)
input c : f32[F] sliced(0)
input w : f32[F, H] sliced(0)
input b : f32[H] replicated
output y = all_reduce(sum, matmul(gelu(matmul(x, v) + c), w)) + b
)"},
    {"attention",
     {{"A", 5}, {"S", 7}, {"D", 16}},
     R"(input q : f32[A, S, D] sliced(0)
input k : f32[A, S, D] sliced(0)
input v : f32[A, S, D] sliced(0)
scores = matmul(q, k, transpose_b) * 0.25
e = exp(scores - amax(scores, 2))
output y = all_gather(matmul(e / sum(e, 2), v))
)"},
    {"embedding",
     {{"V", 37}, {"S", 50}, {"D", 9}},
     R"(input table : bf16[V, D] sliced(0)
input index : i32[S] replicated
input gain : f32[D] replicated
x = all_reduce(sum, gather(table, index, 0))
output x = x
output y = cast(f32, x) * gain
)"},
    {"bags",
     {{"V", 37}, {"B", 11}, {"L", 5}, {"M", 50}, {"D", 9}},
     R"(input table : bf16[V, D] sliced(0)
input index : i32[B, L] replicated
input ragged : i32[M] replicated
input offset : i32[B] replicated
input weight : f32[M] replicated
output sum = all_reduce(sum, embedding_bag(table, index, sum))
output mean = all_reduce(sum, embedding_bag(table, index, mean))
output weighted = all_reduce(sum, embedding_bag(table, ragged, offset, weight, sum))
)"},
    {"joined",
     {{"B", 7}, {"N", 33}, {"M", 5}, {"D", 9}},
     R"(input a : f32[B, N] local
input b : f32[B, M] replicated
input u : bf16[B, N, D] sliced(0)
input v : bf16[B, M, D] sliced(0)
state s : f32[B, M + N]
update(s, 0.5 * s + concat(all_reduce(sum, a), b, 1))
output p = concat(a, b, a, 1)
output y = all_gather(concat(u, v, u, 1))
output z = all_to_all(concat(all_to_all(v, 2), all_to_all(v, 2), 0), 1)
)"},
    {"turned",
     {{"B", 7}, {"N", 33}, {"D", 9}},
     R"(input a : f32[B, 1, N] local
input b : bf16[N] replicated
input c : i32[B, D] sliced(0)
state s : f32[B, N]
G = all_reduce(sum, a)
update(s, 0.5 * s + reverse(reshape(G, [B, N]), 0, 1))
output whole = expand(G, [B, D, N])
output rows = expand(b, [D, N])
output back = reverse(expand(b, [2, N]), 1)
output part = all_gather(reverse(c, 1))
output third = all_gather(expand(reshape(c, [B, 1, D]), [2, B, 3, D]))
)"},
    {"scattered",
     {{"V", 37}, {"E", 5}, {"C", 11}, {"S", 29}, {"L", 3}, {"D", 9}},
     R"(input u : bf16[E, C, D] sliced(0)
input index : i32[E, C] sliced(0)
input weight : f32[E, C] sliced(0)
input w : f32[S, D] replicated
input index.of_w : i32[S] replicated
input index.of_bags : i32[S, L] replicated
state s : f32[V, D]
update(s, 0.5 * s + all_reduce(sum, scatter_add(u, index, weight, [V, D])))
output plain = all_reduce(sum, scatter_add(u, index, [V, D]))
output whole = scatter_add(w, index.of_w, [V, D])
output bags = scatter_add(reshape(w, [S, 1, D]), index.of_bags, [V, D])
)"},
    {"kept",
     {{"E", 5}, {"G", 4}, {"C", 9}, {"H", 7}},
     R"(input x : f16[E, G, C, H] local
input y : f16[E, G, C, H] sliced(1)
input count : i32[E, G] replicated
output whole = keep_rows(all_reduce(sum, x), count)
output part = all_gather(keep_rows(y, shard(count, 1)))
)"},
    {"grouped",
     {{"E", 5}, {"G", 3}, {"C", 4}, {"H", 13}, {"F", 6}},
     R"(input x : f32[E, G, C, H] sliced(0)
input up : f32[E, 1, H, F] sliced(0)
input down : f32[E, 1, F, H] sliced(0)
input one : f32[H, F] replicated
output x_up = matmul(x, up)
output x_down = all_gather(matmul(x, down, transpose_b))
output x_one = matmul(x, one)
)"},
    {"scaled_products",
     {{"M", 7}, {"K", 30}, {"L", 6}, {"N", 9}, {"P", 3}, {"B", 2}},
     R"(input x : f8e4m3[M, K] local
input x.s : f32[M, L] local
input w : f8e5m2[N, K] replicated
input w.s : f32[P, L] replicated
input u : f8e5m2[B, M, K] sliced(2)
input u.s : f32[B, 1, L] sliced(2)
input v : f8e4m3[B, K, N] sliced(1)
input v.s : f32[1, L, 1] sliced(1)
output rows = all_reduce(sum, matmul(x, w, x.s, w.s, transpose_b))
output squares = all_reduce(sum, matmul(x, x, x.s, x.s, transpose_a))
output parts = all_reduce(sum, matmul(u, v, u.s, v.s))
)"},
    {"moe", {{"T", 10}, {"H", 8}, {"E", 3}, {"G", 5}, {"C", 9}, {"F", 7}}},
    {"extremes",
     {{"N", 700}, {"M", 9}},
     R"(input x : f32[N] local
input z : bf16[N, M] sliced(0)
input y : f32[N] local
low = min(x, y)
output low = low
output high = max(x, y)
output greatest = all_reduce(max, amax(x))
output least = all_reduce(min, amin(low))
output highest = all_reduce(max, x)
output lowest = all_reduce(min, low)
output first = argmax(i32, x, 0)
output which = argmax(i64, all_gather(z), 1)
output also = all_gather(argmax(i32, z, 1))
output row = argmax(i32, z, 0)
output rectified = relu(x)
output sign = sign(x)
)"},
    {"integers",
     {{"N", 515}},
     R"(input a : i32[N] local
input b : i32[N] local
input n : i64[N] local
input u : u8[N] local
state s : i32[N]
update(s, s + all_reduce(sum, a) * broadcast(b, 0))
output quotient = a / b
output sum = all_reduce(sum, n) - 7
output most = all_reduce(max, amax(n))
output bytes = all_reduce(sum, u) * 3
output which = a > sign(b)
)"},
    {"bits",
     {{"N", 515}},
     R"(input a : u32[N] local
input b : u32[N] local
input c : i8[N] local
input d : i16[N] local
input e : u16[N] local
input f : u64[N] local
output mixed = bit_xor(shift_left(a, 13), bit_or(shift_right(a, 19), bit_and(b, 255)))
output total = all_reduce(sum, a) * 3
output least = all_reduce(min, bit_not(b))
output quotient = a / b
output rest = rem(a, b)
output arithmetic = shift_right(c, 3)
output logical = shift_right_logical(c, 3)
output gone = shift_left(d, 16) + shift_right(d, 99)
output small = all_reduce(sum, c)
output sixteen = all_reduce(max, d - 3 * d) + 0 * all_reduce(min, d)
output wide = e * e + e
output folded = all_reduce(sum, sum(a))
output most = all_reduce(max, amax(e))
output saturated = cast(i8, d)
output natural = cast(u32, c)
output back = cast(i16, a)
output long = bit_and(f, 1023) + cast(u64, e)
output floats = bit_cast(f32, bit_or(shift_right_logical(a, 9), 1065353216))
output halves = bit_cast(i16, e)

output less = a < b
)"},
    {"statistics",
     {{"N", 515}},
     R"(input x : f64[N] local
mean = all_reduce(sum, sum(x)) / 515 / world
d = x - mean
most = all_reduce(max, amax(x))
output mean = mean
output deviation = sqrt(all_reduce(sum, sum(d * d)) / 515 / world)
output logsumexp = most + log(all_reduce(sum, sum(exp(x - most))))
)"},
    {"casts",
     {{"N", 1027}},
     R"(input x : f32[N] local
input h : f16[N] local
input w : bf16[N] local
output half = cast(f16, x)
output brain = cast(bf16, x)
output double = cast(f64, x)
output int = cast(i32, x)
output byte = cast(u8, x)
output truth = cast(bool, x)
output back = cast(f32, h)
output up = cast(f32, w)
)"},
    {"functions",
     {{"N", 515}},
     R"(input x : f32[N] local
input y : f32[N] local
output exp = exp(x)
output log = log(x)
output tanh = tanh(x)
output erf = erf(x)
output sigmoid = sigmoid(x)
output silu = silu(x)
output gelu = gelu(x)
output sqrt = sqrt(x)
output rsqrt = rsqrt(x)
output pow = pow(abs(x), y)
output quotient = x / y
output log1p = log1p(abs(x))
output expm1 = expm1(x)
output sin = sin(x)
output cos = cos(y)
output floor = floor(x)
output ceil = ceil(y)
output round = round(x * 4)
output rem = rem(x, y)
output less = x < y
output differs = x != y
output between = x < y and not x < -1 or y > 2
)"},
    {"random",
     {{"N", 1027}},
     R"(input x : f32[N] local
input r : f32[N] replicated
input seed : i64[]
output y = dropout(all_reduce(sum, x), seed, 0.1, 7)
output b = round_stochastic(r, seed, 9)
)"},
};

/// NumPy's verdict on a recording, by Debian's own Python, whatever else is installed or set.
Ended Check(const std::string& list_path, const std::string& data_path) {
  constexpr char kPython[] = "/usr/bin/python3";
  EXPECT_TRUE(std::filesystem::exists(kPython)) << kPython << " is missing: run ./setup.sh";
  return RunCommand({kPython, "-E", "-s", "-B", "tests/numpy/check.py", list_path, data_path},
                    {{"OPENBLAS_NUM_THREADS", "1"}});
}

/// Runs schedules of a program on 1, 2 and 3 ranks.
std::unique_ptr<Recording> Record(const Case& test_case, uint64_t seed) {
  auto recording = std::make_unique<Recording>(
      absl::StrCat(testing::TempDir(), "/", test_case.name), test_case.name, seed);
  VariantBatch batch(TheMachine(), [&](Rank& rank, const Module& kernels,
                                       const LoweredVariant& variant, uint64_t, int steps, Tally&) {
    return recording->Run(rank, kernels, variant, steps);
  });
  std::mt19937_64 random(seed);
  const absl::StatusOr<Graph> program = test_case.Program();
  const absl::Status added =
      program.ok() ? ScheduleSampler({1, 2, 3}, random, batch).AddSome(*program) : program.status();
  EXPECT_TRUE(added.ok()) << added << "\nCOCONET_SEED=" << seed;
  EXPECT_EQ(batch.Run(seed, kSteps), "");
  recording->Finish();
  return recording;
}

class NumpyTest : public testing::TestWithParam<Case> {
 protected:
  /// Counts over all programs: if one element of a norm is undecided, so is much that follows.
  static void TearDownTestSuite() {
    std::cout << elements_ << " elements, " << undecided_ << " of them undecided\n";
    EXPECT_LE(undecided_ * 100, elements_);
  }
  static void Count(const std::string& line) {
    long elements = 0, undecided = 0;
    EXPECT_EQ(std::sscanf(line.c_str(),
                          "%*d schedules, %*d steps, %ld elements: %*d NaN, %*d infinite, "
                          "%*d exact, %ld undecided",
                          &elements, &undecided),
              2);
    EXPECT_GT(elements, 0);
    elements_ += elements;
    undecided_ += undecided;
  }

 private:
  static inline int64_t elements_ = 0;
  static inline int64_t undecided_ = 0;  // whether they overflow is up to rounding
};

TEST_P(NumpyTest, AgreesOnEveryRank) {
  const uint64_t seed = FreshSeed();
  const auto recording = Record(GetParam(), seed);
  const Ended ended = Check(recording->list_path(), recording->data_path());
  std::cout << ended.out;
  Count(ended.out);
  EXPECT_EQ(ended.code, 0) << ended.err << "COCONET_SEED=" << seed;
}

INSTANTIATE_TEST_SUITE_P(, NumpyTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

/// Puts another value in place of an element of the last step's `p`: of the first rank that has one
/// which `chosen` wants.
struct Forgery {
  const char* name;
  NumpyDataKind kind;
  int ranks, rank;
  bool (*chosen)(float value);
  float (*forge)(float value);
  const char* expected;  // in the words of the report
};

const Forgery kForgeries[] = {
    {"number", NumpyDataKind::kNatural, 1, 0,  //
     [](float x) { return std::fabs(x) > 1; }, [](float x) { return x * (1 + 0x1p-8f); }, ""},
    {"number that became NaN", NumpyDataKind::kExtreme, 1, 0,
     [](float x) { return std::isfinite(x); }, [](float) { return std::nanf(""); }, ""},
    {"NaN that became a number", NumpyDataKind::kSpecial, 1, 0,  //
     [](float x) { return std::isnan(x); }, [](float) { return 1.0f; }, "expected nan, found 1.0"},
    {"infinity", NumpyDataKind::kSpecial, 1, 0,  //
     [](float x) { return std::isinf(x); }, [](float x) { return -x; }, "expected "},
    {"last bit of one replica", NumpyDataKind::kNatural, 2, 1,
     [](float x) { return std::isfinite(x); }, [](float x) { return std::nextafter(x, INFINITY); },
     "as on rank 0, found "},
};

/// The recording's data with one element forged; `report` becomes what names that element.
std::string Forged(const Recording& recording, const Forgery& forgery, std::string& report) {
  std::string data = ReadFile(recording.data_path());
  for (const Recording::Part& part : recording.parts()) {
    if (part.name != "p" || part.step != kSteps - 1 || part.kind != forgery.kind ||
        part.ranks != forgery.ranks || part.rank != forgery.rank)
      continue;
    for (int64_t i = 0; i < part.elements; ++i) {
      float value;
      char* at = data.data() + part.at + i * static_cast<int64_t>(sizeof(value));
      std::memcpy(&value, at, sizeof(value));
      if (!forgery.chosen(value)) continue;
      value = forgery.forge(value);
      std::memcpy(at, &value, sizeof(value));
      report = absl::StrCat("momentum: \"p\"[", i, "] on rank ", part.rank, " of ", part.ranks,
                            ", step ", part.step, ", data ", Name(part.kind),
                            ", schedule: ", part.schedule, "\nexpected ");
      return data;
    }
  }
  ADD_FAILURE() << "nothing to forge";
  return data;
}

TEST(NumpyComparison, ReportsEachElementThatIsForged) {
  const uint64_t seed = FreshSeed();
  const auto recording = Record(kCases[0], seed);
  for (const Forgery& forgery : kForgeries) {
    SCOPED_TRACE(absl::StrCat(forgery.name, "\nCOCONET_SEED=", seed));
    const std::string path = absl::StrCat(testing::TempDir(), "/forged.bin");
    std::string report;
    std::ofstream(path, std::ios::binary) << Forged(*recording, forgery, report);
    const Ended ended = Check(recording->list_path(), path);
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_THAT(
        ended.out,
        AllOf(HasSubstr(report), HasSubstr(forgery.expected),
              HasSubstr(absl::StrCat("\nCOCONET_SEED=", seed, "\ncoconet 1\nprogram momentum")),
              HasSubstr("\nresults that differ: 1\n")));
  }
}

}  // namespace
}  // namespace coconet
