#include "runtime/node/gemm_problem.h"

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// c[2, 3, 5] = a[2, 3, 4] . b[2, 4, 5], contiguous, in buffers of exactly that size.
GemmStep Example() {
  return {.dtype = DType::kF32,
          .batch = 2,
          .m = {3},
          .n = {5},
          .k = {4},
          .a = {.buffer = 0, .ld = 4, .batch_stride = 12},
          .b = {.buffer = 1, .ld = 5, .batch_stride = 20},
          .c = {.buffer = 2, .ld = 5, .batch_stride = 15},
          .label = "MM"};
}

std::vector<Buffer> Buffers() {
  return {{"a", BufferRole::kInput, DType::kF32, 24, false},
          {"b", BufferRole::kInput, DType::kF32, 40, false},
          {"c", BufferRole::kOutput, DType::kF32, 30, false},
          {"h", BufferRole::kInput, DType::kF16, 100, false},
          {"flags", BufferRole::kSync, DType::kF32, 100, false}};
}

/// CheckGemm's message for the example after `change`; "" for OK.
std::string Refusal(const std::function<void(GemmStep&)>& change) {
  GemmStep step = Example();
  change(step);
  return std::string(CheckGemm(step, Buffers()).message());
}

TEST(CheckGemm, AcceptsWhatFits) {
  EXPECT_EQ(Refusal([](GemmStep&) {}), "");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.b.batch_stride = 0; }), "");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.transpose_a = true, s.a.ld = 3; }), "");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.m.total = 0, s.c.offset = 30; }), "");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.batch = 1, s.a.batch_stride = s.c.batch_stride = kMost; }),
            "");
  // Batches of c side by side in each row.
  EXPECT_EQ(Refusal([](GemmStep& s) { s.c.ld = 10, s.c.batch_stride = 5; }), "");
  // The rank with the largest part decides.
  EXPECT_EQ(Refusal([](GemmStep& s) { s.m = {1000, 3}; }), "");
  // a and c in different parts of one buffer.
  EXPECT_EQ(Refusal([](GemmStep& s) { s.batch = 1, s.a.buffer = 2, s.a.offset = 15; }), "");
}

TEST(CheckGemm, RefusesScalesThatItCannotTake) {
  const auto refusal = [](const std::function<void(GemmStep&)>& change) {
    GemmStep step = Example();
    step.a.float8 = step.b.float8 = DType::kF8E4M3;
    step.a.scales = {.buffer = 3, .ld = 2, .batch_stride = 6, .block_columns = 2};
    step.b.scales = {.buffer = 3, .ld = 1, .block_rows = 3, .block_columns = 5, .first_row = 2};
    change(step);
    std::vector<Buffer> buffers = Buffers();
    buffers[0].dtype = buffers[1].dtype = DType::kF8E4M3;
    buffers[3] = {"scales", BufferRole::kInput, DType::kF32, 12, false};
    return std::string(CheckGemm(step, buffers).message());
  };
  EXPECT_EQ(refusal([](GemmStep&) {}), "");
  EXPECT_EQ(refusal([](GemmStep& s) { s.a.scales.offset = 1; }),
            "Bind: MM: want 13 elements in %3 for the scales of a, have 12");
  EXPECT_EQ(refusal([](GemmStep& s) { s.b.scales.offset = 11; }),
            "Bind: MM: want 13 elements in %3 for the scales of b, have 12");
  EXPECT_EQ(refusal([](GemmStep& s) { s.a.scales.buffer = 4; }),
            "Bind: MM: want a buffer of f32 as the scales of a, have one of flags");
  EXPECT_EQ(refusal([](GemmStep& s) { s.a.scales.buffer = -1; }),
            "Bind: MM: want scales of two operands of 8-bit floats, have others");
  EXPECT_EQ(refusal([](GemmStep& s) { s.b.scales.block_rows = 0; }),
            "Bind: MM: want blocks of scales, and a place in one, have [0, 5] from [2, 0]");
  EXPECT_EQ(refusal([](GemmStep& s) { s.rows.counts = 3; }),
            "Bind: MM: want all rows of a product with scales, have some");
}

TEST(CheckGemm, RefusesTypesItCannotMultiply) {
  for (DType dtype : {DType::kF64, DType::kI32, DType::kI64, DType::kU8, DType::kBool}) {
    EXPECT_EQ(Refusal([&](GemmStep& s) { s.dtype = dtype; }),
              "Bind: MM: want f32, f16 or bf16, have " + std::string(Name(dtype)));
  }
  EXPECT_EQ(Refusal([](GemmStep& s) { s.b.buffer = 3; }),
            "Bind: MM: want a buffer of f32 as b, have f16");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.float8 = s.b.float8 = DType::kF8E4M3; }),
            "Bind: MM: want a buffer of f8e4m3 as a, have f32");
  constexpr char kBoth[] =
      "Bind: MM: want both operands of 8-bit floats, and a result in f32, or neither, have ";
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.float8 = DType::kF8E4M3; }),
            absl::StrCat(kBoth, "f8e4m3, f32 and f32"));
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.float8 = s.b.float8 = DType::kF16; }),
            absl::StrCat(kBoth, "f16, f16 and f32"));
  EXPECT_EQ(Refusal([](GemmStep& s) {
              s.a.float8 = s.b.float8 = DType::kF8E5M2;
              s.dtype = DType::kBF16;
            }),
            absl::StrCat(kBoth, "f8e5m2, f8e5m2 and bf16"));
  EXPECT_EQ(Refusal([](GemmStep& s) { s.b.buffer = 4; }),
            "Bind: MM: want a buffer of f32 as b, have one of flags");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.c.buffer = 5; }),
            "Bind: MM: want a buffer of the plan as c, have %5");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.buffer = -1; }),
            "Bind: MM: want a buffer of the plan as a, have %-1");
}

