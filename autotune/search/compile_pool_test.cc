#include "autotune/search/compile_pool.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet {
namespace {

/// Takes a while; refuses what starts with "bad".
class FakeCompiler final : public Compiler {
 public:
  explicit FakeCompiler(int ms) : ms_(ms) {}
  const std::string& identity() const override { return identity_; }
  absl::StatusOr<Binary> Compile(const std::string& source) override {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms_));
    if (source.rfind("bad", 0) == 0)
      return absl::InvalidArgumentError(absl::StrCat("no such thing: ", source));
    return Binary{absl::StrCat("/bin/", source), false, "a note"};
  }
  std::atomic<int> runs = 0;

 private:
  const int ms_;
  const std::string identity_ = "fake";
};

std::vector<std::string> Results(const std::vector<absl::StatusOr<std::string>>& binaries) {
  std::vector<std::string> out;
  for (const absl::StatusOr<std::string>& b : binaries)
    out.push_back(b.ok() ? *b : std::string(b.status().message()));
  return out;
}

TEST(CompileTogether, AllRanksGetTheSame) {
  FakeCompiler compiler(1);
  int progress = 0;
  std::set<std::string> notes;
  const absl::Status status = RunWorld({.ranks = 3, .pin = false}, [&](Rank& rank) -> absl::Status {
    const bool first = rank.rank() == 0;
    CompileWatch watch;
    watch.progress = [&](int done, int of) {
      EXPECT_GT(done, progress);
      EXPECT_EQ(of, 4);
      progress = done;
    };
    watch.warn = [&](absl::string_view note) { notes.emplace(note); };
    const std::vector<std::string> sources = {"a", "bad b", "c", "d"};
    const auto binaries = CompileTogether(rank, first ? &compiler : nullptr,
                                          first ? sources : std::vector<std::string>(), watch);
    EXPECT_TRUE(binaries.ok()) << binaries.status();
    EXPECT_THAT(Results(*binaries),
                ::testing::ElementsAre("/bin/a", "no such thing: bad b", "/bin/c", "/bin/d"));
    EXPECT_EQ((*binaries)[1].status().code(), absl::StatusCode::kInvalidArgument);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(compiler.runs, 4);
  EXPECT_EQ(progress, 4);
  EXPECT_THAT(notes, ::testing::ElementsAre("a note"));
}

TEST(CompileTogether, WaitersHearOfALongCompile) {
  FakeCompiler compiler(1500);
  // One second is all that a rank waits for another here.
  const absl::Status status = RunWorld({.ranks = 2, .timeout_s = 1, .pin = false}, [&](Rank& rank) {
    const std::vector<std::string> sources = {"slow"};
    return CompileTogether(rank, rank.rank() == 0 ? &compiler : nullptr, sources, {}).status();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CompileTogether, StopsWhenAsked) {
  FakeCompiler compiler(100);
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [&](Rank& rank) -> absl::Status {
    CompileWatch watch;
    watch.stop = [&] { return compiler.runs >= 1; };
    const std::vector<std::string> sources(200, "x");
    const auto binaries = CompileTogether(rank, &compiler, sources, watch);
    EXPECT_TRUE(binaries.ok());
    EXPECT_TRUE(binaries->front().ok());
    EXPECT_EQ(binaries->back().status().code(), absl::StatusCode::kCancelled);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(compiler.runs, 100);
}

TEST(CompileTogether, NothingToCompileIsFine) {
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    const auto binaries = CompileTogether(rank, nullptr, {}, {});
    EXPECT_TRUE(binaries.ok() && binaries->empty());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
