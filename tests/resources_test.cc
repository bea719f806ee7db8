// What kernels take of a multiprocessor, against what was looked at and committed: a spill, or a
// kernel that halves how many fit, is a diff.

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/resource_text.h"

namespace coconet {
namespace {

std::string FirstWords(const std::string& text) { return text.substr(0, text.find(';')); }

TEST(Resources, AreWhatWasLookedAt) {
  const absl::StatusOr<std::string> text =
      MakeResourceText(absl::StrCat(testing::TempDir(), "/cache"));
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status().message();
  ASSERT_TRUE(text.ok()) << text.status();
  std::ifstream file{std::string(kResourcesFile)};
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  if (FirstWords(committed) != FirstWords(*text)) {
    GTEST_SKIP() << kResourcesFile << " is of \"" << FirstWords(committed)
                 << "\", this machine has \"" << FirstWords(*text)
                 << "\", which allocates otherwise";
  }
  EXPECT_EQ(committed, *text)
      << kResourcesFile << ": where the new text is meant, run bazel run //tests:update_goldens";
}

}  // namespace
}  // namespace coconet
