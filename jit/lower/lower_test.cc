#include "jit/lower/lower.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/find_schedule.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Schedule Plain(absl::string_view body) {
  return InitialSchedule(Parse(absl::StrCat("coconet 1\nprogram t\n", body)).value()).value();
}

Schedule Find(absl::string_view body, absl::string_view words) {
  return FindSchedule(Parse(absl::StrCat("coconet 1\nprogram t\n", body)).value(), words);
}

/// The plan without symbols of kernels, which are fingerprints, and without their arguments.
std::string Outline(const Plan& plan) {
  std::string text;
  for (const Buffer& b : plan.buffers) absl::StrAppend(&text, b.name, b.symmetric ? "* " : " ");
  for (const Step& step : plan.steps) {
    text += std::visit(
        Match{[](const KernelStep& k) { return absl::StrCat("| kernel ", k.label, " "); },
              [&](const CollectiveStep& c) {
                return absl::StrCat("| library ", c.label, " ", plan.buffers[c.in].name, "->",
                                    plan.buffers[c.out].name, " ");
              },
              [&](const GemmStep& g) {
                return absl::StrCat("| gemm ", g.label, " ", plan.buffers[g.a.buffer].name, " ",
                                    plan.buffers[g.b.buffer].name, "->",
                                    plan.buffers[g.c.buffer].name, " ");
              }},
        step);
  }
  return text;
}

TEST(Lower, WritesACollectiveStraightIntoWhatItUpdates) {
  const Schedule s = Plain(
      "input g : f32[100] local\nstate p : f32[100] replicated\nupdate(p, all_reduce(sum, g))\n");
  EXPECT_EQ(Outline(Lower(s, {}, 2)->plan), "g p | library AR g->p ");
  EXPECT_EQ(Lower(s, {}, 2)->protocol, "library");
  EXPECT_EQ(Outline(Lower(s, {.protocol = Protocol::kGenerated}, 2)->plan),
            "g* p flags0* epochs0 | kernel AR ");
  EXPECT_EQ(Lower(s, {.protocol = Protocol::kGenerated}, 2)->protocol, "one-shot");
}

TEST(Lower, LeavesAReshapedTemporaryWhereItIs) {
  const Schedule s = Plain(
      "input a : f32[6, 20] local\ninput b : f32[20, 4] local\nc = matmul(a, b)\n"
      "r = reshape(c, [3, 2, 4])\nt = transpose(r, 1, 0, 2)\noutput y = reshape(t, [24])\n");
  EXPECT_EQ(Outline(Lower(s, {}, 2)->plan), "a b y t0 t1 | gemm MM a b->t0 | kernel C | kernel C ")
      << "what is an output is stored there";
  EXPECT_EQ(Lower(s, {}, 2)->launches.size(), 3u) << "each has steps";
}

TEST(Lower, ReadsAReshapedTemporaryAsLongAsItsReshapesAreRead) {
  // The last step reads the memory of `c` as its reshape.
  const Schedule s = Plain(
      "input a : f32[8, 8] local\nc = matmul(a, a)\nr = reshape(c, [4, 16])\n"
      "d = matmul(a, abs(c))\noutput z = r * reshape(d, [4, 16])\n");
  const Plan plan = Lower(s, {}, 2)->plan;
  const int c = std::get<GemmStep>(plan.steps[0]).c.buffer;
  Step last = plan.steps.back();
  bool reads = false;
  ForBuffers(last, [&](int& buffer) { reads = reads || buffer == c; });
  EXPECT_TRUE(reads) << Print(plan);
}

TEST(Lower, CountsBytesOfBulkCopies) {
  const Schedule s = Plain("input x : f32[100] sliced(0)\noutput y = all_gather(x)\n");
  for (bool bulk : {false, true}) {
    const Config config{.protocol = Protocol::kGenerated, .bulk = bulk};
    const int64_t elements = 50, loaded_and_pushed = 4 * (1 + 2);
    EXPECT_EQ(Lower(s, config, 2)->plan.bytes_per_rank, elements * loaded_and_pushed);
  }
}

