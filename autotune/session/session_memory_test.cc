// SessionOptions::memory_limit.

#include <string>

#include "absl/strings/str_cat.h"
#include "autotune/testing/session_fixture.h"
#include "gmock/gmock.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// Compiles the program in a session of 2 ranks; checks a step where that succeeds.
struct Outcome {
  absl::Status status;
  PlanMemory memory;
  bool from_cache = false;
  std::string key_text, trace;
  int left_out = 0;
};

class SessionMemoryTest : public SessionTest {
 protected:
  SessionMemoryTest() { own_cache_ = true; }

  Outcome Compile(std::optional<int64_t> limit) {
    SessionOptions options = Options();
    options.memory_limit = limit;
    Outcome outcome;
    outcome.status = RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          const absl::StatusOr<TunedProgram> tuned = session.Compile(program_, {{"N", size_}});
          RETURN_IF_ERROR(tuned.status());
          RETURN_IF_ERROR(StepAndCheck(*tuned, session, 7));
          if (session.rank() != 0) return absl::OkStatus();
          outcome.memory = tuned->memory();
          outcome.from_cache = tuned->from_cache();
          outcome.key_text = tuned->record().key_text;
          outcome.trace = tuned->record().best.trace;
          for (const VariantResult& variant : tuned->variants())
            outcome.left_out += variant.verdict == Verdict::kTooLarge;
          return absl::OkStatus();
        },
        options);
    return outcome;
  }
};

TEST_F(SessionMemoryTest, RefusesLimitsThatAreNone) {
  for (const int64_t limit : {int64_t{0}, int64_t{-1}, kMostMemory + 1, INT64_MAX}) {
    const Outcome outcome = Compile(limit);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kInvalidArgument) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()),
                HasSubstr(absl::StrCat("SessionOptions::memory_limit: want 1 to ", kMostMemory,
                                       " bytes, have ", limit)));
  }
}

TEST_F(SessionMemoryTest, TakesWhatIsExactlyTheLimitAndNothingAbove) {
  const Outcome without = Compile(std::nullopt);
  ASSERT_TRUE(without.status.ok()) << without.status;
  const int64_t bytes = without.memory.Total();
  EXPECT_GT(bytes, 0);
  // The best of all variants is the best of those that fit, if it does.
  for (const int64_t limit : {bytes, kMostMemory}) {
    const Outcome exact = Compile(limit);
    ASSERT_TRUE(exact.status.ok()) << exact.status;
    EXPECT_TRUE(exact.from_cache);
    EXPECT_EQ(exact.memory, without.memory);
    EXPECT_EQ(exact.key_text, without.key_text);
  }
  // One byte less, and that record is no longer used.
  const Outcome below = Compile(bytes - 1);
  if (below.status.ok()) {
    EXPECT_FALSE(below.from_cache);
    EXPECT_LT(below.memory.Total(), bytes);
    EXPECT_THAT(below.key_text, HasSubstr(absl::StrCat("memory limit: ", bytes - 1, " bytes")));
  } else {
    EXPECT_TRUE(absl::IsResourceExhausted(below.status)) << below.status;
  }
  const Outcome again = Compile(std::nullopt);
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.memory, without.memory);
}

TEST_F(SessionMemoryTest, SaysWhatThereMustBe) {
  const Outcome outcome = Compile(1000);
  EXPECT_TRUE(absl::IsResourceExhausted(outcome.status)) << outcome.status;
  const std::string message(outcome.status.message());
  EXPECT_THAT(message, HasSubstr("no schedule fits the memory limit of 1000 bytes a rank"));
  EXPECT_THAT(message, HasSubstr("want a limit of "));
  // What it asks for suffices.
  const std::string asked = message.substr(message.find("want a limit of ") + 16);
  const int64_t least = std::stoll(asked);
  EXPECT_FALSE(Compile(least - 1).status.ok());
  const Outcome fits = Compile(least);
  ASSERT_TRUE(fits.status.ok()) << fits.status;
  EXPECT_EQ(fits.memory.Total(), least);
  // A second job finds it.
  EXPECT_TRUE(Compile(least).from_cache);
}

}  // namespace
}  // namespace coconet
