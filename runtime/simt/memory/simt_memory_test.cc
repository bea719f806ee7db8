#include "runtime/simt/memory/simt_memory.h"

#include <string>

#include "coconet/base/status.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(SimtMemory, FindsWhoseAnAddressIs) {
  const auto memory = SimtMemory::Make().value();
  SimtBuffer* first = memory->Allocate(100, 0);
  SimtBuffer* second = memory->Allocate(1 << 20, 1);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory->Find(first->base() + 99), first);
  EXPECT_TRUE(first->Holds(first->base() + 96, 4));
  EXPECT_FALSE(first->Holds(first->base() + 97, 4));
  EXPECT_FALSE(first->Holds(first->base() - 1, 1));
  EXPECT_EQ(memory->Find(second->base() + (1 << 20) - 1), second);
  EXPECT_EQ(memory->Find(second->base() + (1 << 20) + (1 << 16)), nullptr);
  EXPECT_EQ(memory->Find(&memory), nullptr);
  EXPECT_EQ(memory->Before(second->base() + (2 << 20)), second);
  second->NamePart(0, second->bytes(), "g");
  EXPECT_EQ(second->Name(8, 4), "bytes [8, 12) of g on rank 1");
  EXPECT_EQ(first->Name(8, 4), "bytes [8, 12) of a buffer of 100 bytes on rank 0");
}

TEST(SimtMemory, OfWhatHasNamesNothingElseIsUsed) {
  const auto memory = SimtMemory::Make().value();
  SimtBuffer* buffer = memory->Allocate(1000, 0);
  buffer->NamePart(512, 100, "m");
  buffer->NamePart(256, 100, "g");
  EXPECT_TRUE(buffer->Holds(buffer->base() + 256, 100));
  EXPECT_FALSE(buffer->Holds(buffer->base() + 255, 1));
  EXPECT_FALSE(buffer->Holds(buffer->base() + 352, 8));
  EXPECT_FALSE(buffer->Holds(buffer->base() + 612, 1));
  EXPECT_TRUE(buffer->Holds(buffer->base() + 608, 4));
  EXPECT_EQ(buffer->Name(520, 8) + buffer->SizeAt(520),
            "bytes [8, 16) of m on rank 0, which has 100 bytes");
  EXPECT_EQ(buffer->Name(0, 4) + buffer->SizeAt(0),
            "bytes [0, 4) of a buffer of 1000 bytes on rank 0, which nobody uses before 256");
  buffer->NamePart(512, 40, "v");  // renamed by another plan
  buffer->NamePart(300, 10, "t");
  EXPECT_TRUE(buffer->Holds(buffer->base() + 608, 4));
  EXPECT_EQ(buffer->Name(520, 8), "bytes [8, 16) of v on rank 0");
  EXPECT_TRUE(buffer->Holds(buffer->base() + 256, 100));
  buffer->NamePart(300, 300, "all");
  EXPECT_EQ(buffer->Name(300, 8) + buffer->SizeAt(300),
            "bytes [44, 52) of all and others on rank 0, which has 356 bytes");
  EXPECT_TRUE(buffer->Holds(buffer->base() + 256, 356));
  EXPECT_FALSE(buffer->Holds(buffer->base() + 608, 8));
  EXPECT_FALSE(buffer->Holds(buffer->base() + 255, 1));
}

TEST(SimtMemory, GivesRoomBackAndRefusesWhatItHasNot) {
  const auto memory = SimtMemory::Make().value();
  EXPECT_EQ(memory->Allocate(size_t{1} << 40, 0), nullptr);
  char* place = nullptr;
  for (int i = 0; i < 100; ++i) {
    SimtBuffer* small = memory->Allocate(1, 0);
    SimtBuffer* large = memory->Allocate(size_t{60} << 30, 0);  // nobody touches it
    ASSERT_NE(large, nullptr) << i;
    if (i == 0) place = large->base();
    EXPECT_EQ(large->base(), place);
    EXPECT_TRUE(memory->Free(small->base()));
    EXPECT_TRUE(memory->Free(large->base()));
    EXPECT_EQ(memory->Find(place), nullptr);
    EXPECT_FALSE(memory->Free(place));
  }
}

}  // namespace
}  // namespace coconet