TEST(Lower, TellsEachProductWhichWayToGo) {
  const Schedule s =
      Plain("input a : f32[30, 20] local\ninput b : f32[20, 10] local\noutput c = matmul(a, b)\n");
  for (int gemm : {0, 3}) {
    const Lowered lowered = *Lower(s, {.gemm = gemm}, 2);
    EXPECT_EQ(std::get<GemmStep>(lowered.plan.steps[0]).candidate, gemm);
  }
}

/// Per step: its lane, what it is, what it waits for, and what it takes of a GPU.
std::string Lanes(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    const std::string what = std::visit(
        Match{[](const KernelStep& k) { return absl::StrCat(k.label, " blocks=", k.blocks); },
              [](const CollectiveStep& c) { return c.label; },
              [](const GemmStep& g) {
                return absl::StrCat(g.label,
                                    g.beside == 0 ? "" : absl::StrCat(" beside=", g.beside));
              }},
        step);
    absl::StrAppend(&text, text.empty() ? "" : "; ", LaneOf(step), ": ", what,
                    AfterOf(step).empty() ? "" : " after ", absl::StrJoin(AfterOf(step), " "));
  }
  return text;
}

constexpr absl::string_view kEpilogue =
    "input a : f32[40, 20] local\ninput b : f32[20, 10] local\ninput r : f32[40, 10] "
    "replicated\noutput c = abs(all_reduce(sum, matmul(a, b)) + r)\n";

TEST(Lower, PutsCollectivesBesideTheProductThatTheyOverlap) {
  const Schedule fused = Find(kEpilogue, "ol(MM, fuse(RS[flat], C, AG))");
  EXPECT_EQ(Lanes(Lower(fused, {.blocks = 6, .pieces = 2}, 1)->plan),
            "0: MM; 0: fuse(RS, C, AG) blocks=6; 0: MM; 0: fuse(RS, C, AG) blocks=6");
  EXPECT_EQ(Lanes(Lower(fused, {.blocks = 6, .pieces = 2, .beside = 3}, 1)->plan),
            "0: MM beside=3; 1: fuse(RS, C, AG) blocks=3 after 0; 0: MM beside=3; 1: fuse(RS, C, "
            "AG) blocks=3 after 2");
  const Config generated{.protocol = Protocol::kGenerated, .blocks = 6, .pieces = 2, .beside = 3};
  EXPECT_EQ(Lanes(Lower(Find(kEpilogue, "ol(MM, AR, fuse(C))"), generated, 1)->plan),
            "0: MM beside=3; 1: AR blocks=3 after 0; 0: MM beside=3; 0: C blocks=6 after 1; 1: AR "
            "blocks=3 after 2; 0: C blocks=6 after 4");
}

TEST(Lower, RunsCollectivesOfALibraryBesideWhatDoesNotNeedThem) {
  const Schedule s = Plain(
      "input x : f32[100] local\na = exp(x)\nb = exp(a)\nc = exp(b)\n"
      "output p = all_reduce(sum, a) + 1.0\noutput q = all_reduce(sum, b) + 1.0\n"
      "output r = all_reduce(max, c) + 1.0\n");
  const auto lanes = [&](bool concurrent, int64_t bucket) {
    return Lanes(Lower(s, {.concurrent = concurrent, .bucket = bucket}, {2, 2})->plan);
  };
  const std::string c = "0: C blocks=1";
  EXPECT_EQ(
      lanes(false, 0),
      absl::StrJoin(std::vector<std::string>{c, "0: AR", c, c, "0: AR", c, c, "0: AR", c}, "; "));
  const std::vector<std::string> at_once = {c,
                                            "1: AR after 0",
                                            c,
                                            "1: AR after 2",
                                            c,
                                            "1: AR after 4",
                                            c + " after 1",
                                            c + " after 3",
                                            c + " after 5"};
  EXPECT_EQ(lanes(true, 0), absl::StrJoin(at_once, "; "));
  EXPECT_EQ(lanes(true, 400), lanes(true, 0)) << "full by itself";
  const std::vector<std::string> in_buckets = {c,
                                               c,
                                               "1: AR after 1",
                                               "1: AR after 1",
                                               c,
                                               c + " after 2",
                                               c + " after 3",
                                               "1: AR after 4",
                                               c + " after 7"};
  EXPECT_EQ(lanes(true, 401), absl::StrJoin(in_buckets, "; ")) << "sums only";
}

