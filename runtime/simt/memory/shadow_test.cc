#include "runtime/simt/memory/shadow.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

using Verdict = Shadow::Verdict;

Agent ThreadOf(int slot, int thread, uint32_t generation, const Clock& clock) {
  return {.slot = slot,
          .thread = thread,
          .first = 1,
          .generation = generation,
          .tick = 0,
          .clock = &clock};
}

TEST(Clock, KnowsWholeGenerationsOfASlotAndWhatThreadsReleased) {
  Clock clock;
  EXPECT_FALSE(clock.Knows(Epoch(3, 7, 1, 0)));
  clock.JoinSlot(3, 5);
  EXPECT_TRUE(clock.Knows(Epoch(3, 7, 4, 9)));
  EXPECT_FALSE(clock.Knows(Epoch(3, 7, 5, 0)));
  clock.JoinReleased(Epoch(3, 7, 5, 2));
  EXPECT_TRUE(clock.Knows(Epoch(3, 7, 5, 2)));
  EXPECT_FALSE(clock.Knows(Epoch(3, 7, 5, 3)));
  EXPECT_FALSE(clock.Knows(Epoch(3, 8, 5, 0)));
  Clock other;
  other.JoinSlot(4, 2);
  other.Join(clock);
  EXPECT_TRUE(other.Knows(Epoch(3, 7, 5, 1)));
  EXPECT_TRUE(other.Knows(Epoch(4, 0, 1, 0)));
  other.JoinSlot(3, 6);
  other.Join(clock);
  EXPECT_TRUE(other.Knows(Epoch(3, 8, 5, 0)));
}

TEST(Shadow, OrdersWhatABarrierOrders) {
  Shadow shadow(64);
  const Clock nothing;
  const Agent first = ThreadOf(1, 0, 1, nothing), second = ThreadOf(1, 1, 1, nothing),
              later = ThreadOf(1, 1, 2, nothing);
  EXPECT_EQ(shadow.Note(first, 0, 4, /*writes=*/false, false, nullptr).verdict,
            Verdict::kNeverWritten);
  EXPECT_EQ(shadow.Note(first, 0, 4, /*writes=*/true, false, nullptr).verdict, Verdict::kFine);
  EXPECT_EQ(shadow.Note(second, 4, 4, /*writes=*/true, false, nullptr).verdict, Verdict::kFine);
  EXPECT_EQ(shadow.Note(second, 0, 4, /*writes=*/false, false, nullptr).verdict, Verdict::kRace);
  EXPECT_EQ(shadow.Note(later, 0, 8, /*writes=*/false, false, nullptr).verdict, Verdict::kFine);
  EXPECT_EQ(shadow.Note(first, 0, 4, /*writes=*/true, false, nullptr).verdict,
            Verdict::kRace);  // with the read
}

TEST(Shadow, TellsBytesApartHoweverTheyAreAccessed) {
  Shadow shadow(37);
  const Clock nothing;
  shadow.Initialize();
  for (int i = 0; i < 37; ++i) {
    EXPECT_EQ(
        shadow.Note(ThreadOf(1, i, 1, nothing), i, 1, /*writes=*/true, false, nullptr).verdict,
        Verdict::kFine)
        << i;
  }
  const Shadow::Found found =
      shadow.Note(ThreadOf(1, 0, 1, nothing), 32, 4, /*writes=*/false, false, nullptr);
  EXPECT_EQ(found.verdict, Verdict::kRace);
  EXPECT_EQ(found.offset, 32u);
  EXPECT_EQ(found.earlier.epoch.thread(), 32);
  EXPECT_TRUE(found.earlier_writes);
}

TEST(Shadow, AccessesOfTheMemoryModelDoNotRaceWithEachOther) {
  Shadow shadow(8);
  const Clock nothing;
  const Agent one = ThreadOf(1, 0, 1, nothing), other = ThreadOf(2, 0, 1, nothing);
  EXPECT_EQ(shadow.Note(one, 0, 8, /*writes=*/true, /*atomic=*/true, nullptr).verdict,
            Verdict::kFine);
  EXPECT_EQ(shadow.Note(other, 0, 8, /*writes=*/false, /*atomic=*/true, nullptr).verdict,
            Verdict::kFine);
  EXPECT_EQ(shadow.Note(other, 0, 8, /*writes=*/true, /*atomic=*/true, nullptr).verdict,
            Verdict::kFine);
  EXPECT_EQ(shadow.Note(one, 0, 8, /*writes=*/false, /*atomic=*/false, nullptr).verdict,
            Verdict::kRace);
}

TEST(Shadow, KnowsWhatNobodyHasWritten) {
  Shadow shadow(50);
  const Clock nothing;
  const Agent one = ThreadOf(1, 0, 1, nothing);
  shadow.Initialize();
  EXPECT_EQ(shadow.FirstUnwritten(0, 50), std::nullopt);
  shadow.MarkUninitialized(6, 30);
  EXPECT_EQ(shadow.FirstUnwritten(0, 50), 6u);
  EXPECT_EQ(shadow.FirstUnwritten(0, 6), std::nullopt);
  EXPECT_EQ(shadow.FirstUnwritten(36, 14), std::nullopt);
  EXPECT_EQ(shadow.Note(one, 34, 2, /*writes=*/false, false, nullptr).verdict,
            Verdict::kNeverWritten);
  EXPECT_EQ(shadow.Note(one, 6, 28, /*writes=*/true, false, &shadow).verdict, Verdict::kFine);
  EXPECT_EQ(shadow.FirstUnwritten(0, 50), 34u);
  EXPECT_EQ(shadow.WriteOf(20).at, &shadow);
  // Whoever writes next must be ordered behind the write that was marked.
  const Agent other = ThreadOf(2, 0, 1, nothing);
  shadow.MarkUninitialized(8, 4);
  EXPECT_FALSE(shadow.WriteOf(8).epoch.exists());
  EXPECT_EQ(shadow.Note(other, 8, 4, /*writes=*/true, false, nullptr).verdict, Verdict::kRace);
  EXPECT_EQ(shadow.Note(one, 8, 4, /*writes=*/true, false, nullptr).verdict, Verdict::kFine);
}

TEST(Shadow, ASlotsNewTenantKnowsNothingOfTheOldOne) {
  Shadow shadow(4);
  const Clock nothing;
  EXPECT_EQ(shadow.Note(ThreadOf(1, 0, 1, nothing), 0, 4, /*writes=*/true, false, nullptr).verdict,
            Verdict::kFine);
  Agent owner = ThreadOf(1, 0, 2, nothing);
  owner.first = 2;
  EXPECT_EQ(shadow.Note(owner, 0, 4, /*writes=*/false, false, nullptr).verdict, Verdict::kRace);
}

}  // namespace
}  // namespace coconet
