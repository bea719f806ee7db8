// The interpreter on operations that are not elementwise, against loops written out.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/philox.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Small numbers that differ by tensor, rank and place.
double Input(const std::string& name, int rank, int64_t index) {
  if (name == "seed") return 42;
  return static_cast<double>((index * 7 + rank * 13 + name[0] * 5) % 19) - 9;
}

Expected AllOf(const std::string& statements, int ranks, int rank = 0, int stages = 1) {
  absl::StatusOr<Graph> g = Parse("coconet 1\n" + statements);
  EXPECT_TRUE(g.ok()) << g.status();
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(*g, ranks, stages);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  std::vector<int64_t> indices(NumElements(interpreter->type("y").shape));
  std::iota(indices.begin(), indices.end(), 0);
  absl::StatusOr<Expected> expected = interpreter->Evaluate("y", rank, indices, Input);
  EXPECT_TRUE(expected.ok()) << expected.status();
  return *expected;
}

void ExpectNear(const Expected& have, int64_t count, const std::function<double(int64_t)>& want) {
  ASSERT_EQ(have.value.size(), static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) EXPECT_NEAR(have.value[i].real(), want(i), 1e-9) << i;
}

double SumOf(int64_t begin, int64_t end, int64_t stride, const std::function<double(int64_t)>& f) {
  double sum = 0;
  for (int64_t i = begin; i < end; i += stride) sum += f(i);
  return sum;
}

TEST(Evaluation, FindsTheFirstOfTheGreatest) {
  const auto at = [](const std::vector<double>& x, int ranks, const char* layout) {
    absl::StatusOr<Graph> g = Parse(absl::StrCat("coconet 1\ninput x : f16[", x.size(), "] ",
                                                 layout, "\noutput y = argmax(i32, x, 0)\n"));
    EXPECT_TRUE(g.ok()) << g.status();
    const auto value = [&](const std::string&, int, int64_t i) { return x[i]; };
    absl::StatusOr<Expected> y = Interpreter::Create(*g, ranks)->Evaluate("y", 0, {0}, value);
    EXPECT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->error[0], 0);
    return y->value[0];
  };
  const double nan = std::nan(""), inf = HUGE_VAL;
  for (int ranks : {1, 3}) {
    for (const char* layout : {"replicated", "sliced(0)"}) {
      EXPECT_EQ(at({1, 5, 2, 5, 5}, ranks, layout), 1);
      EXPECT_EQ(at({1, 5, nan, 7, nan}, ranks, layout), 2);
      EXPECT_EQ(at({-inf, -inf, -inf}, ranks, layout), 0);
      EXPECT_EQ(at({-inf, 3, inf, inf}, ranks, layout), 2);
      EXPECT_EQ(at({-1, -2, -0.0, 0}, ranks, layout), 2);
      EXPECT_EQ(at({4}, ranks, layout), 0);
    }
  }
}

TEST(Evaluation, TakesEachRanksOwnValuesForItsPart) {
  const auto s = [](int64_t i) { return Input("s", 0, i); };
  const auto own = [](int64_t i) { return Input("l", static_cast<int>(i / 3), i); };
  const std::string in = "input s : f32[7] sliced(0)\ninput l : f32[7] local\n";
  ExpectNear(AllOf(in + "output y = all_gather(s * l - rank(f32))\n", 3, 1), 7,
             [&](int64_t i) { return s(i) * own(i) - static_cast<double>(i / 3); });
  ExpectNear(AllOf(in + "output y = all_reduce(sum, sum(s * l))\n", 3), 1,
             [&](int64_t) { return SumOf(0, 7, 1, [&](int64_t i) { return s(i) * own(i); }); });
  const auto of_second_stage = [](int64_t i) {
    return Input("s", 3, i) * Input("l", static_cast<int>(3 + i / 3), i);
  };
  ExpectNear(AllOf(in + "output y = all_gather(s * l)\n", 3, 4, 2), 7, of_second_stage);
  // Rows of a product by each rank's own second factor.
  ExpectNear(AllOf("input s : f32[7, 3] sliced(0)\ninput l : f32[3, 2] local\n"
                   "output y = all_gather(matmul(s, l))\n",
                   3),
             14, [&](int64_t i) {
               return SumOf(0, 3, 1, [&](int64_t k) {
                 return s(i / 2 * 3 + k) * Input("l", static_cast<int>(i / 2 / 3), k * 2 + i % 2);
               });
             });
}