constexpr absl::string_view kExperts =
    "input x : f32[5, 3, 8, 4] sliced(1)\ninput w : f32[5, 1, 4, 4] sliced(0)\n"
    "output y = abs(all_to_all(matmul(all_to_all(abs(x), 0), w), 1))\n";

TEST(Lower, ExchangesPiecesBesideTheProductsOfOthers) {
  const Schedule s = Find(kExperts, "ol(C, A2A, MM, A2A, fuse(C))");
  const Plan plan = Lower(s, {.pieces = 2}, {2, 2})->plan;
  // Ranks have 3 and 2 experts: pieces are of 2 and 1, one product each.
  EXPECT_EQ(Lanes(plan),
            "0: C blocks=1; 1: A2A after 0; 0: C blocks=1; 0: MM after 1; 0: MM after 1; "
            "1: A2A after 2; 1: A2A after 4; 0: MM after 5; 0: C blocks=1 after 6; "
            "1: A2A after 7; 0: C blocks=1 after 9");
  std::vector<int64_t> counts;
  for (const Step& step : plan.steps) {
    if (const auto* exchange = std::get_if<CollectiveStep>(&step))
      counts.push_back(exchange->count);
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{2 * 2 * 32, 32 * 2, 2 * 2 * 32, 2 * 32}));
}

TEST(Lower, CopiesToAndFromTheBlocksThatLibrariesOfGpusTake) {
  const Schedule s = Find(kExperts, "C; A2A; MM; A2A; C");
  EXPECT_EQ(Lanes(Lower(s, {.blocks = 3, .threads = 64}, {2, 2})->plan),
            "0: C blocks=3; 0: pack A2A blocks=3; 0: A2A; 0: unpack A2A blocks=3; 0: MM; 0: MM; "
            "0: MM; 0: pack A2A blocks=3; 0: A2A; 0: unpack A2A blocks=3; 0: C blocks=3");
}

TEST(Lower, RefusesWhatHasNoKernel) {
  const Schedule s =
      Plain("input a : f32[8] local\noutput b = opaque(sort, f32, [8], 160, 0, abs(a))\n");
  EXPECT_EQ(Lower(s, {}, 2).status(),
            absl::UnimplementedError(
                "%2 = opaque(sort, f32, [8], 160, 0, %1): it can be planned, but not run: only its "
                "costs are known"));
}

TEST(Lower, RefusesPiecesOfWhatAKernelExchanges) {
  const Schedule s = Find(kExperts, "ol(C, A2A, MM, A2A, fuse(C))");
  EXPECT_EQ(Lower(s, {.protocol = Protocol::kGenerated, .pieces = 2}, 2).status().message(),
            "config \"generated vec=16 chunk=4096 blocks=1 stream=none one-shot=pull pieces=2\": a "
            "kernel does an AllToAll at once; want a library in an overlap of one");
}

