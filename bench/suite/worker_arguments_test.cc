#include "bench/suite/worker.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

absl::StatusOr<std::optional<WorkerOptions>> Parse(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return WorkerOptionsFrom(pointers);
}

TEST(WorkerArguments, ComeBackAsTheyWere) {
  const WorkerOptions options = {
      .task = WorkerOptions::Task::kTune,
      .threads = 4,
      .cells = {{DType::kF32, 1024}, {DType::kF16, 77}, *ListCell("lamb", DType::kF32, "@gpt2/64")},
      .sides = {.ours = true,
                .flat = true,
                .baseline = true,
                .form = "MPI_Allreduce, Adam loop",
                .limit = true},
      .seconds = 0.25,
      .min_rounds = 3,
      .steps = 1000,
      .budget_s = 7};
  std::vector<std::string> arguments = Arguments(options);
  arguments.push_back("--out=/some/where");
  const absl::StatusOr<std::optional<WorkerOptions>> parsed = Parse(arguments);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_TRUE(parsed->has_value());
  EXPECT_EQ(Arguments(**parsed), Arguments(options));
  EXPECT_EQ((*parsed)->out, "/some/where");
  EXPECT_EQ((*parsed)->cells, options.cells);
}

TEST(WorkerArguments, AreNotAUsers) {
  EXPECT_EQ(*Parse({"--json=x"}), std::nullopt);
  EXPECT_EQ(*Parse({}), std::nullopt);
}

TEST(WorkerArguments, MustMakeSense) {
  EXPECT_EQ(Parse({"--worker=sing"}).status().message(), "worker: what is --worker=sing?");
  EXPECT_EQ(Parse({"--worker=tune", "--cells=f32"}).status().message(),
            "worker: what is --cells=f32?");
  EXPECT_EQ(Parse({"--worker=tune", "--seconds=soon"}).status().message(),
            "worker: what is --seconds=soon?");
}

}  // namespace
}  // namespace coconet::bench
