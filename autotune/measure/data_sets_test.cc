#include "autotune/measure/data_sets.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

absl::Status OnTwoRanks(const std::string& program,
                        const std::function<absl::Status(const Graph&, Rank&)>& body) {
  const Graph graph = *Parse(absl::StrCat("coconet 1\nprogram p\n", program));
  return RunWorld({.ranks = 2, .timeout_s = 20, .pin = false},
                  [&](Rank& rank) { return body(graph, rank); });
}

TEST(SmallDataSets, ReachBothBranchesOfAProgram) {
  // Whether all gradients are finite, as loss scaling asks, and whether a norm is clipped.
  for (const char* asked : {"amax(abs(all_reduce(sum, g))) < 1000000", "sum(r * r) < 1"}) {
    std::vector<int> taken(2);
    EXPECT_EQ(
        OnTwoRanks(absl::StrCat("input g : f32[301] local\ninput r : f32[301] replicated\n"
                                "input a : f32[] replicated\ninput b : f32[] replicated\n"
                                "output y = select(",
                                asked, ", a, b)\n"),
                   [&](const Graph& graph, Rank& rank) -> absl::Status {
                     ASSIGN_OR_RETURN(DataSets sets, SmallDataSets(graph, rank, 3));
                     if (rank.rank() != 0) return absl::OkStatus();
                     const PlacedTensor y{
                         "y", BufferRole::kOutput, {DType::kF32, {}, Layout::Replicated()}, 0};
                     for (Reference& reference : sets.references) {
                       for (const int branch : {0, 1}) {
                         const auto value = static_cast<float>(
                             reference.data().At(branch == 0 ? "a" : "b", 0, 0).real());
                         taken[branch] += reference.Check(y, &value).ok();
                       }
                     }
                     return absl::OkStatus();
                   }),
        absl::OkStatus());
    EXPECT_GT(taken[0], 0) << asked;
    EXPECT_GT(taken[1], 0) << asked;
    EXPECT_LE(taken[0] + taken[1], 12) << asked << ": in most sets only one is right";
  }
}

TEST(SmallDataSets, RefuseAProgramThatDeterminesNothing) {
  EXPECT_THAT(OnTwoRanks("input a : f32[50] replicated\noutput x = a + 1\n"
                         "output y = 1 / (a + 1 - (a + 1))\n",
                         [](const Graph& graph, Rank& rank) {
                           ASSIGN_OR_RETURN(const DataSets sets, SmallDataSets(graph, rank, 3));
                           return CheckDetermined(graph, sets);
                         })
                  .ToString(),
              HasSubstr("FAILED_PRECONDITION: tune p: the program determines only 6 % of the "
                        "elements of y, on test data of any kind; want most of them"));
}

TEST(FullDataSet, IsSmallWhereOrdinaryNumbersOverflow) {
  const auto kind_of = [](const std::string& program) {
    DataKind kind{};
    EXPECT_EQ(OnTwoRanks(program,
                         [&](const Graph& graph, Rank& rank) -> absl::Status {
                           ASSIGN_OR_RETURN(const DataSets sets, FullDataSet(graph, rank, 3));
                           if (rank.rank() == 0) kind = sets.references[0].data().kind();
                           EXPECT_LE(sets.coverage.undetermined * 10, sets.coverage.elements);
                           return absl::OkStatus();
                         }),
              absl::OkStatus());
    return kind;
  };
  EXPECT_EQ(kind_of("input a : f16[1000] replicated\noutput y = sum(a)\n"), DataKind::kOrdinary);
  EXPECT_EQ(kind_of("input a : f16[100000] replicated\noutput y = sum(a)\n"), DataKind::kSmall);
  // A product, whose operands have signs, needs no such data.
  EXPECT_EQ(kind_of("input a : f16[2, 100000] replicated\ninput b : f16[100000, 2] replicated\n"
                    "output y = matmul(a, b)\n"),
            DataKind::kOrdinary);
}

}  // namespace
}  // namespace coconet
