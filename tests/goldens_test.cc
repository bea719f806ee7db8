// What the library makes of two programs, step by step, against what was looked at and committed.

#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "tests/golden_texts.h"

namespace coconet {
namespace {

TEST(Goldens, AreWhatTheLibraryMakes) {
  const absl::StatusOr<std::vector<GoldenText>> texts = MakeGoldenTexts();
  ASSERT_TRUE(texts.ok()) << texts.status();
  for (const GoldenText& golden : *texts) {
    std::ifstream file("tests/goldens/" + golden.file);
    const std::string committed((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(committed, golden.text) << golden.file
                                      << ": where the new text is meant, run bazel run //tests:update_goldens";
  }
}

TEST(Goldens, AreTheSameEveryTime) {
  const absl::StatusOr<std::vector<GoldenText>> once = MakeGoldenTexts(), again = MakeGoldenTexts();
  ASSERT_TRUE(once.ok() && again.ok());
  for (size_t i = 0; i < once->size(); ++i) EXPECT_EQ((*once)[i].text, (*again)[i].text);
}

}  // namespace
}  // namespace coconet
