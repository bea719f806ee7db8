// Sessions on machines that share no files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "autotune/session/session.h"
#include "autotune/testing/separate_folders.h"
#include "autotune/testing/session_fixture.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::IsEmpty;

class SessionMachinesTest : public SessionTest {
 protected:
  static void SetUpTestSuite() {
    SessionTest::SetUpTestSuite();
    setenv("COCONET_CACHE_DIR", kFolderOfThisMachine, 1);
  }
  SessionMachinesTest() { program_ = Parse(kAccumulate); }

  static fs::path Machine(int rank) { return root_ / absl::StrCat("machine_", rank); }
  static bool IsBinary(const fs::path& path) {
    return path.extension() == ".so" || path.extension() == ".bundle";
  }
  static std::set<std::string> Binaries(int rank) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(Machine(rank) / "cache/objects"))
      if (IsBinary(entry.path())) names.insert(entry.path().filename());
    return names;
  }
  static void DamageAll(int rank) {
    for (const auto& entry : fs::recursive_directory_iterator(Machine(rank) / "cache/objects"))
      if (IsBinary(entry.path())) fs::resize_file(entry.path(), 100);
  }

  /// Compiles and steps on one rank per machine; returns whether the cache had the program.
  bool Hits() {
    bool hits = false;
    const absl::Status status = RunRanks(
        3,
        [&](Session& session) -> absl::Status {
          RETURN_IF_ERROR(LiveOn(Machine(session.rank())));
          ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program_, {{"N", size_}}));
          for (const VariantResult& v : tuned.variants())
            EXPECT_FALSE(FailsForGood(v.verdict) || MayPass(v.verdict))
                << Words(v) << ": " << v.reason;
          if (session.rank() == 0) hits = tuned.from_cache();
          return StepAndCheck(tuned, session, 5);
        },
        Options());
    EXPECT_TRUE(status.ok()) << status;
    return hits;
  }
};

TEST_F(SessionMachinesTest, TuneOnceAndThenHit) {
  EXPECT_FALSE(Hits());
  // The compiling machine has the parts of bundles, too, which the others do not load.
  const std::set<std::string> compiled = Binaries(0), sent = Binaries(1);
  EXPECT_FALSE(sent.empty());
  EXPECT_TRUE(std::includes(compiled.begin(), compiled.end(), sent.begin(), sent.end()));
  EXPECT_EQ(Binaries(2), sent);
  for (const std::string& name : compiled) {
    if (fs::path(name).extension() == ".bundle") {
      EXPECT_THAT(sent, Contains(name));
    }
  }
  const int64_t runs = CompilerRuns();
  EXPECT_TRUE(Hits());
  EXPECT_EQ(CompilerRuns(), runs);
  DamageAll(1);
  EXPECT_TRUE(Hits());
  EXPECT_EQ(CompilerRuns(), runs) << "rank 0 has it";
  DamageAll(0);
  EXPECT_TRUE(Hits());
  EXPECT_GT(CompilerRuns(), runs);
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace coconet
