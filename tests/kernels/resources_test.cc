// What kernels take of a multiprocessor, against what was looked at and committed: a spill, or a
// kernel that halves how many fit, is a diff.

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/resource_text.h"

namespace coconet {
namespace {

std::string FirstWords(const std::string& text) { return text.substr(0, text.find(';')); }

/// The first line, and those of the type, or all.
std::string LinesOf(const std::string& text, std::optional<DType> only) {
  std::string lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const bool wanted =
        !only.has_value() || absl::StrContains(line, absl::StrCat(" ", Name(*only), " "));
    if (lines.empty() || wanted) absl::StrAppend(&lines, line, "\n");
  }
  return lines;
}

void Check(std::optional<DType> only) {
  const absl::StatusOr<std::string> text =
      MakeResourceText(absl::StrCat(testing::TempDir(), "/cache"), only);
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status().message();
  ASSERT_TRUE(text.ok()) << text.status();
  std::ifstream file{std::string(kResourcesFile)};
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  if (FirstWords(committed) != FirstWords(*text)) {
    GTEST_SKIP() << kResourcesFile << " is of \"" << FirstWords(committed)
                 << "\", this machine has \"" << FirstWords(*text)
                 << "\", which allocates otherwise";
  }
  EXPECT_EQ(LinesOf(committed, only), *text)
      << kResourcesFile << ": where the new text is meant, run bazel run //tests:update_goldens";
}

// One that is drawn anew each time.
TEST(Resources, OfATypeAreWhatWasLookedAt) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
  const uint64_t seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  Check(kTypes[seed % std::size(kTypes)]);
}

TEST(LongResources, AreWhatWasLookedAt) { Check(std::nullopt); }

}  // namespace
}  // namespace coconet
