#include "autotune/measure/plain_results.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kN = Reference::kFullElements + 3;
constexpr int kRanks = 2;

/// What a rank of two knows of y = a * b / b, where all ranks have a and b.
class PlainResultsTest : public testing::TestWithParam<int> {
 protected:
  PlainResultsTest()
      : program_(*Parse("coconet 1\nprogram p\ninput a : f32[4194307] replicated\ninput b : "
                        "f32[4194307] replicated\noutput y = a * b / b\n")),
        reference_(*Reference::Create(program_, {.ranks = kRanks}, GetParam(), 5)),
        right_(kN),
        other_(kN) {
    const Part all = PartOf(y_.type, kRanks, 0);
    std::vector<float> b(kN);
    reference_.data().Fill("a", 0, all, right_.data());
    reference_.data().Fill("b", 0, all, b.data());
    for (int64_t i = 0; i < kN; ++i) other_[i] = right_[i] * b[i] / b[i];
    EXPECT_NE(right_, other_);
    // An element of the share that Check does not look at.
    const Part share = reference_.ShareOf(y_.type);
    for (unseen_ = share.Global(share.elements() / 2);; ++unseen_) {
      const float right = std::exchange(right_[unseen_], 7.0f);
      const bool accepted = reference_.Check(y_, right_.data()).ok();
      right_[unseen_] = right;
      if (accepted) break;
    }
  }

  absl::Status Compare(const std::vector<float>& y) {
    return plain_.Compare(y_, y.data(), reference_);
  }
  std::string Refusal() const { return absl::StrCat("y[", unseen_, "]: want "); }

  const Graph program_;
  Reference reference_;
  const PlacedTensor y_{"y", BufferRole::kOutput, {DType::kF32, {kN}, Layout::Replicated()}, 0};
  std::vector<float> right_, other_;  // rounded in different ways
  int64_t unseen_ = 0;
  PlainResults plain_{{}, kRanks};
};

TEST_P(PlainResultsTest, FindOneWrongElementThatNoSampleSees) {
  EXPECT_EQ(Compare(right_), absl::OkStatus());
  EXPECT_EQ(Compare(other_), absl::OkStatus());
  for (const float wrong : {7.0f, 0.0f, std::numeric_limits<float>::quiet_NaN()}) {
    other_[unseen_] = wrong;
    EXPECT_THAT(Compare(other_).ToString(), HasSubstr(Refusal()));
  }
}

TEST_P(PlainResultsTest, FindThatThePlainOnesWereWrong) {
  std::vector<float> wrong = right_;
  wrong[unseen_] = 0;
  EXPECT_EQ(Compare(wrong), absl::OkStatus()) << "the first";
  EXPECT_EQ(Compare(other_), absl::OkStatus());
  EXPECT_THAT(Compare(wrong).ToString(), HasSubstr(Refusal()));
}

TEST_P(PlainResultsTest, AreNotKeptWhereAllElementsAreChecked) {
  const PlacedTensor y{"y", BufferRole::kOutput, {DType::kF32, {100}, Layout::Replicated()}, 0};
  EXPECT_EQ(plain_.Compare(y, right_.data(), reference_), absl::OkStatus());
  EXPECT_TRUE(plain_.empty());
}

INSTANTIATE_TEST_SUITE_P(, PlainResultsTest, testing::Range(0, kRanks));

TEST(PlainResultsOfMatrices, ServeSchedulesThatSliceThem) {
  const Graph program = *Parse(
      "coconet 1\nprogram p\ninput a : f32[2049, 2050] replicated\nstate w : f32[2049, 2050]\n"
      "w1 = update(w, w + a)\n");
  Reference reference = *Reference::Create(program, {.ranks = kRanks}, 1, 5);
  const Shape shape = {2049, 2050};
  std::vector<float> right(2049 * 2050), a(2049 * 2050);
  const Part all = PartOf({DType::kF32, shape, Layout::Replicated()}, kRanks, 0);
  reference.data().Fill("w", 0, all, right.data());
  reference.data().Fill("a", 0, all, a.data());
  for (size_t i = 0; i < right.size(); ++i) right[i] += a[i];
  PlacedTensor w{"w", BufferRole::kState, {DType::kF32, shape, Layout::Replicated()}, 0, true};
  PlainResults plain({{"w", 1}}, kRanks);
  ASSERT_EQ(plain.Compare(w, right.data(), reference), absl::OkStatus());
  for (const int dim : {0, 1}) {
    w.type.layout = Layout::Sliced(dim);
    const Part part = PartOf(w.type, kRanks, 1);
    std::vector<float> slice(part.runs * std::max(part.run, part.storage_stride) + 64);
    for (int64_t p = 0; p < part.elements(); ++p) slice[part.Stored(p)] = right[part.Global(p)];
    EXPECT_EQ(plain.Compare(w, slice.data(), reference), absl::OkStatus()) << dim;
    const int64_t middle = part.elements() / 2 + 12345;
    slice[part.Stored(middle)] = 9;
    // Over rows it is the first that is seen with this layout.
    const absl::Status status = plain.Compare(w, slice.data(), reference);
    if (dim == 1) {
      EXPECT_THAT(status.ToString(),
                  HasSubstr(absl::StrCat("w[", part.Global(middle), "]: want ")));
    }
  }
}

}  // namespace
}  // namespace coconet