TEST(CheckGemm, RefusesWhatLeavesABuffer) {
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.offset = 1; }),
            "Bind: MM: want 25 elements in %0 for a, have 24");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.b.batch_stride = 21; }),
            "Bind: MM: want 41 elements in %1 for b, have 40");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.c.ld = 6; }),
            "Bind: MM: want 32 elements in %2 for c, have 30");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.transpose_b = true; }),
            "Bind: MM: want 44 elements in %1 for b, have 40");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.m = {8, 4}; }),
            "Bind: MM: want 28 elements in %0 for a, have 24");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.offset = kMost; }),
            "Bind: MM: want 2^63 or more elements in %0 for a, have 24");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.batch = kMost, s.a.batch_stride = kMost; }),
            "Bind: MM: want 2^63 or more elements in %0 for a, have 24");
}

TEST(CheckGemm, RefusesNumbersThatMeanNothing) {
  EXPECT_EQ(Refusal([](GemmStep& s) { s.threads = 0; }),
            "Bind: MM: want 1 to 1024 threads, have 0");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.candidate = -1; }),
            "Bind: MM: want no negative candidate or beside, have -1 and 0");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.beside = -2; }),
            "Bind: MM: want no negative candidate or beside, have 0 and -2");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.batch = -1; }), "Bind: MM: want no negative size, have -1");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.n.per = -2; }), "Bind: MM: want no negative size, have -2");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.b.offset = -1; }),
            "Bind: MM: want no negative offset or stride of b, have -1 and 20");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.a.ld = 3; }),
            "Bind: MM: want rows of a at least 4 apart, have 3");
}

TEST(CheckGemm, RefusesResultsThatOverlap) {
  EXPECT_EQ(Refusal([](GemmStep& s) { s.c.batch_stride = 14; }),
            "Bind: MM: want batches of c that do not overlap, have a batch stride of 14");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.c.batch_stride = 0; }),
            "Bind: MM: want batches of c that do not overlap, have a batch stride of 0");
  EXPECT_EQ(Refusal([](GemmStep& s) { s.batch = 1, s.a.buffer = 2, s.a.offset = 14; }),
            "Bind: MM: want c apart from a, have both in the same part of %2");
}

TEST(ProblemOf, IsOneTallMatrixWhereBatchesAreRows) {
  GemmStep step = Example();
  step.b.batch_stride = 0;
  EXPECT_EQ(ProblemOf(step, 0),
            (GemmProblem{1, 6, 5, 4, {0, 0, 4, 1}, {0, 0, 5, 1}, {0, 0, 5, 1}}));
  step.a.batch_stride = 16;
  EXPECT_EQ(ProblemOf(step, 0).batch, 2);
}

TEST(ProblemOf, DependsOnTheRank) {
  GemmStep step = Example();
  step.n = {5, 3};
  EXPECT_EQ(ProblemOf(step, 0).n, 3);
  EXPECT_EQ(ProblemOf(step, 1).n, 2);
  EXPECT_EQ(ProblemOf(step, 2), GemmProblem{});
}
/// Offsets of a's row, b's column and c's element.
using Element = std::tuple<int64_t, int64_t, int64_t>;

/// All elements that the problems compute; fails on duplicates.
std::set<Element> ElementsOf(const std::vector<GemmProblem>& problems) {
  std::set<Element> elements;
  for (const GemmProblem& p : problems) {
    for (int64_t t = 0; t < p.batch; ++t) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          EXPECT_TRUE(
              elements.insert({p.a.At(t, i, 0).begin, p.b.At(t, 0, j).begin, p.c.At(t, i, j).begin})
                  .second);
        }
      }
    }
  }
  return elements;
}

TEST(Cut, LosesNothing) {
  for (const auto& [batch, m, n] :
       {Element{1, 1, 1}, {3, 17, 65}, {1, 100, 3}, {5, 1, 300}, {2, 33, 129}}) {
    const GemmProblem whole{.batch = batch,
                            .m = m,
                            .n = n,
                            .k = 7,
                            .a = {3, 1000 * m, 1000, 1},
                            .b = {5, 7000000, 1, 9},
                            .c = {0, 10000 * m, 10000, 1}};
    for (int parts : {1, 2, 3, 4, 6, 8, 13}) {
      const std::vector<GemmProblem> cut = CutEvenly(whole, parts);
      EXPECT_EQ(static_cast<int>(cut.size()), parts);
      EXPECT_EQ(ElementsOf(cut), ElementsOf({whole}))
          << batch << " x " << m << " x " << n << " in " << parts;
    }
  }
}

TEST(Cut, SharesTheWork) {
  const auto most = [](const GemmProblem& whole, int parts) {
    int64_t work = 0;
    for (const GemmProblem& p : CutEvenly(whole, parts)) work = std::max(work, p.batch * p.m * p.n);
    return work;
  };
  EXPECT_EQ(most({.batch = 1, .m = 512, .n = 512, .k = 8, .a = {}, .b = {}, .c = {}}, 4),
            512 * 512 / 4);
  EXPECT_EQ(most({.batch = 4, .m = 8, .n = 8, .k = 8, .a = {}, .b = {}, .c = {}}, 4), 8 * 8);
  EXPECT_EQ(most({.batch = 3, .m = 64, .n = 64, .k = 8, .a = {}, .b = {}, .c = {}}, 4),
            3 * 16 * 64);
  EXPECT_EQ(most({.batch = 1, .m = 16, .n = 4096, .k = 8, .a = {}, .b = {}, .c = {}}, 2),
            16 * 2048);
}

}  // namespace
}  // namespace coconet
