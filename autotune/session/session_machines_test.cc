// Sessions on machines that share no files.
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
using ::testing::IsEmpty;

class SessionMachinesTest : public SessionTest {
 protected:
  static void SetUpTestSuite() {
    SessionTest::SetUpTestSuite();
    setenv("COCONET_CACHE_DIR", kFolderOfThisMachine, 1);
  }
  SessionMachinesTest() { program_ = Parse(kAccumulate); }

  static fs::path Machine(int rank) { return root_ / absl::StrCat("machine_", rank); }
  static std::set<std::string> Kernels(int rank) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(Machine(rank) / "cache/objects"))
      if (entry.path().extension() == ".so") names.insert(entry.path().filename());
    return names;
  }
  static void DamageAll(int rank) {
    for (const auto& entry : fs::recursive_directory_iterator(Machine(rank) / "cache/objects"))
      if (entry.path().extension() == ".so") fs::resize_file(entry.path(), 100);
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
  const std::set<std::string> kernels = Kernels(0);
  EXPECT_FALSE(kernels.empty());
  EXPECT_EQ(Kernels(1), kernels);
  EXPECT_EQ(Kernels(2), kernels);
  const int64_t runs = CompilerRuns();
  EXPECT_TRUE(Hits());
  EXPECT_EQ(CompilerRuns(), runs);
  DamageAll(1);
  EXPECT_TRUE(Hits());
  EXPECT_EQ(CompilerRuns(), runs) << "rank 0 has it";
  DamageAll(0);
  EXPECT_TRUE(Hits());
  EXPECT_EQ(CompilerRuns(), runs + 1);
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace coconet
