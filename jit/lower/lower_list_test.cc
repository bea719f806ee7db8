#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/find_schedule.h"
#include "coconet/workloads/model_shapes.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

Graph Bound(absl::string_view body, const Sizes& sizes) {
  return BindSizes(Parse(absl::StrCat("coconet 1\nprogram t\n", body)).value(), sizes).value();
}

/// Steps by kind, rows of tables.
std::string Outline(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      absl::StrAppend(&text, "kernel ", kernel->label, " of ", kernel->tensors.size(), "; ");
    if (const auto* collective = std::get_if<CollectiveStep>(&step))
      absl::StrAppend(&text, collective->label, " of ", collective->count, "; ");
    if (std::get_if<GemmStep>(&step) != nullptr) absl::StrAppend(&text, "MM; ");
  }
  return text;
}

int64_t WordsOf(const std::vector<Arg>& row, int ranks) {
  int64_t words = 0;
  for (const Arg& arg : row) words += arg.kind == Arg::Kind::kPeers ? ranks : 1;
  return words;
}

TEST(LowerList, MakesOneKernelOfAllTensorsOfAModel) {
  const Graph lamb =
      BindSizes(MakeWorkload("lamb").value(), {{"N", *ModelSizes("bert-large")}}).value();
  const Lowered lowered =
      Lower(FindSchedule(lamb, "fuse(RS, C, fold, AR, C, AG); slice m v"), {}, 2).value();
  ASSERT_EQ(lowered.plan.steps.size(), 1u);
  const auto& kernel = std::get<KernelStep>(lowered.plan.steps[0]);
  EXPECT_EQ(kernel.tensors.size(), 396u);
  int64_t data = 0, metadata = static_cast<int64_t>(kernel.tensors.size()) *
                               WordsOf(kernel.tensors[0], 2) * 8;
  for (const Buffer& buffer : lowered.plan.buffers) {
    (buffer.role == BufferRole::kSync ? metadata : data) +=
        buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype));
  }
  EXPECT_LT(metadata, data / 100);
}

TEST(LowerList, WorksInBatchesOfWholeTensors) {
  const Graph lamb =
      BindSizes(MakeWorkload("lamb").value(), {{"N", {100, 60, 1000, 0, 40, 40, 40}}}).value();
  const Schedule fused = FindSchedule(lamb, "fuse(RS, C, fold, AR, C, AG); slice m v");
  const Lowered lowered = Lower(fused, {.batch = 80}, 2).value();  // elements of a rank
  const std::string kernel = "kernel fuse(RS, AR, C, AG) of ";
  EXPECT_EQ(Outline(lowered.plan), absl::StrCat(kernel, "2; ", kernel, "1; ", kernel, "4; "));
  EXPECT_EQ(lowered.kernels.text(), Lower(fused, {}, 2)->kernels.text())
      << "one kernel serves batches of all sizes";
}

TEST(LowerList, HasLibraryCollectivesOfEachTensor) {
  const Graph g = Bound(
      "input g : f32[N] local\nstate p : f32[N] replicated\nupdate(p, p + all_reduce(sum, g))\n",
      {{"N", {100, 0, 7}}});
  EXPECT_EQ(Outline(Lower(FindSchedule(g, "AR; C"), {}, 2)->plan),
            "AR of 100; AR of 7; kernel C of 3; ")
      << "an empty tensor needs none";
}

TEST(LowerList, ReducesATotalOverRanksOnce) {
  const Graph g = Bound("input g : f32[N] local\noutput n = total(all_reduce(sum, sum(g)))\n",
                        {{"N", {100, 7}}});
  EXPECT_EQ(Outline(Lower(*InitialSchedule(g), {}, 2)->plan),
            "kernel C of 2; kernel C of 2; AR of 1; ");
}

