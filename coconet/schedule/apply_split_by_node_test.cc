#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kMomentum[] = R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N]
G = all_reduce(sum, g)
m1 = update(m, 0.9 * m + G)
update(p, p - m1)
)";

TEST(SplitByNode, TurnsAllReduceIntoStepsWithinAcrossAndWithinNodes) {
  EXPECT_EQ(Transformed(kMomentum, "split_by_node(%5, flat)"), R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N] auto
%3 = const(0.9, f32)
%4 = mul(%3, m)
%5 = reduce_scatter(sum, g, 0, node)
%6 = all_reduce(sum, %5, across)
%7 = all_gather(%6, node)
%8 = add(%4, %7)
%9 = update(m, %8)
%10 = sub(p, %9)
%11 = update(p, %10)
)");
  EXPECT_EQ(TraceText(ScheduleOf(kMomentum, "split_by_node(%5, flat)").trace()),
            "split_by_node(%5, 0)");
  EXPECT_EQ(Describe(ScheduleOf(kMomentum, "split_by_node(%5, 0)")),
            "RS(node); AR(across); AG(node); C");
}

TEST(SplitByNode, LetsComputationMoveToThePartsOfAPlace) {
  EXPECT_EQ(Transformed("input g : f32[N] local\ninput b : f32[N] replicated\noutput y = 2 * "
                        "(all_reduce(sum, g) + b)\n",
                        "split_by_node(%3, 0); reorder(%5)"),
            R"(input g : f32[N] local
input b : f32[N] replicated
%2 = const(2, f32)
%3 = reduce_scatter(sum, g, 0, node)
%4 = all_reduce(sum, %3, across)
%5 = add(%4, b)
%6 = mul(%2, %5)
%7 = all_gather(%6, node)
output y = %7
)");
  EXPECT_EQ(Describe(ScheduleOf("input g : f32[N] local\noutput y = 2 * all_reduce(sum, g)\n",
                                "split_by_node(%2, 0); reorder(%4); fuse(%4 %5 %6)")),
            "RS(node); AR(across); fuse(C, AG(node))");
}

TEST(SplitByNode, OfScattersAndGathersKeepsWhatLiesBetween) {
  const Schedule s = ScheduleOf(kMomentum, "split(%5, 0); reorder(%6); slice(%2)");
  EXPECT_EQ(Describe(s), "RS; C; AG p; slice m");
  const std::string nested =
      "split(%5, 0); reorder(%6); slice(%2); split_by_node(%5, 0); split_by_node(%9, 0)";
  EXPECT_EQ(Transformed(kMomentum, nested), R"(input g : f32[N] local
state p : f32[N] replicated
state m : f32[N] sliced(0)
%3 = const(0.9, f32)
%4 = mul(%3, m)
%5 = reduce_scatter(sum, g, 0, node)
%6 = reduce_scatter(sum, %5, 0, across)
%7 = add(%4, %6)
%8 = sub(p, %7)
%9 = all_gather(%8, across)
%10 = all_gather(%9, node)
%11 = update(p, %10)
%12 = update(m, %7)
)");
  EXPECT_EQ(Describe(ScheduleOf(kMomentum, nested)),
            "RS(node); RS(across); C; AG(across); AG(node) p; slice m");
}

TEST(SplitByNode, PrintsAndParses) {
  const Schedule s = ScheduleOf("input g : f32[A, B] local\noutput y = all_reduce(max, g)\n",
                                "split(%1, 1); split_by_node(%1, 1); split_by_node(%3, 1)");
  const absl::StatusOr<Graph> parsed = Parse(Print(s.graph()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), Print(s.graph()));
  EXPECT_EQ(TraceText(*ParseTrace("split_by_node(%4, flat)")), "split_by_node(%4, flat)");
}

