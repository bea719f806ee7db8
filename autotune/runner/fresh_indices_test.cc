#include "autotune/runner/fresh_indices.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune/measure/arena.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derive.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"
#include "runtime/world.h"

namespace coconet {
namespace {

constexpr int64_t kRows = 50, kBags = 64;
constexpr char kProgram[] =
    "coconet 1\n"
    "input table : f32[50, 4] replicated\ninput i : i32[64] replicated\n"
    "input n : i32[8] replicated\ninput x : f32[8, 8] replicated\n"
    "output y = gather(table, i, 0)\noutput z = keep_rows(x, n)\n";

/// Bytes of a buffer by its name.
std::string Bytes(const Instance& instance, const std::string& name) {
  for (const PlacedTensor& t : instance.tensors) {
    if (t.name != name) continue;
    const Memory& memory = *instance.buffers[t.buffer];
    return {static_cast<const char*>(memory.own()), static_cast<size_t>(memory.bytes())};
  }
  return "no such tensor";
}

TEST(FreshIndices, AreRowsAndOthersEachTime) {
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const Graph program, Parse(kProgram));
    ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program));
    ASSIGN_OR_RETURN(const Lowered lowered, Lower(schedules[0], {}, 1));
    std::vector<std::unique_ptr<Memory>> memory;
    Instance instance{.plan = &lowered.plan,
                      .tensors = PlaceTensors(schedules[0].program(), lowered.plan),
                      .buffers = {},
                      .bound = nullptr};
    for (const Buffer& buffer : lowered.plan.buffers) {
      ASSIGN_OR_RETURN(memory.emplace_back(), rank.Allocate(BytesOn(rank, buffer), false));
      instance.buffers.push_back(memory.back().get());
    }
    FreshIndices fresh(program, /*seed=*/5, /*stage_size=*/1), again(program, 5, 1);
    EXPECT_FALSE(fresh.none());
    std::set<std::string> sets;
    for (int set = 0; set < FreshIndices::kSets; ++set) {
      RETURN_IF_ERROR(fresh.Write(rank, instance));
      const std::string written = Bytes(instance, "i");
      sets.insert(written);
      std::vector<int32_t> indices(kBags);
      std::memcpy(indices.data(), written.data(), kBags * sizeof(int32_t));
      int64_t rows = 0;
      for (int32_t index : indices) rows += index >= 0 && index < kRows;
      EXPECT_GT(rows, kBags / 2);
      RETURN_IF_ERROR(again.Write(rank, instance));
      EXPECT_EQ(Bytes(instance, "i"), written) << "ranks must agree";
    }
    EXPECT_EQ(sets.size(), static_cast<size_t>(FreshIndices::kSets));
    RETURN_IF_ERROR(fresh.Write(rank, instance));
    EXPECT_TRUE(sets.contains(Bytes(instance, "i"))) << "the sets come in turn";
    // Counts say how much work there is, and all else is data.
    for (const char* other : {"n", "table", "x"}) {
      const std::string bytes = Bytes(instance, other);
      EXPECT_EQ(bytes, std::string(bytes.size(), '\0')) << other;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(FreshIndices, AreNoneWhereNoRowsAreTaken) {
  const absl::StatusOr<Graph> program =
      Parse("coconet 1\ninput x : f32[8] replicated\noutput y = abs(x)\n");
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(FreshIndices(*program, 1, 2).none());
}

}  // namespace
}  // namespace coconet
