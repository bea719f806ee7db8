#include "autotune/search/parts.h"

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "autotune/search/sizes/small_sizes.h"
#include "autotune/search/variants.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

const Target kTwo(2);

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Graph Canonical(const std::string& body, const Sizes& sizes) {
  const absl::StatusOr<Graph> parsed = Parse(absl::StrCat("coconet 1\nprogram whole\n", body));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return InitialSchedule(*BindSizes(*parsed, sizes))->graph();
}

/// A step of momentum on each of so many parameters of N elements, or every other one of M.
Graph Optimizer(int count, bool two_sizes = false) {
  std::string text = "input lr : f32[]\n";
  for (int i = 0; i < count; ++i) {
    const char* size = two_sizes && i % 2 == 1 ? "M" : "N";
    absl::StrAppend(&text, "input g", i, " : f32[", size, "] local\nstate p", i, " : f32[", size,
                    "] replicated\nstate m", i, " : f32[", size, "]\nupdate(m", i, ", 0.5 * m", i,
                    " + all_reduce(sum, g", i, "))\nupdate(p", i, ", p", i, " - 2 * lr * m", i,
                    ")\n");
  }
  return two_sizes ? Canonical(text, {{"N", 1000}, {"M", 77}}) : Canonical(text, {{"N", 1000}});
}

TEST(SplitIntoParts, PartsThatDifferInNamesAreOfOneKind) {
  const Parts parts = SplitIntoParts(Optimizer(12));
  EXPECT_EQ(parts.parts.size(), 12u);
  ASSERT_EQ(parts.kinds.size(), 1u);
  EXPECT_THAT(parts.parts[10].names, UnorderedElementsAre(Pair("x0", "lr"), Pair("x1", "g10"),
                                                          Pair("x2", "p10"), Pair("x3", "m10")));
  EXPECT_EQ(Print(InitialSchedule(parts.kinds[0])->graph()), Print(parts.kinds[0]))
      << "a program in canonical order";
}

TEST(SplitIntoParts, PartsOfOtherSizesAreOfOtherKinds) {
  const Parts parts = SplitIntoParts(Optimizer(12, /*two_sizes=*/true));
  EXPECT_EQ(parts.parts.size(), 12u);
  EXPECT_EQ(parts.kinds.size(), 2u);
}

TEST(SplitIntoParts, WhatReadsOneTensorIsOnePart) {
  const Graph program = Canonical(
      "input g : f32[N] local\noutput a = all_reduce(sum, g)\noutput b = all_reduce(max, g)\n",
      {{"N", 10}});
  const Parts parts = SplitIntoParts(program);
  ASSERT_EQ(parts.parts.size(), 1u);
  EXPECT_EQ(Print(parts.kinds[0]), Print(program)) << "with its own names";
}

TEST(SplitIntoParts, ANormOfAllTensorsConnectsThem) {
  const Graph program = Canonical(
      "input a : f32[N] local\ninput b : f32[M] local\n"
      "x = all_reduce(sum, a)\ny = all_reduce(sum, b)\nn = sum(x * x) + sum(y * y)\n"
      "output u = x / n\noutput v = y / n\n",
      {{"N", 10}, {"M", 20}});
  EXPECT_EQ(SplitIntoParts(program).parts.size(), 1u);
}

TEST(SplitIntoParts, EveryNameIsInAPart) {
  const Graph program = Canonical(
      "input unused : f32[N] local\nstate idle : f32[M]\ninput s : f32[]\n"
      "input a : f32[N] local\ninput b : f32[M] local\noutput u = all_reduce(sum, a)\n"
      "output v = all_reduce(sum, b)\noutput w = 2 * s\n",
      {{"N", 10}, {"M", 20}});
  std::set<std::string> names;
  const Parts parts = SplitIntoParts(program);
  EXPECT_EQ(parts.parts.size(), 3u);
  for (const Parts::Part& part : parts.parts) {
    for (const auto& [own, name] : part.names) names.insert(name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"unused", "idle", "s", "a", "b", "u", "v", "w"}));
}

