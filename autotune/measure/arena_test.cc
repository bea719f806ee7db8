#include "autotune/measure/arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet {
namespace {

Plan PlanOf(std::vector<Buffer> buffers) {
  Plan plan;
  plan.ranks = 2;
  plan.buffers = std::move(buffers);
  return plan;
}

TEST(AllocateTogether, PartsAreApartAlignedAndReachable) {
  const MemoryNeed needs[] = {{100, false}, {7, true},  {int64_t{3} << 20, true},
                              {0, false},   {64, true}, {int64_t{2} << 20, false}};
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    const auto parts = AllocateTogether(rank, needs);
    EXPECT_TRUE(parts.ok()) << parts.status();
    for (size_t i = 0; i < std::size(needs); ++i) {
      const Memory& part = *(*parts)[i];
      EXPECT_EQ(part.bytes(), needs[i].bytes);
      EXPECT_EQ(part.symmetric(), needs[i].symmetric);
      const auto address = reinterpret_cast<uintptr_t>(part.own());
      EXPECT_EQ(address % (part.bytes() >= int64_t{2} << 20 ? 2 << 20 : 64), 0u) << i;
      EXPECT_EQ(part.peer(rank.rank()), part.own());
      EXPECT_EQ(part.peer(1 - rank.rank()) != nullptr, needs[i].symmetric);
      std::memset(part.own(), static_cast<int>(16 * rank.rank() + i), needs[i].bytes);
    }
    if (absl::Status met = rank.exchange().Barrier(); !met.ok()) return met;
    for (size_t i = 0; i < std::size(needs); ++i) {
      const Memory& part = *(*parts)[i];
      if (!part.symmetric()) continue;
      const auto* theirs = static_cast<const unsigned char*>(part.peer(1 - rank.rank()));
      for (int64_t k = 0; k < part.bytes(); ++k) {
        if (theirs[k] != 16 * (1 - rank.rank()) + i)
          return absl::InternalError("another part's bytes");
      }
    }
    return rank.exchange().Barrier();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Arena, RanksHaveWhatTheyNeed) {
  Buffer mine{"t", BufferRole::kInput, DType::kF32, 100, false}, all = mine;
  mine.on_rank = {0, 100};
  Buffer theirs{"u", BufferRole::kTemp, DType::kF32, 200, false, {200, 10}};
  Arena::Needs needs, more;
  Arena::Include(PlanOf({mine, theirs}), Temporaries::kApart, needs);
  EXPECT_EQ(Arena::BytesOf(needs), 800 + 4096 + 32);  // with the guard of the temporary, aligned
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    absl::StatusOr<Arena> arena = Arena::Create(rank, needs);
    if (!arena.ok()) return arena.status();
    const std::vector<std::shared_ptr<Memory>> memory =
        arena->Place(rank, PlanOf({mine, theirs}), Temporaries::kApart);
    EXPECT_EQ(memory[0]->bytes(), BytesOn(rank, mine) + kGuardBytes);
    EXPECT_EQ(memory[1]->bytes(), (rank.rank() == 0 ? 800 : 40) + kGuardBytes);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  // What another variant needs whole, or peers reach, is there on all ranks.
  Arena::Include(PlanOf({all}), Temporaries::kApart, more);
  Arena::Include(needs, more);
  EXPECT_EQ(Arena::BytesOf(more), 400 + 800 + 4096 + 32);
}

/// A plan whose temporaries t0 and t1, of 100 and 50 floats, do not live at the same time, and t2,
/// of 5, which peers reach.
Plan PlanOfTemporaries() {
  Plan plan = PlanOf({{"g", BufferRole::kInput, DType::kF32, 10, false},
                      {"t0", BufferRole::kTemp, DType::kF32, 100, false},
                      {"t1", BufferRole::kTemp, DType::kF32, 50, false},
                      {"t2", BufferRole::kTemp, DType::kF32, 5, true}});
  for (int buffer = 1; buffer <= 3; ++buffer)
    plan.steps.push_back(
        KernelStep{.symbol = "k", .args = {{Arg::Kind::kOwn, buffer, 0}}, .label = "k"});
  return plan;
}

TEST(Arena, GrowsByWhatIsTooShort) {
  const Plan first = PlanOf({{"g", BufferRole::kInput, DType::kF32, 10, false},
                             {"m", BufferRole::kState, DType::kF32, 10, false}});
  const Plan longer = PlanOf({{"g", BufferRole::kInput, DType::kF32, 10, false},
                              {"m", BufferRole::kState, DType::kF32, 10, true},
                              {"t", BufferRole::kTemp, DType::kF32, 100, false}});
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    Arena::Needs needs, more;
    Arena::Include(first, Temporaries::kShared, needs);
    Arena::Include(longer, Temporaries::kShared, more);
    absl::StatusOr<Arena> arena = Arena::Create(rank, needs);
    if (!arena.ok()) return arena.status();
    const std::vector<std::shared_ptr<Memory>> before =
        arena->Place(rank, first, Temporaries::kShared);
    EXPECT_TRUE(arena->Suffices(needs));
    EXPECT_FALSE(arena->Suffices(more));
    const absl::StatusOr<bool> has_new_tensor = arena->Grow(rank, more);
    if (!has_new_tensor.ok()) return has_new_tensor.status();
    EXPECT_TRUE(*has_new_tensor) << "m, which peers reach";
    EXPECT_TRUE(arena->Suffices(needs) && arena->Suffices(more));
    const std::vector<std::shared_ptr<Memory>> after =
        arena->Place(rank, longer, Temporaries::kShared);
    EXPECT_EQ(after[0], before[0]);
    EXPECT_NE(after[1], before[1]);
    EXPECT_TRUE(after[1]->symmetric());
    std::memset(before[1]->own(), 1, before[1]->bytes());  // still of who has it
    Arena::Needs temporaries;
    Arena::Include(PlanOf({{"t", BufferRole::kTemp, DType::kF32, 1000, false}}),
                   Temporaries::kApart, temporaries);
    const absl::StatusOr<bool> again = arena->Grow(rank, temporaries);
    if (!again.ok()) return again.status();
    EXPECT_FALSE(*again) << "only the area of temporaries";
    return rank.exchange().Barrier();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Arena, TensorsKeepTheirPlace) {
  const Plan small = PlanOf({{"g", BufferRole::kInput, DType::kF32, 10, false},
                             {"m", BufferRole::kState, DType::kF32, 10, false}});
  const Plan large = PlanOf({{"m", BufferRole::kState, DType::kF32, 20, true},
                             {"flags", BufferRole::kSync, DType::kI32, 64, true},
                             {"g", BufferRole::kInput, DType::kF32, 20, false}});
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    Arena::Needs needs;
    Arena::Include(small, Temporaries::kShared, needs);
    Arena::Include(large, Temporaries::kShared, needs);
    const absl::StatusOr<Arena> arena = Arena::Create(rank, needs);
    EXPECT_TRUE(arena.ok()) << arena.status();
    const std::vector<std::shared_ptr<Memory>> a = arena->Place(rank, small, Temporaries::kShared),
                                               b = arena->Place(rank, large, Temporaries::kApart);
    EXPECT_EQ(a[0], b[2]) << "g";
    EXPECT_EQ(a[1], b[0]) << "m";
    EXPECT_TRUE(a[1]->symmetric()) << "since one of the plans needs it";
    EXPECT_EQ(a[1]->bytes(), 80 + kGuardBytes);
    EXPECT_EQ(b[1], nullptr);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Arena, TemporariesShareMemoryOrLieApart) {
  const Plan plan = PlanOfTemporaries();
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    Arena::Needs needs;
    Arena::Include(plan, Temporaries::kShared, needs);
    Arena::Include(plan, Temporaries::kApart, needs);
    const absl::StatusOr<Arena> arena = Arena::Create(rank, needs);
    EXPECT_TRUE(arena.ok()) << arena.status();
    const std::vector<std::shared_ptr<Memory>> shared =
                                                   arena->Place(rank, plan, Temporaries::kShared),
                                               apart =
                                                   arena->Place(rank, plan, Temporaries::kApart);
    EXPECT_EQ(shared[1]->own(), shared[2]->own());
    EXPECT_EQ(shared[1]->bytes(), 400);
    EXPECT_EQ(shared[2]->bytes(), 200);
    EXPECT_FALSE(shared[1]->symmetric());
    EXPECT_TRUE(shared[3]->symmetric());
    EXPECT_NE(shared[3]->peer(1 - rank.rank()), nullptr);
    EXPECT_GE(static_cast<char*>(apart[2]->own()) - static_cast<char*>(apart[1]->own()),
              400 + kGuardBytes);
    EXPECT_EQ(apart[1]->bytes(), 400 + kGuardBytes);
    EXPECT_EQ(apart[2]->bytes(), 200 + kGuardBytes);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Arena, TooMuchIsAnErrorOnAllRanks) {
  const Plan huge = PlanOf({{"g", BufferRole::kInput, DType::kF64, int64_t{1} << 40, false}});
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    Arena::Needs needs;
    Arena::Include(huge, Temporaries::kShared, needs);
    EXPECT_EQ(Arena::BytesOf(needs), int64_t{1} << 43);
    EXPECT_EQ(Arena::Create(rank, needs).status().code(), absl::StatusCode::kResourceExhausted);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Arena, MovesTensorsWithinLargerMemory) {
  const Buffer state{"s", BufferRole::kState, DType::kF32, int64_t{3} << 20, true},
      small{"t", BufferRole::kInput, DType::kF32, 100, true},
      local{"u", BufferRole::kInput, DType::kF32, 1000, false};
  const Plan plan = PlanOf({state, small, local});
  Arena::Needs needs;
  Arena::Include(plan, Temporaries::kShared, needs);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Arena arena, Arena::Create(rank, needs));
    std::set<void*> places;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      RETURN_IF_ERROR(arena.Move(rank, seed));
      RETURN_IF_ERROR(rank.exchange().Barrier());
      const auto memory = arena.Place(rank, plan, Temporaries::kShared);
      places.insert(memory[0]->own());
      for (size_t i = 0; i < memory.size(); ++i) {
        auto* const own = static_cast<char*>(memory[i]->own());
        EXPECT_GE(memory[i]->bytes(), BytesOf(plan.buffers[i]) + kGuardBytes);
        EXPECT_EQ(std::count(own, own + memory[i]->bytes(), 0), memory[i]->bytes()) << "not zeros";
        std::memset(own, static_cast<int>(1 + 16 * rank.rank() + i), memory[i]->bytes());
      }
      RETURN_IF_ERROR(rank.exchange().Barrier());
      for (size_t i = 0; i < memory.size(); ++i) {  // none lies in another's, here or at the peer
        for (int r : {0, 1}) {
          if (r != rank.rank() && !memory[i]->symmetric()) continue;
          const auto* const bytes = static_cast<const char*>(memory[i]->peer(r));
          EXPECT_EQ(
              std::count(bytes, bytes + memory[i]->bytes(), static_cast<char>(1 + 16 * r + i)),
              memory[i]->bytes());
        }
      }
      RETURN_IF_ERROR(rank.exchange().Barrier());
    }
    EXPECT_GT(places.size(), 3u);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet
