#include "jit/launches/rows_in_use.h"

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// By node of the program as written: the value whose numbers say which of its rows are in use, and
/// the dimension of the rows; "" where all are.
class Rows {
 public:
  explicit Rows(const std::string& body) {
    absl::StatusOr<Graph> graph = Parse(absl::StrCat("coconet 1\n", body));
    EXPECT_TRUE(graph.ok()) << graph.status();
    absl::StatusOr<TypedGraph> typed = TypedGraph::Of(*graph);
    EXPECT_TRUE(typed.ok()) << typed.status();
    program_ = *std::move(typed);
    rows_ = FindRowsInUse(program_);
  }
  /// The rows in use of the `number`th operation of type T.
  template <class T>
  std::string Of(int number = 0) const {
    for (NodeId id = 0; id < program_.size(); ++id) {
      if (As<T>(program_.graph(), id) == nullptr || number-- > 0) continue;
      if (rows_[id].all()) return "";
      return absl::StrCat(NodeText(program_.graph(), rows_[id].counts), ", dimension ",
                          rows_[id].dim);
    }
    return "no such operation";
  }

 private:
  TypedGraph program_;
  std::vector<RowsInUse> rows_;
};

constexpr char kCounted[] = "input n : i32[E] replicated, dimension 1";
constexpr absl::string_view kDeclared = R"(
input x : f32[E, C, H] replicated
input n : i32[E] replicated
input w : f32[H, F] replicated
input s : f32[E, C, 1] replicated
)";

std::string With(absl::string_view text) { return absl::StrCat(kDeclared, text); }

TEST(RowsInUse, OfWhatIsKept) {
  EXPECT_EQ(Rows(With("output y = keep_rows(matmul(x, w), n)")).Of<MatMul>(), kCounted);
}

TEST(RowsInUse, ThroughElementwiseOperationsFoldsAndProducts) {
  const Rows rows(
      With("h = silu(matmul(x, w)) * s\n"
           "m = sum(h, 2)\n"
           "output y = keep_rows(matmul(h - m, w, transpose_b), n)"));
  EXPECT_EQ(rows.Of<MatMul>(0), kCounted);
  EXPECT_EQ(rows.Of<MatMul>(1), kCounted);
  EXPECT_EQ(rows.Of<Fold>(), kCounted);
}

TEST(RowsInUse, AllWhereSomebodyReadsAll) {
  EXPECT_EQ(Rows(With("z = matmul(x, w)\noutput a = z\noutput y = keep_rows(z, n)")).Of<MatMul>(),
            "");
  EXPECT_EQ(
      Rows(With("z = matmul(x, w)\noutput a = sum(z, 1)\noutput y = keep_rows(z, n)")).Of<MatMul>(),
      "");
  // Rows of the other operand, of a transposed one, and of what broadcasts have other numbers.
  EXPECT_EQ(Rows(With("z = matmul(x, w)\noutput y = keep_rows(matmul(z, z, transpose_b), n)"))
                .Of<MatMul>(),
            "");
  EXPECT_EQ(Rows(With("z = matmul(x, w)\noutput y = keep_rows(z + transpose(z, 0, 1, 2), n)"))
                .Of<MatMul>(),
            "");
  EXPECT_EQ(
      Rows(With("z = sum(matmul(x, w), 1)\noutput y = keep_rows(z + x[:, :, :1], n)")).Of<MatMul>(),
      "");
}

TEST(RowsInUse, AllWhereTwoReadersCountDifferently) {
  EXPECT_EQ(Rows(With("input k : i32[E] replicated\nz = matmul(x, w)\n"
                      "output a = keep_rows(z, k)\noutput y = keep_rows(z, n)"))
                .Of<MatMul>(),
            "");
}

TEST(RowsInUse, AllWhereCountsLieOtherwise) {
  EXPECT_EQ(Rows("input x : f32[E, C, H] sliced(0)\ninput n : i32[E] replicated\n"
                 "input w : f32[H, F] replicated\noutput y = keep_rows(matmul(x, w), n)")
                .Of<MatMul>(),
            "");
  EXPECT_EQ(Rows("input x : f32[E, C, H] sliced(1)\ninput n : i32[E] replicated\n"
                 "input w : f32[H, F] replicated\noutput y = keep_rows(matmul(x, w), n)")
                .Of<MatMul>(),
            "");
}

TEST(RowsInUse, ThroughAnAllToAllWithItsCounts) {
  constexpr absl::string_view kSlices =
      "input x : f32[E, G, C, H] sliced(1)\ninput n : i32[E, G] sliced(1)\n"
      "input w : f32[H, F] replicated\n";
  const Rows there(absl::StrCat(kSlices, "output y = all_to_all(matmul(x, w), n, 0)"));
  EXPECT_EQ(there.Of<MatMul>(), "input n : i32[E, G] sliced(1), dimension 2");
  const Rows back(absl::StrCat(kSlices,
                               "z = matmul(all_to_all(x, 0), w)\n"
                               "output y = keep_rows(all_to_all(z, 1), n)\n"
                               "output m = all_to_all(n, 0)"));
  EXPECT_EQ(back.Of<MatMul>(), "%12 = all_to_all(n, 0), dimension 2");
  // Nothing says how many rows of z the others read.
  EXPECT_EQ(Rows(absl::StrCat(kSlices,
                              "z = matmul(all_to_all(x, 0), w)\n"
                              "output y = keep_rows(all_to_all(z, 1), n)"))
                .Of<MatMul>(),
            "");
}

TEST(RowsInUse, OfTheWorkloadMoe) {
  absl::StatusOr<Graph> moe = MakeWorkload("moe");
  ASSERT_TRUE(moe.ok()) << moe.status();
  const std::string text = Print(*moe);
  const Rows rows(text.substr(text.find('\n') + 1));
  for (int product : {0, 1, 2})
    EXPECT_EQ(rows.Of<MatMul>(product), "%8 = all_to_all(count, 0), dimension 2");
}

}  // namespace
}  // namespace coconet
