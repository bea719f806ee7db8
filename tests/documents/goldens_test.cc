// What the library makes of two programs, step by step, and its workloads as files, against what
// was looked at and committed.

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/language/text.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "tests/documents/golden_texts.h"

namespace coconet {
namespace {

TEST(Goldens, AreWhatTheLibraryMakes) {
  const absl::StatusOr<std::vector<GoldenText>> texts = MakeGoldenTexts();
  ASSERT_TRUE(texts.ok()) << texts.status();
  for (const GoldenText& golden : *texts) {
    std::ifstream file(golden.file);
    const std::string committed((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(committed, golden.text)
        << golden.file << ": where the new text is meant, run bazel run //tests:update_goldens";
  }
}

TEST(Goldens, FilesOfWorkloadsAreTheirPrograms) {
  const absl::StatusOr<std::vector<GoldenText>> texts = MakeGoldenTexts();
  ASSERT_TRUE(texts.ok()) << texts.status();
  for (const WorkloadInfo& info : Workloads()) {
    const std::string path = absl::StrCat("coconet/programs/", info.name, ".coco");
    std::ifstream file(path);
    const absl::StatusOr<Graph> read =
        Parse(std::string((std::istreambuf_iterator<char>(file)), {}));
    ASSERT_TRUE(read.ok()) << path << ": " << read.status();
    EXPECT_EQ(Print(Canonicalize(*read).graph), Print(*MakeWorkload(info.name))) << path;
    for (const SizePreset& preset : info.presets)
      EXPECT_TRUE(BindSizes(*read, preset.sizes).ok()) << path << " " << preset.name;
  }
}

TEST(Goldens, WorkloadsOfF16AreThoseOfBf16) {
  const absl::StatusOr<std::string> bf16 = WorkloadsText(DType::kBF16),
                                    f16 = WorkloadsText(DType::kF16);
  ASSERT_TRUE(bf16.ok() && f16.ok());
  // Weights that are rounded at random are of bf16 in both.
  EXPECT_EQ(absl::StrReplaceAll(*f16, {{"bf16", "bf16"}, {"f16", "bf16"}}), *bf16);
}

TEST(Goldens, AreTheSameEveryTime) {
  const absl::StatusOr<std::vector<GoldenText>> once = MakeGoldenTexts(), again = MakeGoldenTexts();
  ASSERT_TRUE(once.ok() && again.ok());
  for (size_t i = 0; i < once->size(); ++i) EXPECT_EQ((*once)[i].text, (*again)[i].text);
}

}  // namespace
}  // namespace coconet
