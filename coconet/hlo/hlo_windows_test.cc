#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/hlo/testing/imported_results.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(HloWindows, ReductionsByAnyComputation) {
  EXPECT_EQ(Result("x = f32[3,5] parameter(0)\n c = f32[] constant(2)\n"
                   "r = f32[3] reduce(x, c), dimensions={1}, to_apply=mul"),
            List(3, [](int64_t row) {
              double product = 2;
              for (int64_t i = 0; i < 5; ++i) product *= In("x", 5 * row + i);
              return product;
            }));
  // The index of the greatest element, of equal ones the first.
  EXPECT_EQ(Result("x = f32[7,3] parameter(0)\n i = s32[7,3] iota(), iota_dimension=0\n"
                   "l = f32[] constant(-inf)\n z = s32[] constant(0)\n"
                   "t = (f32[3], s32[3]) reduce(x, i, l, z), dimensions={0}, "
                   "to_apply=first_greatest\n"
                   "r = s32[3] get-tuple-element(t), index=1"),
            List(3, [](int64_t column) {
              int64_t best = 0;
              for (int64_t i = 1; i < 7; ++i) {
                if (In("x", 3 * i + column) > In("x", 3 * best + column)) best = i;
              }
              return static_cast<double>(best);
            }));
}

/// Windows of a 7 x 6 array, in both dimensions alike.
struct Windows {
  int64_t size, stride, before, after, dilation;
  int64_t count(int64_t extent) const {
    return (extent + before + after - (size - 1) * dilation - 1) / stride + 1;
  }
  std::string Text() const {
    const auto both = [](const std::string& s) { return absl::StrCat(s, "x", s); };
    return absl::StrCat("window={size=", both(absl::StrCat(size)),
                        " stride=", both(absl::StrCat(stride)),
                        " pad=", both(absl::StrCat(before, "_", after)),
                        " rhs_dilate=", both(absl::StrCat(dilation)), "}");
  }
};

TEST(HloWindows, ReductionsByComputationsThatCallOthers) {
  const std::string computations = R"(

pair { a = f32[] parameter(0)
  b = f32[] parameter(1)
  p = f32[] call(a, b), to_apply=mul
  ROOT t = (f32[], f32[]) tuple(p, a) }
called { a = f32[] parameter(0)
  b = f32[] parameter(1)
  t = (f32[], f32[]) call(a, b), to_apply=pair
  p = f32[] get-tuple-element(t), index=0
  ROOT r = f32[] fusion(p), kind=kLoop, calls=same }
same { a = f32[] parameter(0)
  ROOT r = f32[] maximum(a, a) }
endless { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] call(a, b), to_apply=endless })";
  const std::string reduce =
      "x = f32[3,4] parameter(0)\n c = f32[] constant(2)\n"
      "r = f32[3] reduce(x, c), dimensions={1}, to_apply=";
  EXPECT_EQ(Result(reduce + "called", 1, 0, computations), Result(reduce + "mul"));
  EXPECT_THAT(std::string(Import(Module(reduce + "endless", computations)).status().message()),
              ::testing::HasSubstr("1 x call nested too deep in a reduction"));
  std::string doubled = "\n\nc0 { a = f32[] parameter(0)\n ROOT r = f32[] add(a, a) }\n";
  for (int i = 1; i < 60; ++i) {
    absl::StrAppend(&doubled, "c", i, " { a = f32[] parameter(0)\n b = f32[] call(a), to_apply=c",
                    i - 1, "\n ROOT r = f32[] call(b), to_apply=c", i - 1, " }\n");
  }
  doubled +=
      "most { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
      " ROOT r = f32[] call(a), to_apply=c59 }";
  EXPECT_THAT(std::string(Import(Module(reduce + "most", doubled)).status().message()),
              ::testing::HasSubstr("in a reduction of more than 65536 operations"));
}

TEST(HloWindows, WindowsAreReduced) {
  for (const Windows& w :
       {Windows{2, 1, 0, 0, 1}, Windows{3, 2, 1, 1, 1}, Windows{5, 1, 4, 0, 1},
        Windows{2, 1, 0, 1, 3}, Windows{1, 2, 0, 0, 1}, Windows{6, 3, 2, 3, 1}}) {
    const int64_t rows = w.count(7), columns = w.count(6);
    for (const bool sums : {true, false}) {
      const auto expected = [&](int64_t index) {
        double result = sums ? 0 : -100;
        for (int64_t i = 0; i < w.size; ++i) {
          for (int64_t j = 0; j < w.size; ++j) {
            const int64_t r = index / columns * w.stride + i * w.dilation - w.before;
            const int64_t c = index % columns * w.stride + j * w.dilation - w.before;
            if (r < 0 || r >= 7 || c < 0 || c >= 6) continue;
            const double x = In("x", 6 * r + c);
            result = sums ? result + x : std::max(result, x);
          }
        }
        return result;
      };
      EXPECT_EQ(Result(absl::StrCat("x = f32[7,6] parameter(0)\n z = f32[] constant(",
                                    sums ? "0" : "-100", ")\n r = f32[", rows, ",", columns,
                                    "] reduce-window(x, z), ", w.Text(),
                                    ", to_apply=", sums ? "add" : "max")),
                List(rows * columns, expected))
          << w.Text();
    }
  }
}

TEST(HloWindows, SelectsInWindowsAndScatters) {
  for (const Windows& w :
       {Windows{2, 2, 0, 0, 1}, Windows{3, 2, 1, 1, 1}, Windows{3, 1, 0, 0, 1}}) {
    const int64_t rows = w.count(7), columns = w.count(6);
    std::vector<double> expected(42, 5);  // the initial value
    for (int64_t index = 0; index < rows * columns; ++index) {
      int64_t best = -1;
      for (int64_t i = 0; i < w.size; ++i) {
        for (int64_t j = 0; j < w.size; ++j) {
          const int64_t r = index / columns * w.stride + i - w.before;
          const int64_t c = index % columns * w.stride + j - w.before;
          if (r < 0 || r >= 7 || c < 0 || c >= 6) continue;
          if (best < 0 || In("x", 6 * r + c) > In("x", best)) best = 6 * r + c;
        }
      }
      expected[static_cast<size_t>(best)] += In("y", index);
    }
    EXPECT_EQ(Result(absl::StrCat("x = f32[7,6] parameter(0)\n y = f32[", rows, ",", columns,
                                  "] parameter(1)\n z = f32[] constant(5)\n "
                                  "r = f32[7,6] select-and-scatter(x, y, z), ",
                                  w.Text(), ", select=at_least, scatter=add")),
              std::vector<Number>(expected.begin(), expected.end()))
        << w.Text();
  }
}

}  // namespace
}  // namespace coconet