TEST(Lower, StartsWhatTakesTilesWithTheProductThatMakesThem) {
  const Config tiled{
      .protocol = Protocol::kGenerated, .blocks = 6, .threads = 512, .beside = 3, .tiles = 64};
  const Lowered fused = *Lower(Find(kEpilogue, "ol(MM, fuse(RS[flat], C, AG))"), tiled, 2);
  EXPECT_EQ(Lanes(fused.plan), "0: MM blocks=6; 1: fuse(RS, C, AG) blocks=3");
  const auto &product = std::get<KernelStep>(fused.plan.steps[0]),
             &taker = std::get<KernelStep>(fused.plan.steps[1]);
  EXPECT_EQ(product.threads, 256);
  EXPECT_EQ(taker.threads, 512);
  EXPECT_EQ(product.awaits, -1);
  EXPECT_EQ(taker.awaits, 0);
  EXPECT_EQ(Outline(fused.plan),
            "a b r c* t0* tiles0* epochs0 flags1* epochs1 | kernel MM | kernel fuse(RS, C, AG) ");
  EXPECT_EQ(Lanes(Lower(Find(kEpilogue, "ol(MM, AR, fuse(C))"), tiled, 1)->plan),
            "0: MM blocks=6; 1: AR blocks=3; 0: C blocks=6 after 1");
  // What comes before and after.
  const std::string chain =
      "input a : f32[40, 20] local\ninput b : f32[20, 10] local\nc = abs(all_reduce(sum, "
      "matmul(abs(a), b)))\noutput d = exp(c)\n";
  EXPECT_EQ(Lanes(Lower(Find(chain, "ol(C, MM, AR); C"), tiled, 2)->plan),
            "0: C blocks=6; 0: MM blocks=6; 1: AR blocks=3 after 0; 0: C blocks=6 after 2; 0: C "
            "blocks=6");
}

TEST(Lower, StartsProductsWithWhatGathersTheirRows) {
  const std::string gathered =
      "input a : f32[96, 20] sliced(0)\ninput b : f32[20, 10] sliced(1)\ninput e : f32[20, 10] "
      "local\ng = all_gather(abs(a))\n";
  const Config tiled{
      .protocol = Protocol::kGenerated, .blocks = 6, .threads = 512, .beside = 3, .tiles = 64};
  const Schedule columns =
      Find(absl::StrCat(gathered, "output c = matmul(g, b)\n"), "ol(fuse(C, AG), MM); C");
  const Lowered two = *Lower(columns, tiled, 2);
  EXPECT_EQ(Lanes(two.plan), "1: fuse(C, AG) blocks=3; 0: MM blocks=6");
  EXPECT_EQ(std::get<KernelStep>(two.plan.steps[1]).awaits, 0);
  EXPECT_TRUE(absl::StrContains(two.kernels.text(), "PublishBeside("));
  EXPECT_TRUE(absl::StrContains(two.kernels.text(), "GatheredChunks<"));
  // One rank tells itself of nothing.
  const Lowered one = *Lower(columns, tiled, 1);
  EXPECT_EQ(Lanes(one.plan), "1: fuse(C, AG) blocks=3; 0: MM blocks=6 after 0");
  EXPECT_FALSE(absl::StrContains(one.kernels.text(), "PublishBeside("));
  // A product awaits rows, and is awaited by tiles.
  const Lowered both =
      *Lower(Find(absl::StrCat(gathered, "output c = all_reduce(sum, matmul(g, e))\n"),
                  "ol(fuse(C, AG), MM, AR)"),
             tiled, 2);
  EXPECT_EQ(Lanes(both.plan), "1: fuse(C, AG) blocks=3; 0: MM blocks=6; 1: AR blocks=3");
  EXPECT_EQ(std::get<KernelStep>(both.plan.steps[1]).awaits, 0);
  EXPECT_EQ(std::get<KernelStep>(both.plan.steps[2]).awaits, 1);
}

TEST(Lower, RefusesBatchesOfTooFewRowsForTiles) {
  const auto body = [](int rows) {
    return absl::StrCat("input a : f32[2, ", rows, ", 8] replicated\ninput b : f32[2, 8, 8] ",
                        "replicated\noutput y = abs(matmul(a, b))\n");
  };
  const Schedule s = Find(body(40), "fuse(MM, C)");
  const Config config{.protocol = Protocol::kGenerated, .blocks = 2};
  const auto at = [&](int rows) {
    const Graph program = Parse(absl::StrCat("coconet 1\nprogram t\n", body(rows))).value();
    return Lower(s.Resized(TypedGraph::Of(program).value()), config, 1).status();
  };
  EXPECT_EQ(at(33), absl::OkStatus());
  EXPECT_EQ(at(32).message(),
            "emit: %2 = matmul(a, b): want one matrix, or more than 64 rows of several in tiles");
}

