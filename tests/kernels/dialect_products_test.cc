// Matrix products of few rows in the host's kernel dialect, on every compiler and every level of
// machine features that is here: numbers of rows, columns and depths around every block size, by
// one block and by several, each type, each transpose (of a in
// f32 alone). Elements are small integers, so that every
// order of adding gives the same sum.

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/kernels/dialect.h"

namespace coconet {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

struct Form {
  DType dtype;
  bool transpose_a, transpose_b;
  std::string name() const {
    return absl::StrCat("product_", Name(dtype), transpose_a ? "_t" : "_n",
                        transpose_b ? "t" : "n");
  }
};
std::vector<Form> Forms() {
  std::vector<Form> forms;
  for (DType dtype : kTypes) {
    for (bool transpose_b : {false, true}) {
      forms.push_back({dtype, false, transpose_b});
      if (dtype == DType::kF32) forms.push_back({dtype, true, transpose_b});
    }
  }
  return forms;
}

std::string TextOf(const Form& form) {
  const auto flag = [](bool is) { return is ? "true" : "false"; };
  return absl::StrReplaceAll(
      R"(
namespace @name@_n {
using namespace coconet;
struct Params { Product<@T@> product; };
CC_KERNEL(@name@) { MultiplyFewRows<@a@, @b@>(grid, p.product); }
}
)",
      {{"@name@", form.name()},
       {"@T@", Name(form.dtype)},
       {"@a@", flag(form.transpose_a)},
       {"@b@", flag(form.transpose_b)}});
}

struct Shape {
  int64_t m = 0, n = 0, k = 0;
  bool operator<(const Shape& other) const {
    return std::tie(m, n, k) < std::tie(other.m, other.n, other.k);
  }
};

/// [rows, columns] of a matrix, whose stored rows have `gap` further elements.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<int> elements;
  int at(int64_t i, int64_t j) const { return elements[i * columns + j]; }
  Column Stored(DType dtype, bool transposed, int64_t gap) const {
    const int64_t outer = transposed ? columns : rows, inner = transposed ? rows : columns;
    std::vector<Number> values(outer * (inner + gap), 77);  // 77: is not to be read
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j)
        values[i * (inner + gap) + j] = transposed ? at(j, i) : at(i, j);
    }
    return Column(dtype, values);
  }
};
Matrix Drawn(int64_t rows, int64_t columns, int seed) {
  std::mt19937 random(seed);
  Matrix m{rows, columns, std::vector<int>(rows * columns)};
  for (int& element : m.elements) element = static_cast<int>(random() % 9) - 4;
  return m;
}

struct Case {
  Matrix a, b, c;
};
const Case& CaseOf(const Shape& shape) {
  static auto* const cases = new std::map<Shape, Case>;
  const auto [found, is_new] = cases->try_emplace(shape);
  Case& made = found->second;
  if (!is_new) return made;
  const int seed = static_cast<int>(shape.m * 100 + shape.k);
  made.a = Drawn(shape.m, shape.k, seed);
  made.b = Drawn(shape.k, shape.n, seed + 1);
  made.c = {shape.m, shape.n, std::vector<int>(shape.m * shape.n)};
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t k = 0; k < shape.k; ++k) {
      for (int64_t j = 0; j < shape.n; ++j)
        made.c.elements[i * shape.n + j] += made.a.at(i, k) * made.b.at(k, j);
    }
  }
  return made;
}

class DialectProductsTest : public testing::TestWithParam<DialectToolchain> {
 protected:
  static void Check(const Form& form, const Shape& shape, int blocks) {
    constexpr int64_t kGap = 3;
    static const std::string* const text = [] {
      auto* const all = new std::string;
      for (const Form& of : Forms()) absl::StrAppend(all, TextOf(of));
      return all;
    }();
    const HostKernel kernel = CompiledOnce(GetParam(), *text).Kernel(form.name());
    const Case& expected = CaseOf(shape);
    const Column a = expected.a.Stored(form.dtype, form.transpose_a, kGap),
                 b = expected.b.Stored(form.dtype, form.transpose_b, kGap),
                 rounded = expected.c.Stored(form.dtype, false, kGap);
    Column c(form.dtype, std::vector<Number>(rounded.size(), 77));
    const std::vector<Word> words = {
        reinterpret_cast<Word>(a.data()),
        reinterpret_cast<Word>(b.data()),
        reinterpret_cast<Word>(c.data()),
        static_cast<Word>((form.transpose_a ? shape.m : shape.k) + kGap),
        static_cast<Word>((form.transpose_b ? shape.k : shape.n) + kGap),
        static_cast<Word>(shape.n + kGap),
        static_cast<Word>(shape.m),
        static_cast<Word>(shape.n),
        static_cast<Word>(shape.k)};
    for (int block = 0; block < blocks; ++block) kernel(words.data(), block, blocks);
    for (int64_t i = 0; i < rounded.size(); ++i) {
      ASSERT_EQ(c[i], rounded[i]) << form.name() << ", element " << i << " of " << shape.m << " x "
                                  << shape.n << ", " << shape.k << " deep, " << blocks << " blocks";
    }
  }
};

TEST_P(DialectProductsTest, EveryNumberOfRows) {
  const Shape others[] = {{0, 37, 70}, {0, 8, 515}, {0, 101, 19}, {0, 35, 16}, {0, 5, 33}};
  for (int64_t m = 1; m <= 64; ++m) {
    Shape shape = others[m % std::size(others)];
    shape.m = m;
    for (const Form& form : Forms()) ASSERT_NO_FATAL_FAILURE(Check(form, shape, 1));
  }
}

TEST_P(DialectProductsTest, PastEveryBlockSize) {
  const Shape shapes[] = {{1, 33, 9000},  {2, 130, 1027}, {6, 70, 4100},   {7, 9, 4111},
                          {16, 41, 4200}, {17, 70, 1100}, {64, 300, 1030}, {64, 7, 1}};
  for (const Shape& shape : shapes) {
    for (const Form& form : Forms()) ASSERT_NO_FATAL_FAILURE(Check(form, shape, 1));
  }
}

TEST_P(DialectProductsTest, BySeveralBlocks) {
  const Shape shapes[] = {{1, 97, 40}, {5, 64, 130}, {19, 257, 33}, {33, 31, 18}};
  for (const Shape& shape : shapes) {
    for (int blocks : {2, 3, 7}) {
      for (const Form& form : Forms()) ASSERT_NO_FATAL_FAILURE(Check(form, shape, blocks));
    }
  }
}

/// More bytes than are taken for cached, so that what comes next is asked for in another order.
TEST_P(DialectProductsTest, OfMoreThanACacheHolds) {
  for (int64_t m : {3, 13}) {
    for (const Form& form : Forms()) {
      if (form.transpose_a) continue;
      ASSERT_NO_FATAL_FAILURE(Check(form, {m, 517, 1031}, 1));
    }
  }
}

TEST_P(DialectProductsTest, Empty) {
  const Shape shapes[] = {{0, 5, 7}, {3, 0, 7}, {3, 40, 0}, {0, 0, 0}, {64, 9, 0}};
  for (const Shape& shape : shapes) {
    for (const Form& form : Forms()) {
      ASSERT_NO_FATAL_FAILURE(Check(form, shape, 1));
      ASSERT_NO_FATAL_FAILURE(Check(form, shape, 2));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DialectProductsTest, testing::ValuesIn(Toolchains()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace coconet
