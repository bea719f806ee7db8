// Programs tuned over ranges of sizes, on ranks that are threads.
#include "autotune/session/sizes/tuned_sizes.h"

#include <random>

#include "autotune/session/session.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TunedSizesTest : public SessionTest {
 protected:
  TunedSizesTest() {
    own_cache_ = true;
    program_ = Parse(kAccumulate);
  }
  absl::Status RunRange(const SizeRanges& ranges,
                        const std::function<absl::Status(Session&, const TunedSizes&)>& body,
                        SessionOptions options) {
    return RunRanks(
        2,
        [&](Session& session) -> absl::Status {
          ASSIGN_OR_RETURN(const TunedSizes tuned, session.CompileRange(program_, ranges));
          return body(session, tuned);
        },
        options);
  }
  SessionOptions Quick() {
    SessionOptions options = Options();
    options.budget_s = 20;
    return options;
  }
  const SizeRanges ranges_ = {{"N", {100, 20000}}};
};

TEST_F(TunedSizesTest, BindEverySizeWithoutACompile) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const absl::Status first = RunRange(
      ranges_,
      [&](Session& session, const TunedSizes& tuned) -> absl::Status {
        EXPECT_FALSE(tuned.from_cache());
        EXPECT_EQ(tuned.main_symbol(), "N");
        EXPECT_EQ(tuned.buckets().front().box.at("N").lo, 100);
        EXPECT_EQ(tuned.buckets().back().box.at("N").hi, 20000);
        const int64_t runs = CompilerRuns();
        std::mt19937 random(seed);
        for (int i = 0; i < 12; ++i) {
          const int64_t n = 100 + static_cast<int64_t>(random() % 19901);
          ASSIGN_OR_RETURN(const TunedProgram program, tuned.At({{"N", n}}));
          RETURN_IF_ERROR(WithContext(StepAndCheck(program, session, seed), absl::StrCat(n)));
          EXPECT_THAT(program.Explain(), HasSubstr(absl::StrCat("N=", n, " lies in")));
        }
        EXPECT_EQ(CompilerRuns(), runs);
        EXPECT_EQ(tuned.At({{"N", 99}}).status().message(),
                  "At accumulate: want sizes in N=100..20000, have N=99");
        EXPECT_EQ(tuned.At({{"M", 500}}).status().code(), absl::StatusCode::kInvalidArgument);
        return absl::OkStatus();
      },
      Quick());
  ASSERT_TRUE(first.ok()) << first;
  EXPECT_THAT(warnings_, IsEmpty());

  // Another job finds all of it, and binds a size of the range by Compile.
  const int64_t runs = CompilerRuns();
  std::vector<std::string> told;
  SessionOptions options = Quick();
  options.progress = [&](absl::string_view text) { told.emplace_back(text); };
  size_ = 7777;
  const absl::Status second = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedSizes tuned, session.CompileRange(program_, ranges_));
        EXPECT_TRUE(tuned.from_cache());
        ASSIGN_OR_RETURN(const TunedProgram program, session.Compile(program_, {{"N", size_}}));
        EXPECT_TRUE(program.from_cache());
        return StepAndCheck(program, session, seed);
      },
      options);
  ASSERT_TRUE(second.ok()) << second;
  EXPECT_EQ(CompilerRuns(), runs);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("N=7777 lies in the tuned range N="));
}

TEST_F(TunedSizesTest, BindRefusesDifferentSizesOnRanks) {
  const absl::Status status = RunRange(
      {{"N", {100, 200}}},
      [](Session& session, const TunedSizes& tuned) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram program, tuned.At({{"N", 150 + session.rank()}}));
        const absl::Status bound = program.Bind({}).status();
        EXPECT_EQ(bound.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(bound.message(), HasSubstr("want a program of the same sizes on all ranks"));
        return absl::OkStatus();
      },
      Quick());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TunedSizesTest, RefuseRangesThatAreNone) {
  const absl::Status status = RunRanks(
      2,
      [&](Session& session) -> absl::Status {
        EXPECT_THAT(session.CompileRange(program_, {{"N", {5, 4}}}).status().message(),
                    HasSubstr("N: want sizes from 1 to"));
        EXPECT_THAT(session.CompileRange(program_, {}).status().message(),
                    HasSubstr("want sizes of one symbol or more"));
        EXPECT_FALSE(session.CompileRange(program_, {{"M", {4, 5}}}).ok());
        const int64_t hi = 100 + session.rank();
        EXPECT_THAT(session.CompileRange(program_, {{"N", {4, hi}}}).status().message(),
                    HasSubstr("want the same ranges of sizes on all ranks"));
        return absl::OkStatus();
      },
      Quick());
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TunedSizesTest, CacheOnlyNamesWhatIsNotTuned) {
  SessionOptions options = Quick();
  options.policy = Policy::kCacheOnly;
  const absl::Status status =
      RunRange(ranges_, [](Session&, const TunedSizes&) { return absl::OkStatus(); }, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("knows no variant for N=100..20000"));
}

TEST_F(TunedSizesTest, SenselessBucketsAreIgnoredWithAWarning) {
  const auto nothing = [](Session&, const TunedSizes&) { return absl::OkStatus(); };
  const SizeRanges narrow = {{"N", {100, 200}}};
  ASSERT_TRUE(RunRange(narrow, nothing, Quick()).ok());
  absl::StatusOr<Database> db = Database::Open(File("tuning.db"), Access::kReadWrite);
  ASSERT_TRUE(db.ok()) << db.status();
  ASSERT_TRUE(db->Execute("UPDATE bucket SET sizes = 'N=200..100'").ok());
  const absl::Status again = RunRange(
      narrow,
      [](Session&, const TunedSizes& tuned) {
        EXPECT_FALSE(tuned.from_cache());
        return absl::OkStatus();
      },
      Quick());
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("a bucket of sizes makes no sense")));
}

TEST_F(TunedSizesTest, SeveralSymbolsMayHaveRanges) {
  program_ = Parse(R"(coconet 1
program rows
input g : f32[K, N] local
state w : f32[K, N]
update(w, w + all_reduce(sum, g))
)");
  ASSERT_TRUE(program_.ok()) << program_.status();
  const absl::Status status = RunRange(
      {{"K", {2, 9}}, {"N", {16, 300}}},
      [](Session& session, const TunedSizes& tuned) -> absl::Status {
        EXPECT_EQ(tuned.main_symbol(), "N");
        for (int64_t k : {2, 5, 9}) {
          for (int64_t n : {16, 77, 300}) {
            ASSIGN_OR_RETURN(const TunedProgram program, tuned.At({{"K", k}, {"N", n}}));
            RETURN_IF_ERROR(StepAndCheck(program, session, 3));
          }
        }
        return absl::OkStatus();
      },
      Quick());
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
