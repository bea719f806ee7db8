#include "coconet/base/table.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

const TableColumn kColumns[] = {{"name", false, 6}, {"us", true}, {"why", false, 4}};

TEST(TextTable, AlignsColumnsByCharacters) {
  EXPECT_EQ(TextTable(kColumns, {{"a", "12", ""}, {"µµ", "3", "slow"}}),
            "name  us  why\n"
            "a     12\n"
            "µµ     3  slow\n");
}

TEST(TextTable, CutsTheLastColumnsFirst) {
  const TableCells row = {"µµµµµµµµ", "12345", "0123456789"};
  EXPECT_EQ(TextTable(kColumns, {row}, 25), "name         us  why\nµµµµµµµµ  12345  01234...\n");
  EXPECT_EQ(TextTable(kColumns, {row}, 10), "name       us  why\nµµµ...  12345  0...\n");
}

TEST(CutText, KeepsWholeCharactersAndItsWidth) {
  EXPECT_EQ(CutText("µµµµ", 4), "µµµµ");
  EXPECT_EQ(CutText("µµµµµ", 4), "µ...");
  EXPECT_EQ(CutText("12345", 2), "..");
  EXPECT_EQ(CutText("12345", 0), "");
}

}  // namespace
}  // namespace coconet
