#include "coconet/base/status.h"

#include <memory>
#include <string>
#include <variant>

#include "gtest/gtest.h"

namespace coconet {
namespace {

absl::StatusOr<std::unique_ptr<int>> Positive(int n) {
  if (n <= 0) return absl::InvalidArgumentError(absl::StrCat("want > 0, have ", n));
  return std::make_unique<int>(n);
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> x, Positive(a));
  ASSIGN_OR_RETURN(const std::unique_ptr<int> y, Positive(b));
  return *x + *y;
}

absl::Status Check(int a) {
  RETURN_IF_ERROR(Positive(a).status());
  return absl::OkStatus();
}

TEST(Status, AssignOrReturnMovesOrReturns) {
  EXPECT_EQ(*Sum(1, 2), 3);
  EXPECT_EQ(Sum(1, -2).status(), absl::InvalidArgumentError("want > 0, have -2"));
}

TEST(Status, ReturnIfErrorPassesOkOn) {
  EXPECT_TRUE(Check(1).ok());
  EXPECT_EQ(Check(0).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Status, ContextIsPutBeforeTheMessage) {
  EXPECT_EQ(WithContext(absl::NotFoundError("no file"), "open"),
            absl::NotFoundError("open: no file"));
  EXPECT_TRUE(WithContext(absl::OkStatus(), "open").ok());
}

TEST(Status, MatchPicksTheArmOfTheAlternative) {
  const std::variant<int, std::string> value = "text";
  EXPECT_EQ(std::visit(Match{[](int) { return 1; }, [](const std::string&) { return 2; }}, value),
            2);
}

TEST(StatusDeathTest, CheckNamesTheCondition) {
  CC_CHECK(1 + 1 == 2);
  EXPECT_DEATH(CC_CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: broken invariant: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace coconet
