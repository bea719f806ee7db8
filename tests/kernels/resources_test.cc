// What kernels take of a multiprocessor, against what was looked at and committed: a spill, or a
// kernel that halves how many fit, is a diff.

#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/resource_text.h"

namespace coconet {
namespace {

std::string FirstWords(const std::string& text) { return text.substr(0, text.find(';')); }

using Takes = std::function<bool(absl::string_view workload, DType dtype)>;

/// The first line, and those of the workloads and types that are taken.
std::string LinesOf(const std::string& text, const Takes& takes) {
  std::string lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    const std::optional<DType> dtype = words.size() > 1 ? ParseDType(words[1]) : std::nullopt;
    if (lines.empty() || (dtype.has_value() && takes(words[0], *dtype)))
      absl::StrAppend(&lines, line, "\n");
  }
  return lines;
}

void Check(const Takes& takes) {
  const absl::StatusOr<std::string> text =
      MakeResourceText(absl::StrCat(testing::TempDir(), "/cache"), takes);
  if (absl::IsUnavailable(text.status())) GTEST_SKIP() << text.status().message();
  ASSERT_TRUE(text.ok()) << text.status();
  std::ifstream file{std::string(kResourcesFile)};
  const std::string committed((std::istreambuf_iterator<char>(file)), {});
  if (FirstWords(committed) != FirstWords(*text)) {
    GTEST_SKIP() << kResourcesFile << " is of \"" << FirstWords(committed)
                 << "\", this machine has \"" << FirstWords(*text)
                 << "\", which allocates otherwise";
  }
  EXPECT_EQ(LinesOf(committed, takes), *text)
      << kResourcesFile << ": where the new text is meant, run bazel run //tests:update_goldens";
}

// One in so many pairs of a workload and a type, drawn anew each time.
TEST(Resources, OfSomeKernelsAreWhatWasLookedAt) {
  constexpr uint64_t kOneIn = 6;
  const uint64_t seed = FreshSeed();
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  Check([&](absl::string_view workload, DType dtype) {
    return TakesName(kOneIn, seed, absl::StrCat(workload, " ", Name(dtype)));
  });
}

TEST(LongResources, AreWhatWasLookedAt) {
  Check([](absl::string_view /*workload*/, DType /*dtype*/) { return true; });
}

}  // namespace
}  // namespace coconet
