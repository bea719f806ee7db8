#include "autotune/runner/timing_inputs.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune/measure/arena.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"
#include "runtime/world.h"

namespace coconet {
namespace {

constexpr int64_t kRows = 50;
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

/// Numbers of an i32 buffer by its name.
std::vector<int32_t> Numbers(const Instance& instance, const std::string& name) {
  const std::string bytes = Bytes(instance, name);
  std::vector<int32_t> numbers(bytes.size() / sizeof(int32_t));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(int32_t));
  return numbers;
}

/// A variant of a program, in memory of zeros.
struct Made {
  Graph program;
  Lowered lowered;
  std::vector<std::unique_ptr<Memory>> memory;
  Instance instance;
};
absl::StatusOr<std::unique_ptr<Made>> Make(Rank& rank, const char* text) {
  auto made = std::make_unique<Made>();
  ASSIGN_OR_RETURN(made->program, Parse(text));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(made->program));
  ASSIGN_OR_RETURN(made->lowered, Lower(schedules[0], {}, 1));
  made->instance.plan = &made->lowered.plan;
  made->instance.tensors = PlaceTensors(schedules[0].program(), made->lowered.plan);
  for (const Buffer& buffer : made->lowered.plan.buffers) {
    ASSIGN_OR_RETURN(made->memory.emplace_back(), rank.Allocate(BytesOn(rank, buffer), false));
    made->instance.buffers.push_back(made->memory.back().get());
  }
  return made;
}

TEST(TimingInputs, AreAllRowsInUseAndOthersEachTime) {
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Made> made, Make(rank, kProgram));
    Instance& instance = made->instance;
    TimingInputs inputs(made->program, /*seed=*/5, /*stage_size=*/1), again(made->program, 5, 1);
    EXPECT_GT(inputs.sets(), 1);
    std::set<std::string> sets;
    for (int set = 0; set < inputs.sets(); ++set) {
      RETURN_IF_ERROR(inputs.Write(rank, instance));
      const std::string written = Bytes(instance, "i");
      sets.insert(written);
      for (int32_t index : Numbers(instance, "i")) EXPECT_TRUE(index >= 0 && index < kRows);
      EXPECT_EQ(Numbers(instance, "n"), std::vector<int32_t>(8, 8));
      RETURN_IF_ERROR(again.Write(rank, instance));
      EXPECT_EQ(Bytes(instance, "i"), written) << "ranks must agree";
    }
    EXPECT_EQ(sets.size(), static_cast<size_t>(inputs.sets()));
    RETURN_IF_ERROR(inputs.Write(rank, instance));
    EXPECT_TRUE(sets.contains(Bytes(instance, "i"))) << "the sets come in turn";
    for (const char* other : {"table", "x"}) {
      const std::string bytes = Bytes(instance, other);
      EXPECT_EQ(bytes, std::string(bytes.size(), '\0')) << other;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(TimingInputs, BagsAreAlike) {
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Made> made,
                     Make(rank,
                          "coconet 1\n"
                          "input table : f32[50, 4] replicated\ninput i : i32[64] replicated\n"
                          "input at : i32[16] replicated\n"
                          "output y = embedding_bag(table, i, at, sum)\n"));
    TimingInputs inputs(made->program, 5, 1);
    RETURN_IF_ERROR(inputs.Write(rank, made->instance));
    const std::vector<int32_t> offsets = Numbers(made->instance, "at");
    for (int32_t bag = 0; bag < 16; ++bag) EXPECT_EQ(offsets[bag], 4 * bag);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(TimingInputs, AreTypicalRowsWhereTheseAreGiven) {
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Made> made, Make(rank, kProgram));
    const TypicalRows typical = [](absl::string_view tensor, int64_t index, int /*rank*/,
                                   int step) -> std::optional<int32_t> {
      if (tensor == "i" && index >= 32) return std::nullopt;
      return static_cast<int32_t>(tensor == "n" ? index % 3 : (index + step) % kRows);
    };
    TimingInputs inputs(made->program, 5, 1, typical), drawn(made->program, 5, 1);
    for (int step = 0; step < inputs.sets(); ++step) {
      RETURN_IF_ERROR(drawn.Write(rank, made->instance));
      const std::vector<int32_t> others = Numbers(made->instance, "i");
      RETURN_IF_ERROR(inputs.Write(rank, made->instance));
      const std::vector<int32_t> i = Numbers(made->instance, "i");
      for (int64_t at = 0; at < 64; ++at)
        EXPECT_EQ(i[at], at < 32 ? (at + step) % kRows : others[at]) << at;
      EXPECT_EQ(Numbers(made->instance, "n"), std::vector<int32_t>({0, 1, 2, 0, 1, 2, 0, 1}));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(TimingInputs, AreOneSetOfCountsAlone) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\ninput n : i32[8] replicated\ninput x : f32[8, 8] replicated\n"
      "output z = keep_rows(x, n)\n");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(TimingInputs(*program, 1, 2).sets(), 1);
}

TEST(TimingInputs, AreNoneWhereNothingSaysWhichRows) {
  const absl::StatusOr<Graph> program =
      Parse("coconet 1\ninput x : f32[8] replicated\noutput y = abs(x)\n");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(TimingInputs(*program, 1, 2).sets(), 0);
}

}  // namespace
}  // namespace coconet