TEST(Evaluation, FoldsDimensions) {
  const std::string in = "input x : f32[3, 5] replicated\n";
  const auto x = [](int64_t i) { return Input("x", 0, i); };
  ExpectNear(AllOf(in + "output y = sum(x, 1)\n", 2), 3,
             [&](int64_t r) { return SumOf(5 * r, 5 * r + 5, 1, x); });
  ExpectNear(AllOf(in + "output y = mean(x, 0)\n", 2), 5,
             [&](int64_t c) { return SumOf(c, 15, 5, x) / 3; });
  ExpectNear(AllOf(in + "output y = sum(x)\n", 2), 1, [&](int64_t) { return SumOf(0, 15, 1, x); });
  ExpectNear(AllOf(in + "output y = amax(x, 1)\n", 1), 3, [&](int64_t r) {
    double most = x(5 * r);
    for (int64_t c = 1; c < 5; ++c) most = std::max(most, x(5 * r + c));
    return most;
  });
}

TEST(Evaluation, FoldsOfSlicesAddUp) {
  for (const char* layout : {"sliced(0)", "sliced(1)", "sliced(flat)"}) {
    const std::string in = std::string("input x : f32[7, 5] ") + layout + "\n";
    const auto x = [](int64_t i) { return Input("x", 0, i); };
    ExpectNear(AllOf(in + "output y = all_reduce(sum, sum(x))\n", 3), 1,
               [&](int64_t) { return SumOf(0, 35, 1, x); });
    ExpectNear(AllOf(in + "output y = all_reduce(sum, mean(x))\n", 3), 1,
               [&](int64_t) { return SumOf(0, 35, 1, x) / 35; });
    ExpectNear(AllOf(in + "output y = norm(x)\n", 3), 1, [&](int64_t) {
      return std::sqrt(SumOf(0, 35, 1, [&](int64_t i) { return x(i) * x(i); }));
    });
  }
  // One rank's share: rows 3 to 5 of 7 over 3 ranks.
  ExpectNear(AllOf("input x : f32[7, 5] sliced(0)\noutput y = sum(x)\n", 3, 1), 1,
             [&](int64_t) { return SumOf(15, 30, 1, [](int64_t i) { return Input("x", 0, i); }); });
}

TEST(Evaluation, FoldsWithinFolds) {
  const Expected y = AllOf("input x : f32[4, 6] replicated\noutput y = softmax(x)\n", 1);
  for (int64_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < 6; ++c) sum += std::exp(Input("x", 0, 6 * r + c));
    for (int64_t c = 0; c < 6; ++c) {
      EXPECT_NEAR(y.value[6 * r + c].real(), std::exp(Input("x", 0, 6 * r + c)) / sum, 1e-9);
      EXPECT_LT(y.error[6 * r + c], 1e-5);
    }
  }
}

TEST(Evaluation, SumsAreBoundTightly) {
  const Expected y = AllOf("input x : f32[100000] replicated\noutput y = sum(x * x / 3)\n", 1);
  EXPECT_LT(y.error[0], 1e-6 * y.value[0].real());
  EXPECT_GT(y.error[0], 0);
}

TEST(Evaluation, EmptyFolds) {
  EXPECT_EQ(AllOf("input x : f32[3, 0] replicated\noutput y = sum(x, 1)\n", 1).value,
            (std::vector<Number>{0, 0, 0}));
  EXPECT_EQ(AllOf("input x : f32[0] replicated\noutput y = amax(x)\n", 1).value[0], -INFINITY);
}