TEST(Lower, StartsWhatTakesTilesWithTheKernelThatGoesOnWithThem) {
  const std::string body =
      "input a : bf16[96, 20] local\ninput b : bf16[20, 10] local\ninput g : bf16[96, 20] "
      "sliced(0)\n";
  const Config tiled{.protocol = Protocol::kGenerated,
                     .blocks = 6,
                     .streaming = Streaming::kAll,
                     .threads = 512,
                     .beside = 3,
                     .tiles = 64};
  const Schedule reduced =
      Find(absl::StrCat(body, "output c = all_reduce(sum, 0.5 * cast(f32, matmul(a, b)))\n"),
           "ol(fuse(MM, C), fuse(RS[flat], AG))");
  const Lowered two = *Lower(reduced, tiled, 2);
  EXPECT_EQ(Lanes(two.plan), "0: fuse(MM, C) blocks=6; 1: fuse(RS, AG) blocks=3");
  const auto &product = std::get<KernelStep>(two.plan.steps[0]),
             &taker = std::get<KernelStep>(two.plan.steps[1]);
  EXPECT_EQ(product.threads, 256);
  EXPECT_EQ(product.awaits, -1);
  EXPECT_EQ(taker.threads, 512);
  EXPECT_EQ(taker.awaits, 0);
  EXPECT_EQ(Outline(two.plan),
            "a b g c* t0* tiles0* epochs0 flags1* epochs1 | kernel fuse(MM, C) | kernel fuse(RS, "
            "AG) ");
  EXPECT_TRUE(absl::StrContains(two.kernels.text(), "AwaitTiles("));
  // What the other kernel takes next is not kept out of caches.
  const size_t made = two.kernels.text().find("MakeEpilogue<");
  EXPECT_TRUE(absl::StrContains(two.kernels.text().substr(made, 2000), "kCached"));
  // It awaits rows, and is awaited by tiles.
  const Schedule both =
      Find(absl::StrCat(body, "output c = all_reduce(max, abs(matmul(all_gather(abs(g)), b)))\n"),
           "ol(fuse(C, AG), fuse(MM, C), AR)");
  const Lowered plan = *Lower(both, tiled, 2);
  EXPECT_EQ(Lanes(plan.plan), "1: fuse(C, AG) blocks=3; 0: fuse(MM, C) blocks=6; 1: AR blocks=3");
  EXPECT_EQ(std::get<KernelStep>(plan.plan.steps[1]).awaits, 0);
  EXPECT_EQ(std::get<KernelStep>(plan.plan.steps[2]).awaits, 1);
  EXPECT_EQ(Lanes(Lower(both, tiled, 1)->plan),
            "1: fuse(C, AG) blocks=3; 0: fuse(MM, C) blocks=6 after 0; 1: AR blocks=3");
}

TEST(Lower, AwaitsTilesOnOneRank) {
  const Config tiled{.protocol = Protocol::kGenerated, .beside = 1, .tiles = 64};
  const Lowered one = *Lower(Find(kEpilogue, "ol(MM, fuse(RS[flat], C, AG))"), tiled, 1);
  EXPECT_TRUE(absl::StrContains(one.kernels.text(), "AwaitTiles("));
  EXPECT_FALSE(absl::StrContains(one.kernels.text(), "Enter("));
}

