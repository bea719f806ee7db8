#include "coconet/ir/lists.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kClip[] = R"(coconet 1
program clip
input g : f32[N] local
state p : f32[N] replicated
input wd : f32[] replicated each
input lr : f32[] replicated
G = all_reduce(sum, g) / world
size = sqrt(total(sum(G * G)))
update(p, p - lr * (G / max(size, 1) + wd * p))
)";

Graph Bound(absl::string_view text, const Sizes& sizes) {
  const absl::StatusOr<Graph> bound = BindSizes(*Parse(text), sizes);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *bound;
}

double Value(const std::string& name, int rank, int64_t index) {
  double value = static_cast<double>(rank) / 4 + static_cast<double>(index % 7) / 8 + 0.25;
  for (char c : name) value += static_cast<double>(c % 16) / 64;
  return value;
}

std::vector<Number> ValuesOf(const Graph& g, int ranks, const std::string& result,
                             int64_t elements) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < elements; ++i) indices.push_back(i);
  return Interpreter::Create(g, ranks)->Evaluate(result, 0, indices, Value)->value;
}

TEST(Lists, AreTextThatParsesBack) {
  const Graph g = Bound(kClip, {{"N", {3, 0, 1024}}});
  EXPECT_EQ(TensorCount(g), 3);
  EXPECT_TRUE(
      absl::StrContains(Print(g), "program clip\nsizes N = 3, 0, 1024\ninput g : f32[N] local\n"))
      << Print(g);
  EXPECT_TRUE(absl::StrContains(Print(g), "input wd : f32[] replicated each\n"));
  EXPECT_EQ(*Parse(Print(g)), g);
}

TEST(Lists, OfOneSizeAreLists) {
  EXPECT_EQ(TensorCount(Bound(kClip, {{"N", {5}}})), 1);
  EXPECT_EQ(TensorCount(Bound(kClip, {{"N", 5}})), 0);
}

TEST(Lists, EachTensorHasExtentsOfItsOwn) {
  const Graph g = Bound(R"(coconet 1
input g : f32[N] local
input x : f32[3] replicated
output y = all_reduce(sum, g) / extent(f32, g, 0)
output z = x * total(extent(f32, g, 0)) + extent(f32, x, 0)
)",
                        {{"N", {2, 5}}});
  EXPECT_EQ(ValuesOf(Expand(g), 2, "y.1", 5)[4], (Value("g.1", 0, 4) + Value("g.1", 1, 4)) / 5);
  EXPECT_EQ(ValuesOf(Expand(g), 2, "z", 3)[1], Value("x", 0, 1) * 7 + 3);
}

