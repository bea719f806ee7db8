// A training step that JAX wrote as HLO, imported, tuned and run, against JAX: the loss of each
// step and all weights after the last one. COCONET_PYTHON names the interpreter that has JAX,
// which setup.sh does not install; without one the comparison is skipped, and
// tests/hlo_models_test.cc compares with numbers that JAX made before.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/hlo/jax_step.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "jit/compile/temp_dir.h"

namespace coconet::bench {
namespace {

class JaxTest : public ::testing::TestWithParam<int> {};

TEST_P(JaxTest, TrainsAsTheImportedStepDoes) {
  const char* const named = std::getenv("COCONET_PYTHON");
  const std::string python = named == nullptr ? "/usr/bin/python3" : named;
  const int ranks = GetParam();
  const absl::StatusOr<std::unique_ptr<TempDir>> folder = TempDir::Make();
  ASSERT_TRUE(folder.ok()) << folder.status();
  const absl::StatusOr<JaxStep> step =
      JaxStep::Make(python, (*folder)->path(), {absl::StrCat("--ranks=", ranks)});
  if (absl::IsUnavailable(step.status()))
    GTEST_SKIP() << step.status() << "; COCONET_PYTHON may name another";
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->imported.partitions, ranks);
  SessionOptions options;
  options.cache_file = ":none:";
  options.budget_s = 10;
  const absl::Status trained = RunRanks(
      ranks,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(TunedProgram tuned, session.Compile(step->imported.program));
        ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
        return TrainAsJax(*step, session.rank(), bound);
      },
      options);
  ASSERT_TRUE(trained.ok()) << trained;
  const absl::StatusOr<std::vector<Finding>> compared = step->Run("compare");
  EXPECT_TRUE(compared.ok()) << compared.status();
  if (compared.ok()) std::cout << FactOf(*compared, "compared") << "\n";
}

INSTANTIATE_TEST_SUITE_P(Ranks, JaxTest, ::testing::Values(2, 4));

}  // namespace
}  // namespace coconet::bench