TEST(Lower, OrdersWhatTakesTheResultsOfCollectivesBesideProducts) {
  const std::string program =
      "input a : f32[96, 20] local\ninput b : f32[20, 10] local\ninput e : f32[10, 10] replicated\n"
      "c = abs(all_reduce(sum, matmul(a, b)))\n";
  const Schedule again = Find(absl::StrCat(program, "output d = matmul(c, e)\n"),
                              "ol(MM, fuse(RS[flat], C, AG), MM); C");
  EXPECT_EQ(Lanes(Lower(again, {.pieces = 2, .beside = 3}, 1)->plan),
            "0: MM beside=3; 1: fuse(RS, C, AG) blocks=3 after 0; 0: MM beside=3; 0: MM beside=3 "
            "after 1; 1: fuse(RS, C, AG) blocks=3 after 2; "
            "0: MM beside=3 after 4");
  const Schedule sum =
      Find(absl::StrCat(program, "output d = c - sum(c)\n"), "ol(MM, AR); fuse(C, fold); C");
  EXPECT_EQ(
      Lanes(Lower(sum, {.protocol = Protocol::kGenerated, .pieces = 2, .beside = 3}, 1)->plan),
      "0: MM beside=3; 1: AR blocks=3 after 0; 0: MM beside=3; 1: AR blocks=3 after 2; 0: C "
      "blocks=1 after 3; 0: C blocks=1");
}

TEST(Lower, StagesOperandsSoThatTheyNeedNotBeSymmetric) {
  const Schedule s = Plain(
      "input g : f32[100] local\nstate p : f32[100] replicated\nupdate(p, all_reduce(sum, g))\n");
  const Config config = {.protocol = Protocol::kGenerated, .one_shot = OneShot::kStaged};
  const Lowered two = *Lower(s, config, 2);
  EXPECT_EQ(Outline(two.plan), "g p stages0.0* flags0* epochs0 | kernel AR ");
  EXPECT_EQ(two.plan.buffers[2].elements, 2 * 128);  // two halves
  EXPECT_EQ(two.protocol, "one-shot staged");
  EXPECT_FALSE(absl::StrContains(two.kernels.text(), "Exit("));
  EXPECT_EQ(Outline(Lower(s, config, 1)->plan), "g* p | kernel AR ");  // nobody to stage for
}

TEST(Lower, SendsOperandsInMessagesThatAreAllRanksWaitFor) {
  const Schedule s = Plain(
      "input g : bf16[100] local\nstate p : bf16[100] replicated\nupdate(p, all_reduce(sum, g))\n");
  const Config config = {.protocol = Protocol::kGenerated, .one_shot = OneShot::kLL};
  const Lowered four = *Lower(s, config, 4);
  EXPECT_EQ(Outline(four.plan), "g p messages0.0* flags0* epochs0 | kernel AR ");
  EXPECT_EQ(four.plan.buffers[2].elements,
            2 * 4 * 64);  // two halves, a part a writer, of 50 words in whole cache lines
  EXPECT_EQ(four.protocol, "one-shot ll");
  for (const char* wait : {"Enter(", "Exit(", "Load<V>(own0 + i)"})
    EXPECT_FALSE(absl::StrContains(four.kernels.text(), wait)) << wait;
  EXPECT_EQ(Outline(Lower(s, config, 1)->plan), "g* p | kernel AR ");  // nobody to send to
}

TEST(Lower, ReadsAnOldStateBeforeItIsUpdated) {
  // `d` reads the value before the step and the value after it: the store must wait.
  const Schedule s = Plain(
      "state m : f32[100] replicated\nstate d : f32[100] replicated\nm1 = update(m, 2 * "
      "m)\nupdate(d, m1 - m)\n");
  EXPECT_EQ(Outline(Lower(s, {}, 1)->plan), "m d t0 | kernel C | kernel C | kernel C ");
}

