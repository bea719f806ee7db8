#include "bench/harness/worker.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

struct Case {
  enum class Kind : uint8_t { kFirst, kSecond };
  Kind kind{};
  DType dtype = DType::kF32;
  int64_t tokens = 0;
  bool from_memory = true;
  double seconds = 5;
  std::string form;
  Sizes sizes;
  std::vector<int64_t> lookups;

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.kind, c.dtype, c.tokens, c.from_memory, c.seconds, c.form, c.sizes,
                    c.lookups);
  }
};
const Worker<Case> kTells(
    "tells",
    [](Rank&, const Case& c) -> absl::StatusOr<std::vector<Finding>> {
      return std::vector<Finding>{
          {.side = "case", .detail = absl::StrJoin(kTells.Arguments(c), " ")}};
    },
    [](const Case&) { return WorldOptions{.ranks = 2}; });

absl::Status WorkOn(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return Work(pointers);
}

TEST(Worker, GetsTheCaseAndWritesWhatItFinds) {
  const Case c = {.kind = Case::Kind::kSecond,
                  .dtype = DType::kBF16,
                  .tokens = 77,
                  .from_memory = false,
                  .seconds = 0.25,
                  .form = "MPI_Allreduce, Adam loop = fast",
                  .sizes = {{"B", 1}, {"S", 512}},
                  .lookups = {3, 1}};
  std::vector<std::string> arguments = kTells.Arguments(c);
  const std::string file = testing::TempDir() + "/found";
  arguments.push_back("--out=" + file);
  ASSERT_EQ(WorkOn(arguments), absl::OkStatus());
  const absl::StatusOr<std::vector<Finding>> found = ReadFindings(file);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(FactOf(*found, "case"), absl::StrJoin(kTells.Arguments(c), " "));
}

TEST(Worker, IsNotAUsers) {
  char json[] = "--json=x", worker[] = "--worker=tells";
  EXPECT_FALSE(IsWorker({}));
  EXPECT_FALSE(IsWorker({json}));
  EXPECT_TRUE(IsWorker({worker}));
}

TEST(Worker, GetsArgumentsThatMakeSense) {
  EXPECT_EQ(WorkOn({"--worker=sing", "--out=x"}).message(),
            "worker: what is --worker=sing --out=x?");
  EXPECT_EQ(WorkOn({"--worker=tells", "0"}).message(), "worker: what is --worker=tells 0?");
  EXPECT_EQ(WorkOn({"--worker=tells", "0", "f32", "--out=x"}).message(), "want 8 words, have 2");
  EXPECT_EQ(WorkOn({"--worker=tells", "0", "f31", "7", "1", "5", "", "", "", "--out=x"}).message(),
            "what is f31?");
  EXPECT_EQ(
      WorkOn({"--worker=tells", "0", "f32", "7", "1", "soon", "", "", "", "--out=x"}).message(),
      "what is soon?");
}

}  // namespace
}  // namespace coconet::bench