TEST(Lists, TensorsHaveTheirOwnTermsOfSums) {
  constexpr char kJoined[] = R"(coconet 1
input a : f32[N] replicated
input b : f32[M] replicated
output y = concat(a, b, a, 0) * count(f32, [2*N + M])
)";
  const Graph g = Bound(kJoined, {{"N", {2, 0}}, {"M", 3}});
  EXPECT_EQ(Print(Expand(g)), R"(coconet 1
input a.0 : f32[2] replicated
input a.1 : f32[0] replicated
input b : f32[3] replicated
%3 = concat(a.0, b, a.0, 0)
%4 = concat(a.1, b, a.1, 0)
%5 = count(f32, [7])
%6 = count(f32, [3])
%7 = mul(%3, %5)
%8 = mul(%4, %6)
output y.0 = %7
output y.1 = %8
)");
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(BindSizes(*Parse(kJoined), {{"N", {1, most / 2}}, {"M", 3}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Lists, GiveEachTensorItsShareOfWeights) {
  constexpr char kTables[] = "coconet 1\ninput t : f32[9] sliced(0, by L)\noutput o = t * 2\n";
  const Graph g = Bound(kTables, {{"L", {3, 0, 4}}});
  EXPECT_EQ(TensorCount(g), 3);
  EXPECT_EQ(KindsOf(g).first, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(Print(Expand(g)), R"(coconet 1
input t.0 : f32[9] sliced(0, by 0+3/7)
input t.1 : f32[9] sliced(0, by 3+0/7)
input t.2 : f32[9] sliced(0, by 3+4/7)
%3 = const(2, f32)
%4 = mul(t.0, %3)
%5 = mul(t.1, %3)
%6 = mul(t.2, %3)
output o.0 = %4
output o.1 = %5
output o.2 = %6
)");
  EXPECT_EQ(*Parse(Print(Expand(g))), Expand(g));
  // A tensor that is alone has equal parts.
  EXPECT_EQ(Print(Bound(kTables, {{"L", 5}})),
            "coconet 1\ninput t : f32[9] sliced(0)\n%1 = const(2, f32)\n%2 = mul(t, %1)\n"
            "output o = %2\n");
  const int64_t half = kMostWeight / 2;
  EXPECT_EQ(BindSizes(*Parse(kTables), {{"L", {half, half + 1}}}).status().message(),
            "sizes of L: want weights of at most 2^52 together");
  EXPECT_EQ(BindSizes(*Parse(kTables), {}).status().message(), "size of L: no value is given");
}

TEST(Lists, GiveEachTensorToARankByWeight) {
  constexpr char kTables[] =
      "coconet 1\ninput t : f32[9] owned(by L)\ninput x : f32[9] replicated\n"
      "output o = t + shard(x, owned(by L))\n";
  const Graph g = Bound(kTables, {{"L", {3, 0, 4}}});
  EXPECT_EQ(KindsOf(g).first, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(Print(Expand(g)), R"(coconet 1
input t.0 : f32[9] owned(after 4)
input t.1 : f32[9] owned(after 4, 3)
input t.2 : f32[9] owned
input x : f32[9] replicated
%4 = shard(x, owned(after 4))
%5 = shard(x, owned(after 4, 3))
%6 = shard(x, owned)
%7 = add(t.0, %4)
%8 = add(t.1, %5)
%9 = add(t.2, %6)
output o.0 = %7
output o.1 = %8
output o.2 = %9
)");
  EXPECT_EQ(*Parse(Print(Expand(g))), Expand(g));
  // A tensor that is alone is rank 0's.
  EXPECT_EQ(Print(Bound(kTables, {{"L", 5}})),
            "coconet 1\ninput t : f32[9] owned\ninput x : f32[9] replicated\n"
            "%2 = shard(x, owned)\n%3 = add(t, %2)\noutput o = %3\n");
  EXPECT_EQ(BindSizes(*Parse(kTables), {}).status().message(), "size of L: no value is given");
}

TEST(Lists, SayWhatDoesNotFit) {
  const Graph clip = *Parse(kClip);
  const auto words = [](const absl::StatusOr<Graph>& g) {
    return std::string(g.status().message());
  };
  EXPECT_EQ(words(BindSizes(clip, {{"N", std::vector<int64_t>{}}})),
            "sizes of N: want 1 to 65536 tensors, have 0");
  EXPECT_EQ(words(BindSizes(clip, {{"N", {1, -2}}})),
            "sizes of N: want 0 or more, tensor 1 has -2");
  EXPECT_EQ(words(BindSizes(Bound(kClip, {{"N", {1, 2}}}), {{"N", 3}})),
            "size of N: the program has a list of them");
  EXPECT_EQ(words(BindSizes(*Parse("coconet 1\ninput a : f32[N] local\ninput b : f32[M] "
                                   "local\noutput c = a * 2\noutput d = b * 2\n"),
                            {{"N", {1, 2}}, {"M", {1, 2, 3}}})),
            "sizes of N: want as many tensors as M has, 3, have 2");
  EXPECT_EQ(words(Parse("coconet 1\nsizes K = 1, 2\ninput a : f32[N] local\noutput c = a\n")),
            "line 5: sizes of K: no declaration mentions it");
  EXPECT_EQ(words(Parse("coconet 1\nsizes N = 1,\n")),
            "line 2: expected the size of a tensor, found end of line");
  EXPECT_EQ(words(Parse("coconet 1\nsizes N = 1\nsizes N = 2\n")),
            "line 3: sizes of N: given twice");
  EXPECT_EQ(words(BindSizes(*Parse("coconet 1\nstate s : f32[] replicated\ninput a : f32[N] "
                                   "replicated\nupdate(s, sum(a))\n"),
                            {{"N", {1, 2}}})),
            "update(s, sum(a)): all tensors share s, and each has a value of its own for it; "
            "declare it each, or assign a total");
  EXPECT_EQ(
      words(BindSizes(
          *Parse(
              "coconet 1\ninput s : f32[]\ninput a : f32[N] replicated\noutput b = a * total(s)\n"),
          {{"N", {1, 2}}})),
      "total(sum, s): want a value of each tensor, have one that all tensors share");
  EXPECT_EQ(
      words(Parse("coconet 1\ninput a : f32[N] replicated\noutput b = total(a)\n")),
      "line 3: total(sum, a): want a scalar, have a : f32[N] replicated; fold the tensor first");
}

TEST(Lists, ExpandToOneOfEachATensor) {
  const Graph g =
      Expand(Bound("coconet 1\nprogram p\ninput g : f32[N] local\nstate e : f32[] replicated "
                   "each\nstate most : f32[] replicated\n"
                   "n = all_reduce(sum, sum(g))\nupdate(e, n)\nupdate(most, total(max, n))\n",
                   {{"N", {3, 7, 1}}}));
  EXPECT_EQ(Print(g), R"(coconet 1
program p
input g.0 : f32[3] local
input g.1 : f32[7] local
input g.2 : f32[1] local
state e.0 : f32[] replicated
state e.1 : f32[] replicated
state e.2 : f32[] replicated
state most : f32[] replicated
%7 = sum(g.0)
%8 = sum(g.1)
%9 = sum(g.2)
%10 = all_reduce(sum, %7)
%11 = all_reduce(sum, %8)
%12 = all_reduce(sum, %9)
%13 = update(e.0, %10)
%14 = update(e.1, %11)
%15 = update(e.2, %12)
%16 = max(%10, %11)
%17 = max(%16, %12)
%18 = update(most, %17)
)");
  EXPECT_EQ(*Parse(Print(g)), g);
}

TEST(Lists, GiveWhatSeparateProgramsGive) {
  constexpr char kSgd[] =
      "coconet 1\ninput g : f32[N] local\nstate p : f32[N] replicated\ninput lr : f32[]\n"
      "update(p, p - lr * all_reduce(sum, g) / norm(p))\n";
  const std::vector<int64_t> sizes = {5, 1, 64, 5};
  const Graph together = Expand(Bound(kSgd, {{"N", sizes}}));
  for (size_t t = 0; t < sizes.size(); ++t) {
    const Graph alone = Bound(kSgd, {{"N", sizes[t]}});
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < sizes[t]; ++i) indices.push_back(i);
    const auto source = [&](const std::string& name, int rank, int64_t i) {
      return Value(name == "lr" ? name : TensorName(name, static_cast<int>(t)), rank, i);
    };
    EXPECT_EQ(Interpreter::Create(alone, 3)->Evaluate("p", 0, indices, source)->value,
              ValuesOf(together, 3, TensorName("p", static_cast<int>(t)), sizes[t]));
  }
}

TEST(Lists, ShareOneCollectiveATotal) {
  const Graph g = TotalBeforeRanks(
      *Parse("coconet 1\ninput g : f32[N] local\noutput a = total(all_reduce(sum, sum(g)))\n"
             "output b = total(max, all_reduce(sum, sum(g)))\n"));
  const std::string text = Print(Canonicalize(g).graph);
  EXPECT_TRUE(
      absl::StrContains(text, "%2 = total(sum, %1)\n%3 = all_reduce(sum, %2)\noutput a = %3\n"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "= all_reduce(sum, %1)\n"))
      << "a maximum of sums is not a sum of maxima:\n"
      << text;
}

/// Overlaps are of batches of tensors, or of pieces of one: others.
TEST(Lists, HaveTheSchedulesOfOneTensorButForOverlaps) {
  const auto without_overlaps = [](const Sizes& sizes) {
    std::vector<Schedule> schedules = *Derive(Bound(kClip, sizes));
    std::erase_if(schedules, [](const Schedule& s) { return !s.overlaps().empty(); });
    return schedules;
  };
  const std::vector<Schedule> of_list = without_overlaps({{"N", {3, 0, 1024}}}),
                              of_one = without_overlaps({{"N", 1024}});
  ASSERT_EQ(of_list.size(), of_one.size());
  for (size_t i = 0; i < of_list.size(); ++i) {
    EXPECT_EQ(TraceText(of_list[i].trace()), TraceText(of_one[i].trace()));
    EXPECT_EQ(Describe(of_list[i]), Describe(of_one[i]));
  }
}

TEST(Lists, KeepTheirMeaningInEverySchedule) {
  const Graph program = Bound(kClip, {{"N", {3, 17, 1}}});
  const std::vector<Number> want = ValuesOf(Expand(program), 2, "p.1", 17);
  const std::vector<Schedule> schedules = *Derive(program);
  for (const Schedule& s : schedules) {
    const std::vector<Number> have = ValuesOf(Expand(s.graph()), 2, "p.1", 17);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(have[i].real(), want[i].real(), 1e-6) << TraceText(s.trace());
  }
}

TEST(Lists, FuseClippingIntoOneKernel) {
  std::vector<std::string> words;
  const std::vector<Schedule> schedules = *Derive(Bound(kClip, {{"N", {3, 17, 1}}}));
  for (const Schedule& s : schedules) words.push_back(Describe(s));
  EXPECT_TRUE(absl::c_linear_search(words, "fuse(RS, C, fold, AR, C, AG)"))
      << absl::StrJoin(words, "\n");
}

TEST(Lists, MixNoSharedTensorsIntoTheirKernels) {
  const Graph g = Bound(
      "coconet 1\ninput a : f32[N] replicated\ninput b : f32[8] replicated each\ninput c : f32[8] "
      "replicated\n"
      "x = b * 2\ny = c * 2\noutput o = a * sum(x)\noutput q = y + y\noutput r = x + 1\n",
      {{"N", {8, 8}}});
  const Schedule s = *InitialSchedule(g);
  NodeId of_b = -1, of_c = -1;
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    if (NodeText(s.graph(), id).find("= mul(b, ") != std::string::npos) of_b = id;
    if (NodeText(s.graph(), id).find("= mul(c, ") != std::string::npos) of_c = id;
  }
  ASSERT_TRUE(of_b >= 0 && of_c >= 0) << Print(s.graph());
  const absl::Status refused =
      Apply(s, Fuse{{std::min(of_b, of_c), std::max(of_b, of_c)}}).status();
  EXPECT_TRUE(absl::StrContains(refused.message(), "want one of the two in a kernel")) << refused;
}

}  // namespace
}  // namespace coconet