TEST(SplitByNode, RefusesInWords) {
  const auto refusal = [](absl::string_view trace) { return Transformed(kMomentum, trace); };
  EXPECT_EQ(refusal("split_by_node(%4, 0)"),
            "split_by_node(%4, 0): want all_reduce, reduce_scatter or all_gather over all ranks, "
            "have %4 = mul(%3, m)");
  EXPECT_EQ(refusal("split_by_node(%5, 0); split_by_node(%6, 0)"),
            "split_by_node(%6, 0): want all_reduce, reduce_scatter or all_gather over all ranks, "
            "have %6 = all_reduce(sum, %5, across)");
  EXPECT_EQ(refusal("split_by_node(%5, 1)"),
            "split_by_node(%5, 1): want flat or a dimension from 0 to 0 of [N], have 1");
  EXPECT_EQ(
      Transformed("input g : f32[A, B] local\noutput y = all_reduce(sum, g)\n",
                  "split(%1, 1); split_by_node(%1, 0)"),
      "split_by_node(%1, 0): %1 = reduce_scatter(sum, g, 1) has slices over 1, want that, have 0");
  EXPECT_EQ(
      Transformed("input g : f32[] local\noutput y = all_reduce(sum, g)\n",
                  "split_by_node(%1, flat)"),
      "split_by_node(%1, flat): %1 = all_reduce(sum, g) is a scalar: there is nothing to scatter");
}

TEST(SplitByNode, OtherTransformationsRefusePartsOfPlaces) {
  const auto refusal = [](absl::string_view trace) { return Transformed(kMomentum, trace); };
  EXPECT_EQ(refusal("split_by_node(%5, 0); split(%6, 0)"),
            "split(%6, 0): want all_reduce, a fold or send, have %6 = all_reduce(sum, %5, across)");
  EXPECT_EQ(refusal("split_by_node(%5, 0); reorder(%7); slice(%2)"),
            "slice(%2): %11 = all_gather(%7, node) gathers f32[N] sliced(0, place), but a state "
            "keeps each rank's own part: slice before split_by_node");
  EXPECT_EQ(refusal("split(%5, 0); split_by_node(%5, 0); reorder(%7); fuse(%6 %7)"),
            "fuse(%6 %7): %6 = reduce_scatter(sum, %5, 0, across) is a launch of its own, not work "
            "of a kernel");
  EXPECT_EQ(Transformed("input g : f32[N] local\ninput h : f32[N] local\noutput y = 2 * "
                        "all_reduce(sum, g)\noutput z = reduce_scatter(sum, h, 0)\n",
                        "split_by_node(%3, 0); reorder(%5); fuse(%5 %6 %8)"),
            "fuse(%5 %6 %8): want one sliced dimension, have %5 = mul(%2, %4) sliced(0, place) and "
            "%8 = reduce_scatter(sum, h, 0) sliced(0)");
  EXPECT_EQ(Transformed("input g : f32[N] local\ninput h : f32[N] local\noutput y = "
                        "all_reduce(sum, g)\noutput z = all_reduce(sum, h)\n",
                        "split_by_node(%2, 0); fuse(%2 %6)"),
            "fuse(%2 %6): %2 = reduce_scatter(sum, g, 0, node) and %6 = all_reduce(sum, h) are "
            "between different ranks: want one of the two in a kernel");
}

// ---- What operations take and give --------------------------------------------------------------

/// The error of a program that declares x : f32[A, B] local and s : f32[A, B] sliced(0); "" when it
/// has none.
std::string ErrorOf(absl::string_view line) {
  const absl::Status status =
      Parse(absl::StrCat("coconet 1\ninput x : f32[A, B] local\ninput s : f32[A, B] sliced(0)\n",
                         "n = reduce_scatter(sum, x, 0, node)\np = all_reduce(sum, n, across)\n",
                         line, "\noutput o = x\n"))
          .status();
  return status.ok() ? "" : std::string(status.message());
}

TEST(Spans, GiveWhatFitsTogether) {
  EXPECT_EQ(ErrorOf("output y = all_gather(p, node)"), "");
  EXPECT_EQ(ErrorOf("output y = all_gather(reduce_scatter(sum, n, 0, across))"), "");
  EXPECT_EQ(ErrorOf("output y = all_gather(p + all_gather(s, across), node)"), "");
  EXPECT_EQ(ErrorOf("output y = all_gather(sum(p, 1) * all_reduce(max, 2 * n, across), node)"), "");
}

