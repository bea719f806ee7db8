// Ranks that call differently.

#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/session/session.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

class SessionCallsTest : public SessionTest {
 protected:
  SessionCallsTest() { program_ = Parse(kAccumulate); }
  SessionOptions FewTries() {
    SessionOptions options = Options();
    options.budget_s = 0.5;
    return options;
  }

  using Call = std::function<absl::Status(Session&, BoundProgram& one, BoundProgram& other)>;

  /// Rank 1 makes `odd` where the others make `even`, with two bindings of a program; all ranks are
  /// told at once, and each session is over.
  void ExpectDifference(const Call& even, const Call& odd, const std::string& even_name,
                        const std::string& odd_name) {
    const auto body = [&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 64}}));
      ASSIGN_OR_RETURN(BoundProgram one, tuned.Bind({}));
      ASSIGN_OR_RETURN(BoundProgram other, tuned.Bind({}));
      RETURN_IF_ERROR(one.Run());
      const absl::Time begun = absl::Now();
      const absl::Status said = (session.rank() == 1 ? odd : even)(session, one, other);
      EXPECT_TRUE(absl::IsAborted(said)) << said;
      EXPECT_THAT(std::string(said.message()), HasSubstr("the ranks call differently: rank "));
      EXPECT_THAT(std::string(said.message()), HasSubstr(even_name));
      EXPECT_THAT(std::string(said.message()), HasSubstr(odd_name));
      EXPECT_LT(absl::Now() - begun, absl::Seconds(5));
      EXPECT_FALSE(one.Run().ok());
      EXPECT_EQ(session.Close(), absl::OkStatus());
      return absl::OkStatus();
    };
    EXPECT_EQ(RunRanks({.ranks = 3, .timeout_s = 30}, body, FewTries()), absl::OkStatus());
  }
};

absl::Status RunOne(Session&, BoundProgram& one, BoundProgram&) { return one.Run(); }

TEST_F(SessionCallsTest, RunsOfTwoBindings) {
  ExpectDifference(
      RunOne, [](Session&, BoundProgram&, BoundProgram& other) { return other.Run(); },
      "Run of accumulate (binding 1)", "Run of accumulate (binding 2)");
}

TEST_F(SessionCallsTest, OfAProgramWithoutAName) {
  program_->name.clear();
  ExpectDifference(
      RunOne,
      [](Session&, BoundProgram& one, BoundProgram&) {
        return one.Save(testing::TempDir() + "/calls");
      },
      "Run of the program (binding 1)", "Save of the program (binding 1)");
}

TEST_F(SessionCallsTest, RunAndSave) {
  ExpectDifference(
      RunOne,
      [](Session&, BoundProgram& one, BoundProgram&) {
        return one.Save(testing::TempDir() + "/calls");
      },
      "Run of ", "Save of ");
}

TEST_F(SessionCallsTest, RunAndAllocate) {
  ExpectDifference(
      RunOne,
      [](Session& session, BoundProgram&, BoundProgram&) {
        return session.Allocate(DType::kF32, 3).status();
      },
      "Run of ", "Allocate");
}

TEST_F(SessionCallsTest, RunAndClose) {
  ExpectDifference(
      RunOne, [](Session& session, BoundProgram&, BoundProgram&) { return session.Close(); },
      "Run of ", "Close");
}

TEST_F(SessionCallsTest, MeetingsInOtherWords) {
  ExpectDifference(
      [](Session& session, BoundProgram&, BoundProgram&) { return session.Meet("epoch 1"); },
      [](Session& session, BoundProgram&, BoundProgram&) { return session.Meet("epoch 2"); },
      "epoch 1", "epoch 2");
}

TEST_F(SessionCallsTest, TensorsOfOtherNamesAreRefused) {
  const auto body = [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", 64}}));
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    std::vector<float> values(64);
    const std::vector<TensorInfo> tensors = tuned.tensors();
    std::vector<std::string> states;
    for (const TensorInfo& tensor : tensors) {
      if (tensor.count > 0 && !tensor.type.shape.empty()) states.push_back(tensor.name);
    }
    const absl::Status said =
        bound.Read(session.rank() == 1 ? states.front() : states.back(), values.data(), 64);
    EXPECT_TRUE(absl::IsInvalidArgument(said)) << said;
    EXPECT_THAT(std::string(said.message()), HasSubstr("want the same tensor on all ranks"));
    return session.Meet("after a refusal");
  };
  EXPECT_EQ(RunRanks(3, body, FewTries()), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
