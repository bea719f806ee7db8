#include "runtime/simt/simt_memory.h"

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
  second->SetName(0, second->bytes(), "g");
  EXPECT_EQ(second->Name(8, 4), "bytes [8, 12) of g on rank 1");
  EXPECT_EQ(first->Name(8, 4), "bytes [8, 12) of a buffer of 100 bytes on rank 0");
  // Parts, of which later names take the place of earlier ones.
  second->SetName(64, 64, "p");
  second->SetName(96, 4, "lr");
  EXPECT_EQ(second->Name(60, 4), "bytes [60, 64) of g on rank 1");
  EXPECT_EQ(second->Name(72, 8), "bytes [8, 16) of p on rank 1");
  EXPECT_EQ(second->Name(96, 4), "bytes [0, 4) of lr on rank 1");
  second->SetName(64, 64, "w");
  EXPECT_EQ(second->Name(96, 4), "bytes [32, 36) of w on rank 1");
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