TEST(LowerList, GivesRanksMemoryForTheirTensorsOnly) {
  const auto by_rank = [](absl::string_view layout) {
    const Graph g = Bound(absl::StrCat("input t : f32[R, 32] ", layout,
                                       "\ninput i : i32[B, L] replicated\n"
                                       "output y = all_to_all(embedding_bag(t, i, sum), 0)\n"),
                          {{"R", {100, 10, 1}}, {"B", 4}, {"L", {5, 2, 1}}});
    const Plan plan = Lower(FindSchedule(g, "fuse(C, A2A)"), {}, 2)->plan;
    std::vector<std::vector<int64_t>> elements;
    for (const Buffer& buffer : plan.buffers) {
      if (absl::StartsWith(buffer.name, "t.")) elements.push_back({buffer.On(0), buffer.On(1)});
    }
    return elements;
  };
  using Elements = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(by_rank("owned(by L)"), (Elements{{3200, 0}, {0, 320}, {0, 32}}));
  // A rank does four of the eight look-ups: of the five in the first table, one is the other
  // rank's.
  EXPECT_EQ(by_rank("sliced(1, by L)"), (Elements{{2600, 2600}, {0, 320}, {0, 32}}));
}

TEST(LowerList, DependsOnTheNumberOfTensorsInItsTablesOnly) {
  const auto source = [](const std::vector<int64_t>& sizes) {
    const Graph g = BindSizes(MakeWorkload("clip").value(), {{"N", sizes}}).value();
    return Lower(FindSchedule(g, "fuse(RS, C, fold, AR, C, AG); slice m v"), {}, 2)->kernels.text();
  };
  EXPECT_EQ(source({100, 7, 1, 0}), source({5}));
}

TEST(LowerList, SaysWhereTensorsNeedOtherKernels) {
  const Graph g = Bound(
      "input g : f32[N] local\ninput b : f32[1] replicated\nG = all_reduce(sum, g) * b\noutput y = "
      "G / total(sum(G))\n",
      {{"N", {8, 1}}});
  const Schedule fused = FindSchedule(g, "fuse(AR, C, fold, C)");
  EXPECT_EQ(Lower(fused, {}, 2).status(),
            absl::FailedPreconditionError("lower(t): tensor 1 needs another kernel than tensor 0, "
                                          "and one must add something up over all"));
  const Graph apart = Bound(
      "input g : f32[N] local\ninput b : f32[1] replicated\noutput y = all_reduce(sum, g) * b + "
      "b\n",
      {{"N", {8, 1, 9}}});
  EXPECT_EQ(Outline(Lower(FindSchedule(apart, "fuse(AR, C)"), {}, 2)->plan),
            "kernel fuse(AR, C) of 2; kernel fuse(AR, C) of 1; ");
}

TEST(LowerList, AwaitsTilesOfAProductBesideAList) {
  const Graph g = Bound(
      "input x : f32[128, 32] local\ninput w : f32[32, 64] replicated\ninput p : f32[N] "
      "replicated\noutput c = abs(all_reduce(sum, matmul(x, w)))\noutput q = exp(p)\n",
      {{"N", {8, 100}}});
  const Schedule fused = FindSchedule(g, "fuse(MM, AR, C); C");
  EXPECT_EQ(Outline(Lower(fused, {.protocol = Protocol::kGenerated}, 2)->plan),
            "kernel fuse(MM, AR, C) of 0; kernel C of 2; ");
}

TEST(LowerList, SendsTablesWhileItPoolsOthers) {
  const Graph tables = BindSizes(MakeWorkload("dlrm_embedding").value(),
                                 {{"B", 64}, {"R", 10}, {"D", 32}, {"L", {1, 2, 30, 2, 3}}})
                           .value();
  const Plan plan = Lower(FindSchedule(tables, "ol(C, A2A)"), {.pieces = 3}, {2, 2})->plan;
  // The table with most look-ups is pooled last. It is cut: 18 of its 32 columns are the longer
  // part.
  EXPECT_EQ(Outline(plan),
            absl::StrCat("kernel C of 2; A2A of 1024; A2A of 1024; kernel C of 2; A2A of 1024; A2A "
                         "of 1024; kernel C of 1; A2A of ",
                         32 * 18, "; "));
  EXPECT_EQ(std::get<KernelStep>(plan.steps[0]).lane, 0);
  EXPECT_EQ(std::get<CollectiveStep>(plan.steps[1]).lane, 1);
}

}  // namespace
}  // namespace coconet