TEST(Spans, RefuseWhatDoesNotFitInWords) {
  EXPECT_EQ(ErrorOf("y = p + s"),
            "line 6: add(all_reduce(sum, reduce_scatter(...), across), s): operands are sliced "
            "over different ranks, have all_reduce(sum, reduce_scatter(sum, x, 0, node), across) : "
            "f32[A, B] sliced(0, place) and s : f32[A, B] sliced(0)");
  EXPECT_EQ(ErrorOf("y = n + x"),
            "line 6: add(reduce_scatter(sum, x, 0, node), x): a local operand does not meet the "
            "parts of a place, which several ranks have, have reduce_scatter(sum, x, 0, node) : "
            "f32[A, B] sliced(0, partial) and x : f32[A, B] local");
  EXPECT_EQ(ErrorOf("output y = p"),
            "line 6: output y = %3: parts of a place are for elementwise operations and "
            "collectives within or across nodes, have all_reduce(sum, reduce_scatter(sum, x, 0, "
            "node), across) : f32[A, B] sliced(0, place)");
  EXPECT_EQ(ErrorOf("y = all_gather(p)"),
            "line 6: all_gather(all_reduce(sum, reduce_scatter(...), across)): want a sliced "
            "operand with each rank's own part, have all_reduce(sum, reduce_scatter(sum, x, 0, "
            "node), across) : f32[A, B] sliced(0, place)");
  EXPECT_EQ(
      ErrorOf("y = all_gather(n, node)"),
      "line 6: all_gather(reduce_scatter(sum, x, 0, node), node): want a sliced operand with the "
      "parts of a place, have reduce_scatter(sum, x, 0, node) : f32[A, B] sliced(0, partial)");
  EXPECT_EQ(ErrorOf("y = all_gather(x, across)"),
            "line 6: all_gather(x, across): want a sliced operand, have x : f32[A, B] local");
  EXPECT_EQ(ErrorOf("y = all_reduce(sum, x, node)"),
            "line 6: all_reduce(sum, x, node): an all_reduce within nodes gives nothing that other "
            "operations take; want all ranks, or across");
  EXPECT_EQ(ErrorOf("y = all_reduce(sum, x, across)"),
            "line 6: all_reduce(sum, x, across): want what reduce_scatter(..., node) gives, have x "
            ": f32[A, B] local");
  EXPECT_EQ(ErrorOf("y = reduce_scatter(sum, n, 1, across)"),
            "line 6: reduce_scatter(sum, reduce_scatter(sum, x, 0, node), 1, across): want an "
            "operand sliced over the same dimension, have reduce_scatter(sum, x, 0, node) : f32[A, "
            "B] sliced(0, partial)");
  EXPECT_EQ(ErrorOf("y = sum(p)"),
            "line 6: sum(all_reduce(sum, reduce_scatter(...), across)): parts of a place are for "
            "elementwise operations and collectives within or across nodes, have all_reduce(sum, "
            "reduce_scatter(sum, x, 0, node), across) : f32[A, B] sliced(0, place)");
  EXPECT_EQ(
      ErrorOf("y = send(p, next)"),
      "line 6: send(all_reduce(sum, reduce_scatter(...), across), next): parts of a place are for "
      "elementwise operations and collectives within or across nodes, have all_reduce(sum, "
      "reduce_scatter(sum, x, 0, node), across) : f32[A, B] sliced(0, place)");
  EXPECT_EQ(ErrorOf("y = all_reduce(sum, x, rack)"),
            "line 6: expected node or across, found 'rack'");
  EXPECT_EQ(
      ErrorOf("y = matmul(p, s, transpose_b)"),
      "line 6: matmul(all_reduce(sum, reduce_scatter(...), across), s, transpose_b): parts of a "
      "place are for elementwise operations and collectives within or across nodes, have "
      "all_reduce(sum, reduce_scatter(sum, x, 0, node), across) : f32[A, B] sliced(0, place)");
}

}  // namespace
}  // namespace coconet
