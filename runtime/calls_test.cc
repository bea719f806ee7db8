#include "runtime/calls.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

class CallLogTest : public testing::Test {
 protected:
  CallLog& a() { return logs_[0]; }
  CallLog& b() { return logs_[1]; }
  void Both(absl::string_view words) {
    a().Begin(words);
    b().Begin(words);
  }

 private:
  std::array<CallLog, 2> logs_{};
};

TEST_F(CallLogTest, NamesItsLastCalls) {
  EXPECT_EQ(a().Words(0), "no call");
  for (const char* words : {"Compile", "Bind of sgd", "Run of sgd", "Read of sgd", "Close"})
    a().Begin(words);
  EXPECT_EQ(a().begun(), 5);
  EXPECT_EQ(a().Words(5), "call 5, Close");
  EXPECT_EQ(a().Words(3), "call 3, Run of sgd");
  EXPECT_EQ(a().Words(2), "call 2");  // forgotten
}

TEST_F(CallLogTest, CutsLongNames) {
  a().Begin(std::string(400, 'x'));
  EXPECT_EQ(a().Words(1), "call 1, " + std::string(CallLog::kNameBytes, 'x'));
}

TEST_F(CallLogTest, RemembersTheNamesOfSteps) {
  const uint64_t name = a().Name("Run of sgd");
  EXPECT_EQ(a().Name("Run of sgd"), name);
  for (uint64_t i = 1; i < CallLog::kNames; ++i) a().Name(absl::StrCat("Run of ", i));
  a().Begin(name);
  b().Begin("Run of sgd");
  EXPECT_EQ(a().Words(1), "call 1, Run of sgd");
  EXPECT_FALSE(Differ(a(), b()));
  a().Name("Run of one more");
  EXPECT_EQ(a().Words(1), "call 1");
}

TEST_F(CallLogTest, DiffersFromTheFirstOtherCallOn) {
  Both("Compile");
  EXPECT_FALSE(Differ(a(), b()));
  a().Begin("Run of sgd");
  EXPECT_FALSE(Differ(a(), b()));  // it is ahead
  b().Begin("Read of sgd");
  EXPECT_TRUE(Differ(a(), b()));
  Both("Run of sgd");
  EXPECT_TRUE(Differ(a(), b()));
  EXPECT_EQ(DifferenceOf(0, a(), 1, b()),
            "rank 0 makes call 2, Run of sgd; rank 1 makes call 2, Read of sgd");
}

TEST_F(CallLogTest, SaysWhatTheRankThatIsAheadGoesOnWith) {
  Both("Compile");
  a().Begin("Run of sgd");
  EXPECT_EQ(DifferenceOf(0, a(), 1, b()),
            "rank 0 makes call 2, Run of sgd; rank 1 makes call 1, Compile");
}

TEST_F(CallLogTest, ComparesNothingThatIsForgotten) {
  a().Begin("Compile");
  for (int i = 0; i < 9; ++i) b().Begin("Run of sgd");
  EXPECT_FALSE(Differ(a(), b()));
}

TEST_F(CallLogTest, IsPrintedForRanksThatDoNotMapIt) {
  for (const char* words : {"Compile", "Run of sgd"}) a().Begin(words);
  b().Set(a().Print());
  EXPECT_FALSE(Differ(a(), b()));
  EXPECT_EQ(b().Words(2), "call 2, Run of sgd");
  b().Set("no log");
  EXPECT_EQ(b().begun(), 2);
}

}  // namespace
}  // namespace coconet