TEST(Lower, KeepsAStateUntilAllOfItHasBeenRead) {
  // What takes elements for other places cannot work in place: the results are copied when all of
  // them are there.
  EXPECT_EQ(
      Outline(Lower(Plain("state s : f32[8, 8] replicated\nupdate(s, transpose(s, 1, 0))\n"), {}, 1)
                  ->plan),
      "s t0 | kernel C | kernel C ");
  EXPECT_EQ(Outline(Lower(Plain("state s : f32[8, 8] replicated\ninput w : f32[8, 8] "
                                "replicated\nupdate(s, matmul(w, s))\n"),
                          {}, 1)
                        ->plan),
            "s w t0 | gemm MM w s->t0 | kernel C ");
  // The product of the second chunk reads s when the first chunk's results have come.
  const Schedule s = Find(
      "state s : f32[64, 8] replicated\ninput w : f32[64, 64] local\nupdate(s, all_reduce(sum, "
      "matmul(w, s)))\n",
      "ol(MM, AR)");
  EXPECT_EQ(Outline(Lower(s, {.pieces = 2}, 2)->plan),
            "s w t0 t1 | gemm MM w s->t0 | library AR t0->t1 | gemm MM w s->t0 | library AR t0->t1 "
            "| kernel C ");
}

/// Per product: the columns of b and c that it has; per library call: its elements; and the kernels
/// that pack and unpack these.
std::string OfColumns(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    std::visit(Match{[](const KernelStep& k) { return k.label; },
                                     [](const CollectiveStep& c) {
                                       return absl::StrCat(c.label, " ", c.count,
                                                           c.in == c.out ? " in place" : "");
                                     },
                                     [](const GemmStep& g) {
                                       return absl::StrCat("MM +", g.b.offset, " n=", g.n.total,
                                                           " +", g.c.offset);
                                     }},
                               step));
  }
  return text;
}

TEST(Lower, CutsAProductByColumns) {
  const Schedule reduced = Find(kEpilogue, "ol(MM, AR, fuse(C))");
  EXPECT_EQ(
      OfColumns(Lower(reduced, {.pieces = 2, .columns = true}, 2)->plan),
      "MM +0 n=5 +0; pack AR; AR 200 in place; unpack AR; MM +5 n=5 +5; C; pack AR; AR 200 in "
      "place; unpack AR; C");
  EXPECT_EQ(
      OfColumns(Lower(reduced, {.pieces = 3, .columns = true}, 2)->plan),
      "MM +0 n=4 +0; pack AR; AR 160 in place; unpack AR; MM +4 n=4 +4; C; pack AR; AR 160 in "
      "place; unpack AR; MM +8 n=2 +8; C; pack AR; AR 80 in place; unpack AR; C");
  const Schedule narrow = Find(
      "input a : f32[40, 20] local\ninput b : f32[20, 3] local\noutput c = all_reduce(sum, "
      "matmul(a, b))\n",
      "ol(MM, AR)");
  EXPECT_EQ(OfColumns(Lower(narrow, {.pieces = 6, .columns = true}, 2)->plan),
            "MM +0 n=1 +0; pack AR; AR 40 in place; unpack AR; MM +1 n=1 +1; pack AR; AR 40 in "
            "place; unpack AR; MM +2 n=1 +2; pack AR; AR 40 in place; unpack AR");
}