TEST(Evaluation, MatMul) {
  const auto a = [](int64_t i) { return Input("a", 0, i); };
  const auto b = [](int64_t i) { return Input("b", 0, i); };
  const auto dot = [&](int64_t i) {  // a[2, 3, 4] . b[4, 5]
    return SumOf(0, 4, 1, [&](int64_t k) { return a(i / 5 * 4 + k) * b(5 * k + i % 5); });
  };
  ExpectNear(AllOf("input a : f32[2, 3, 4] replicated\ninput b : f32[4, 5] replicated\noutput y = "
                   "matmul(a, b)\n",
                   2),
             30, dot);
  ExpectNear(AllOf("input a : f32[2, 3, 4] sliced(2)\ninput b : f32[4, 5] sliced(0)\noutput y = "
                   "all_reduce(sum, matmul(a, b))\n",
                   3),
             30, dot);
  ExpectNear(AllOf("input a : f32[2, 3, 4] sliced(1)\ninput b : f32[4, 5] replicated\noutput y = "
                   "all_gather(matmul(a, b))\n",
                   2),
             30, dot);
  ExpectNear(AllOf("input a : f32[4, 3] replicated\ninput b : f32[5, 4] replicated\n"
                   "output y = matmul(a, b, transpose_a, transpose_b)\n",
                   1),
             15, [&](int64_t i) {
               return SumOf(0, 4, 1,
                            [&](int64_t k) { return a(3 * k + i / 5) * b(i % 5 * 4 + k); });
             });
  ExpectNear(AllOf("input a : f32[2, 3, 4] replicated\ninput b : f32[2, 4, 5] replicated\noutput y "
                   "= matmul(a, b)\n",
                   1),
             30, [&](int64_t i) {
               return SumOf(0, 4, 1, [&](int64_t k) {
                 return a(i / 5 * 4 + k) * b(i / 15 * 20 + 5 * k + i % 5);
               });
             });
}

TEST(Evaluation, MatMulOfWhatEachRankHas) {
  const Expected y = AllOf(
      "input a : f32[2, 6] sliced(1)\ninput b : f32[6, 2] sliced(0)\noutput y = matmul(a, b)\n", 2,
      1);
  for (int64_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (int64_t k = 3; k < 6; ++k)
      sum += Input("a", 0, i / 2 * 6 + k) * Input("b", 0, 2 * k + i % 2);
    EXPECT_NEAR(y.value[i].real(), sum, 1e-9);
  }
}

TEST(Evaluation, Views) {
  const auto x = [](int64_t i) { return Input("x", 0, i); };
  ExpectNear(AllOf("input x : f32[2, 3, 4] replicated\noutput y = transpose(x, 2, 0, 1)\n", 1), 24,
             [&](int64_t i) { return x(i / 3 % 2 * 12 + i % 3 * 4 + i / 6); });
  ExpectNear(AllOf("input x : f32[2, 3, 4] replicated\noutput y = slice(x, 1, 1, 3)\n", 1), 16,
             [&](int64_t i) { return x(i / 8 * 12 + (i / 4 % 2 + 1) * 4 + i % 4); });
  ExpectNear(AllOf("input x : f32[2, 3, 4] replicated\noutput y = reshape(x, [6, 4]) + 1\n", 1), 24,
             [&](int64_t i) { return x(i) + 1; });
}

TEST(Evaluation, JoinsTensors) {
  const std::string in = "input x : f32[2, 3] replicated\ninput z : f32[2, 1] replicated\n";
  ExpectNear(AllOf(in + "output y = concat(x, z, x, 1)\n", 1), 14, [](int64_t i) {
    const int64_t row = i / 7, at = i % 7;
    if (at == 3) return Input("z", 0, row);
    return Input("x", 0, row * 3 + (at < 3 ? at : at - 4));
  });
  ExpectNear(AllOf(in + "output y = concat(x, x * 2, x[2:], 0)\n", 1), 12,
             [](int64_t i) { return i < 6 ? Input("x", 0, i) : 2 * Input("x", 0, i - 6); });
  // Slices of two ranks, each with values of its own behind them.
  const Expected joined = AllOf(
      "input s : f32[4, 2] sliced(0)\ninput l : f32[4, 1] local\n"
      "output y = all_gather(concat(l, s * 0.5, 1))\n",
      2);
  ExpectNear(joined, 12, [](int64_t i) {
    const int64_t row = i / 3, at = i % 3;
    return at == 0 ? Input("l", row / 2 == 0 ? 0 : 1, row) : Input("s", 0, row * 2 + at - 1) / 2;
  });
}