class CombinationTest : public ::testing::Test {
 protected:
  /// Kind k with the last but k-th of its schedules, and its last config.
  Combination Some() const {
    Combination combination{parts_, {}};
    for (const Graph& kind : parts_->kinds) {
      const VariantSet set = EnumerateVariants(kind, space_).value();
      const Variant& v = set.variants[set.variants.size() - 1 - combination.kinds.size()];
      combination.kinds.push_back({v.schedule, v.config});
    }
    return combination;
  }

  const ConfigSpace space_{.ranks = 2, .cores = 2};
  const Graph program_ = Optimizer(5, /*two_sizes=*/true);
  const std::shared_ptr<const Parts> parts_ =
      std::make_shared<const Parts>(SplitIntoParts(program_));
};

TEST_F(CombinationTest, PrintsAndParsesBack) {
  const Combination combination = Some();
  const std::string text = Text(combination);
  EXPECT_TRUE(IsCombination(text));
  EXPECT_FALSE(IsCombination(TraceText(combination.kinds[0].schedule.trace())));
  const absl::StatusOr<Combination> parsed = ParseCombination(text, parts_, space_);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Text(*parsed), text);
  EXPECT_EQ(Print(ScheduleOf(*parsed)), Print(ScheduleOf(combination)));
  EXPECT_THAT(Describe(combination), HasSubstr("3x ["));
}

TEST_F(CombinationTest, TextsOfOtherProgramsAreRefused) {
  const std::string text = Text(Some());
  const auto other = std::make_shared<const Parts>(SplitIntoParts(Optimizer(5)));
  EXPECT_THAT(ParseCombination(text, other, space_).status().message(),
              HasSubstr("with 1 kinds of parts, have 2"));
  for (const char* damaged : {"apart {", "apart {} {}", "apart {fuse(%99) | library} {}", "x"})
    EXPECT_FALSE(ParseCombination(damaged, parts_, space_).ok()) << damaged;
}

TEST_F(CombinationTest, JoinsPlansAndSharesKernelsAndScalars) {
  const Combination combination = Some();
  const absl::StatusOr<Lowered> whole = LowerApart(combination, kTwo);
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::vector<Lowered> kinds;
  std::set<std::string> symbols, joined;
  for (const PartVariant& kind : combination.kinds) {
    kinds.push_back(Lower(kind.schedule, kind.config, kTwo).value());
    for (const auto& [symbol, text] : kinds.back().kernels.kernels()) symbols.emplace(symbol);
  }
  for (const auto& [symbol, text] : whole->kernels.kernels())
    EXPECT_TRUE(joined.emplace(symbol).second);
  EXPECT_EQ(joined, symbols);
  size_t steps = 0;
  for (const Parts::Part& part : parts_->parts) steps += kinds[part.kind].plan.steps.size();
  EXPECT_EQ(whole->plan.steps.size(), steps);
  std::set<std::string> buffers;
  for (const Buffer& buffer : whole->plan.buffers)
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
  EXPECT_TRUE(buffers.contains("lr") && buffers.contains("m4"));
  for (int step = 0; step < static_cast<int>(steps); ++step) {
    for (int after : AfterOf(whole->plan.steps[step])) EXPECT_LT(after, step);
  }
}

TEST_F(CombinationTest, IsTheWholeProgramAtSmallSizesToo) {
  const Combination combination = Some();
  const auto declarations = [](const Graph& g) {
    std::set<std::string> lines;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (const auto* input = As<Input>(g, id)) lines.insert(input->name + Text(input->type));
      if (const auto* state = As<State>(g, id)) lines.insert(state->name + Text(state->type.shape));
    }
    return lines;
  };
  EXPECT_EQ(declarations(ScheduleOf(combination).graph()), declarations(program_));
  const std::map<int64_t, int64_t> extents = SmallExtents(program_, {.elements = 20});
  EXPECT_EQ(declarations(ScheduleOf(*Resized(combination, extents)).graph()),
            declarations(Shrink(program_, {.elements = 20})));
}

}  // namespace
}  // namespace coconet