TEST(Lower, RefusesColumnsOfWhatNeedsWholeRows) {
  const auto words = [](absl::string_view program, absl::string_view schedule, int pieces = 2) {
    const absl::Status status =
        Lower(Find(program, schedule), {.pieces = pieces, .columns = true}, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string several = words(
      "input a : f32[4, 8, 8] local\ninput b : f32[4, 8, 8] local\noutput c = "
      "all_reduce(sum, matmul(a, b))\n",
      "ol(MM, AR)");
  EXPECT_TRUE(absl::StrContains(several, "columns are pieces of the product of two matrices"))
      << several;
  const std::string none = words(kEpilogue, "MM; AR; fuse(C)", 1);
  EXPECT_TRUE(absl::StrContains(none, "want columns=1 for pieces of an overlap only")) << none;
}

TEST(Lower, LoadsEverythingBeforeItStoresAnything) {
  const Schedule s = Find(
      "input g : f32[100] replicated\nstate m : f32[100] replicated\nstate d : f32[100] "
      "replicated\n"
      "a = 2 * g\nupdate(m, a)\nupdate(d, m - a)\n",
      "fuse(C)");
  const std::string source = Lower(s, {}, 1)->kernels.text();
  EXPECT_GT(source.find("Store<"), source.rfind("Fetch<V>")) << source;
}

TEST(Lower, TakesLongChainsOfScalars) {
  std::string body = "input x : f32[8] replicated\ninput s : f32[]\ns0 = s\n";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&body, "s", i + 1, " = s", i, " * s", i, "\n");
  EXPECT_TRUE(Lower(Plain(absl::StrCat(body, "output y = x * s200\n")), {}, 2).ok());
}

TEST(Lower, GivesEachTemporaryABuffer) {
  const Schedule s =
      Plain("input x : f32[100] replicated\noutput y = abs(exp(sqrt(neg(abs(x)))))\n");
  EXPECT_EQ(Outline(Lower(s, {}, 1)->plan),
            "x y t0 t1 t2 t3 | kernel C | kernel C | kernel C | kernel C | kernel C ");
}

TEST(Lower, ComputesScalarsInEveryKernelThatNeedsThem) {
  const Schedule s = Plain(
      "input x : f32[100] replicated\ninput lr : f32[]\noutput y = x * (1 - lr)\noutput z = 1 - "
      "lr\n");
  EXPECT_EQ(Outline(Lower(s, {}, 1)->plan), "x lr y z | kernel C | kernel C ");
}

TEST(Lower, IsAFunctionOfItsArguments) {
  const Schedule s = Find(
      "input g : f32[5, 7] local\nstate p : f32[5, 7] replicated\nupdate(p, p - all_reduce(sum, "
      "g))\n",
      "fuse(RS[flat], C, AG)");
  const Lowered a = Lower(s, {}, 3).value(), b = Lower(s, {}, 3).value();
  EXPECT_EQ(a.kernels.text(), b.kernels.text());
  EXPECT_EQ(a.plan, b.plan);
}

TEST(Lower, KeepsSizesOutOfTheSource) {
  const auto source = [](int64_t n) {
    const std::string shape = absl::StrCat("f32[", n, "]");
    return Lower(Find(absl::StrCat(
                          "input g : ", shape, " local\nstate p : ", shape,
                          " replicated\nstate m : ", shape,
                          "\nm1 = update(m, 0.9 * m + all_reduce(sum, g))\nupdate(p, p - m1)\n"),
                      "fuse(RS, C, AG); slice m"),
                 {}, 2)
        ->kernels.text();
  };
  EXPECT_EQ(source(100), source(12345));
}

TEST(Lower, PadsRowsOfInnerSlices) {
  const Schedule s = Plain(
      "input g : f32[3, 70] local\nstate p : f32[3, 70] replicated\n"
      "update(p, all_gather(reduce_scatter(sum, g, 1)))\n");
  const Lowered lowered = Lower(s, {.protocol = Protocol::kGenerated}, 2).value();
  EXPECT_EQ(Outline(lowered.plan),
            "g* p* t0 flags0* epochs0 flags1* epochs1 | kernel RS | kernel AG ");
  EXPECT_EQ(lowered.plan.buffers[2].elements, 3 * 36);  // of each row 36 elements, not 35
  EXPECT_EQ(Lower(s, {}, 2).status().message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull\": library "
            "collectives want contiguous slices");
}

TEST(Lower, NeedsNoFlagsForOneRank) {
  const Schedule s = Find(
      "input g : f32[100] local\nstate p : f32[100] replicated\nupdate(p, p - all_reduce(sum, "
      "g))\n",
      "fuse(RS, C, AG)");
  EXPECT_EQ(Outline(Lower(s, {}, 1)->plan), "g* p* | kernel fuse(RS, C, AG) ");
  EXPECT_FALSE(absl::StrContains(Lower(s, {}, 1)->kernels.text(), "Enter"));
}

}  // namespace
}  // namespace coconet