TEST(Evaluation, DropoutIsPhilox) {
  // Known answers of Philox4x32-10 (Random123's kat_vectors).
  EXPECT_EQ(Philox({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const std::string in = "input x : f32[30000] ";
  const Expected y = AllOf(in + "replicated\noutput y = dropout(x + 20, 42, 0.1)\n", 2);
  int dropped = 0;
  for (int64_t i = 0; i < 30000; ++i) {
    const bool keep = RandomWord(i, 0, 42) >= 429496730;  // 0.1 * 2^32, rounded up
    EXPECT_NEAR(y.value[i].real(), keep ? (Input("x", 0, i) + 20) / 0.9 : 0, 1e-9);
    dropped += !keep;
  }
  EXPECT_NEAR(dropped, 3000, 5 * std::sqrt(2700));
  EXPECT_EQ(
      AllOf(
          in + "sliced(0)\ninput seed : i64[]\noutput y = all_gather(dropout(x + 20, seed, 0.1))\n",
          3)
          .value,
      y.value);
  EXPECT_NE(AllOf(in + "replicated\noutput y = dropout(x + 20, 42, 0.1, 1)\n", 1).value, y.value);
}

TEST(Evaluation, StochasticRoundingHasTheMeanOfWhatItRounds) {
  // 1 + 3/8 of the distance to the next bf16 number, 1 + 2^-7; and numbers that bf16 has.
  const std::string in = "input x : f32[100000] replicated\n";
  const double next = 1 + 0x1p-7, third = 1 + 0x3p-10;
  const Expected y = AllOf(in + "output y = round_stochastic(x * 0 + 1.0029296875, 42)\n", 1);
  double sum = 0;
  for (int64_t i = 0; i < 100000; ++i) {
    const bool up = (RandomWord(i, 0, 42) >> 16) + 0x6000 >= 0x10000;
    EXPECT_EQ(y.value[i], up ? next : 1) << i;
    sum += y.value[i].real();
  }
  EXPECT_NEAR(sum / 100000, third, 5 * 0x1p-7 * std::sqrt(0.375 * 0.625 / 100000));
  const Expected exact = AllOf(in + "output y = round_stochastic(x * 0 - 1.5, 42, 7)\n", 1);
  for (const Number& value : exact.value) EXPECT_EQ(value, -1.5);
  EXPECT_EQ(RoundedByWord(0x7f800000, 0xffffffff), 0x7f800000u);  // infinity
  EXPECT_EQ(RoundedByWord(0x7f800001, 0) >> 16, 0x7fc0u);         // NaN stays one
}

TEST(Evaluation, IndicesAreThoseOfTheGlobalTensor) {
  for (const char* layout : {"replicated", "sliced(0)", "sliced(1)", "sliced(2)", "sliced(flat)"}) {
    for (int dim : {0, 1, 2}) {
      const bool whole = std::string(layout) == "replicated";
      const std::string x = absl::StrCat("input x : f32[3, 5, 7] ", layout, "\noutput y = ");
      const std::string iota = absl::StrCat("iota(i32, x, ", dim, ")");
      ExpectNear(
          AllOf(absl::StrCat(x, whole ? iota : absl::StrCat("all_gather(", iota, ")"), "\n"), 4, 1),
          105, [&](int64_t i) { return dim == 0   ? i / 35
                                       : dim == 1 ? i / 7 % 5
                                                  : i % 7; });
    }
  }
}

TEST(Evaluation, GathersRowsAndZerosForIndicesThatAreOutOfRange) {
  const auto taken = [](int64_t rows, int64_t columns, int64_t i) {
    const auto row = static_cast<int64_t>(Input("i", 0, i / columns));  // from -9 to 9
    return row < 0 || row >= rows ? 0 : Input("x", 0, row * columns + i % columns);
  };
  const std::string i = "input i : i32[4, 5] replicated\n";
  ExpectNear(AllOf(i + "input x : f32[7, 3] replicated\noutput y = gather(x, i, 0)\n", 1), 60,
             [&](int64_t at) { return taken(7, 3, at); });
  ExpectNear(AllOf(i + "input x : f32[7] replicated\noutput y = gather(x, i, 0)\n", 1), 20,
             [&](int64_t at) { return taken(7, 1, at); });
  ExpectNear(AllOf(i + "input x : f32[2, 7, 3] replicated\noutput y = gather(x, i, 1)\n", 1), 120,
             [&](int64_t at) {
               const auto row = static_cast<int64_t>(Input("i", 0, at / 3 % 20));
               return row < 0 || row >= 7 ? 0 : Input("x", 0, at / 60 * 21 + row * 3 + at % 3);
             });
  // The ranks' rows, and those of slices of the indices or of other dimensions.
  const Expected whole =
      AllOf(i + "input x : f32[7, 3] replicated\noutput y = gather(x, i, 0)\n", 1);
  for (const char* sliced :
       {"input x : f32[7, 3] sliced(0)\noutput y = all_reduce(sum, gather(x, i, 0))\n",
        "input x : f32[7, 3] sliced(1)\noutput y = all_gather(gather(x, i, 0))\n",
        "input x : f32[7, 3] replicated\noutput y = all_gather(gather(x, shard(i, 1), 0))\n"})
    EXPECT_EQ(AllOf(i + sliced, 3, 2).value, whole.value) << sliced;
  const Expected part =
      AllOf(i + "input x : f32[7, 3] sliced(0)\noutput y = gather(x, i, 0)\n", 4, 3);
  for (int64_t at = 0; at < 60; ++at) {  // rank 3 has row 6
    const double row = Input("i", 0, at / 3);
    EXPECT_EQ(part.value[at], row == 6 ? Input("x", 0, 18 + at % 3) : 0);
  }
}

TEST(Evaluation, AGatherPassesOnItsTablesErrorsAndDoubtsIndicesThatHaveSome) {
  const std::string in = "input x : f32[7] replicated\ninput i : i32[9] replicated\n";
  const Expected rounded = AllOf(in + "output y = gather(x / 3, i, 0)\n", 1);
  for (int64_t at = 0; at < 9; ++at) {
    const double row = Input("i", 0, at);
    const bool is_rounded = row >= 0 && row < 7 && std::fmod(Input("x", 0, row), 3) != 0;
    EXPECT_EQ(rounded.error[at] > 0, is_rounded) << row;
    EXPECT_TRUE(std::isfinite(rounded.error[at]));
  }
  const Expected doubtful =
      AllOf(in + "output y = gather(x, cast(i32, cast(f32, i) / 3 * 3), 0)\n", 1);
  for (int64_t at = 0; at < 9; ++at) {
    const bool exact = std::fmod(Input("i", 0, at), 3) == 0;
    EXPECT_EQ(std::isinf(doubtful.error[at]), !exact) << at;
  }
}

TEST(Evaluation, BagsAreSumsOfTheRowsThatThereAre) {
  // Indices from -9 to 9; offsets in any order, clamped to the indices.
  const auto pooled = [](int64_t begin, int64_t end, int64_t rows, int64_t column, bool mean,
                         bool weighted) {
    double sum = 0, count = 0;
    for (int64_t k = begin; k < end; ++k) {
      const auto row = static_cast<int64_t>(Input("i", 0, k));
      if (row < 0 || row >= rows) continue;
      sum += Input("x", 0, row * 3 + column) * (weighted ? Input("w", 0, k) : 1);
      ++count;
    }
    return mean && count > 0 ? sum / count : sum;
  };
  const std::string in = "input x : f32[7, 3] replicated\ninput i : i32[5, 4] replicated\n";
  const auto of_bag = [&](bool mean, bool weighted) {
    return [&pooled, mean, weighted](int64_t at) {
      return pooled(at / 3 * 4, at / 3 * 4 + 4, 7, at % 3, mean, weighted);
    };
  };
  ExpectNear(AllOf(in + "output y = embedding_bag(x, i, sum)\n", 1), 15, of_bag(false, false));
  ExpectNear(AllOf(in + "output y = embedding_bag(x, i, mean)\n", 1), 15, of_bag(true, false));
  ExpectNear(
      AllOf(in + "input w : f32[5, 4] replicated\noutput y = embedding_bag(x, i, w, sum)\n", 1), 15,
      of_bag(false, true));
  const std::string ragged =
      "input x : f32[7, 3] replicated\ninput i : i32[8] replicated\ninput o : i32[9] replicated\n";
  const auto offset = [](int64_t bag) {
    if (bag == 9) return int64_t{8};
    return std::clamp<int64_t>(static_cast<int64_t>(Input("o", 0, bag)), 0, 8);
  };
  ExpectNear(AllOf(ragged + "output y = embedding_bag(x, i, o, sum)\n", 1), 27, [&](int64_t at) {
    return pooled(offset(at / 3), offset(at / 3 + 1), 7, at % 3, false, false);
  });
  // However the table lies.
  const Expected whole = AllOf(in + "output y = embedding_bag(x, i, mean)\n", 1);
  for (const char* sliced :
       {"input x : f32[7, 3] sliced(0)\noutput y = all_reduce(sum, embedding_bag(x, i, mean))\n",
        "input x : f32[7, 3] sliced(1)\noutput y = all_gather(embedding_bag(x, i, mean))\n"}) {
    const Expected found = AllOf(absl::StrCat("input i : i32[5, 4] replicated\n", sliced), 3, 2);
    for (int64_t at = 0; at < 15; ++at)
      EXPECT_NEAR(found.value[at].real(), whole.value[at].real(), found.error[at] + whole.error[at])
          << sliced;
  }
}

TEST(Evaluation, DropoutThresholdsStayInRange) {
  EXPECT_EQ(DropoutThreshold(0), 0u);
  EXPECT_EQ(DropoutThreshold(0.5), 0x80000000u);
  EXPECT_EQ(DropoutThreshold(1 - 1e-16), 0xffffffffu);
}

TEST(Evaluation, Communication) {
  const std::string in = "input x : f32[4] local\n";
  ExpectNear(AllOf(in + "output y = broadcast(x, 2)\n", 3), 4,
             [](int64_t i) { return Input("x", 2, i); });
  const auto sum = [](int64_t i) { return Input("x", 0, i) + Input("x", 1, i); };
  ExpectNear(AllOf(in + "output y = reduce(sum, x, 1)\n", 2, 1), 4, sum);
  ExpectNear(AllOf(in + "output y = reduce(sum, x, 1)\n", 2, 0), 4, [](int64_t) { return 0; });
  ExpectNear(AllOf("input x : f32[4, 6] sliced(0)\noutput y = all_gather(all_to_all(x, 1))\n", 2),
             24, [](int64_t i) { return Input("x", 0, i); });
  absl::StatusOr<Interpreter> none =
      Interpreter::Create(*Parse("coconet 1\n" + in + "output y = broadcast(x, 2)\n"), 2);
  EXPECT_EQ(none.status().message(),
            "interpret: broadcast(x, 2): want a rank from 0 to 1, have 2; there are 2 ranks");
}

TEST(Evaluation, StagesPassValuesOn) {
  const std::string in = "input x : f32[4] local\noutput y = send(all_reduce(sum, x), ";
  // Three stages of two ranks: stage 1 gets what ranks 0 and 1 have, or ranks 4 and 5.
  const auto sum_of = [](int first) {
    return [first](int64_t i) { return Input("x", first, i) + Input("x", first + 1, i); };
  };
  ExpectNear(AllOf(in + "next)\n", 2, 3, 3), 4, sum_of(0));
  ExpectNear(AllOf(in + "previous)\n", 2, 3, 3), 4, sum_of(4));
  ExpectNear(AllOf(in + "next)\n", 2, 1, 3), 4, [](int64_t) { return 0; });
  ExpectNear(AllOf(in + "previous)\n", 2, 4, 3), 4, [](int64_t) { return 0; });
  ExpectNear(AllOf("input x : f32[4] replicated\noutput y = x\n", 2, 5, 3), 4,
             [](int64_t i) { return Input("x", 4, i); });
}

}  // namespace
}  // namespace coconet
