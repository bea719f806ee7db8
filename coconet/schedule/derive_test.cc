#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/launches.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/schedule.h"
#include "coconet/testing/random_program.h"
#include "coconet/testing/transformed.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::vector<Schedule> AllOf(const Graph& program, const DeriveOptions& options = {}) {
  absl::StatusOr<std::vector<Schedule>> schedules = Derive(program, options);
  EXPECT_TRUE(schedules.ok()) << schedules.status();
  return schedules.ok() ? *std::move(schedules) : std::vector<Schedule>{};
}

Graph Workload(absl::string_view name, DType dtype = DType::kF32) {
  absl::StatusOr<Graph> g = MakeWorkload(name, {.dtype = dtype});
  EXPECT_TRUE(g.ok()) << g.status();
  return *std::move(g);
}

std::vector<Schedule> WithoutOverlaps(std::vector<Schedule> schedules) {
  schedules.erase(std::find_if(schedules.begin(), schedules.end(),
                               [](const Schedule& s) { return !s.overlaps().empty(); }),
                  schedules.end());
  return schedules;
}

std::vector<std::string> Descriptions(const std::vector<Schedule>& schedules) {
  std::vector<std::string> words;
  for (const Schedule& s : schedules) words.push_back(Describe(s));
  return words;
}

TEST(Derive, CastsOfContributionsJoinTheirReductions) {
  const auto words = [](absl::string_view statements) {
    return Descriptions(WithoutOverlaps(AllOf(*Parse(absl::StrCat("coconet 1\n", statements)))));
  };
  const std::vector<std::string> step = words(R"(input g : bf16[N] local
state p : f32[N]
update(p, 0.5 * p + all_reduce(sum, cast(f32, g)))
)");
  for (const char* wanted : {"C; AR; C", "C; AR; fuse(C)", "fuse(AR, C)", "fuse(RS, C); slice p"})
    EXPECT_TRUE(absl::c_linear_search(step, wanted))
        << wanted << " among " << absl::StrJoin(step, "\n");
  const std::vector<std::string> lone =
      words("input g : bf16[N] local\noutput y = all_reduce(sum, cast(f32, g))\n");
  EXPECT_TRUE(absl::c_linear_search(lone, "fuse(AR, C)")) << absl::StrJoin(lone, "\n");
}

TEST(Derive, RowsOfASlicedTableByIndex) {
  const Graph program = *Parse(R"(coconet 1
program embedding
input t : f32[V, D] sliced(0)
input i : i32[S] replicated
state y : f32[S, D]
update(y, 0.5 * y + all_reduce(sum, gather(t, i, 0)))
)");
  const std::vector<std::string> words = Descriptions(WithoutOverlaps(AllOf(program)));
  for (const char* wanted : {"C; AR; C", "C; RS[0]; AG; C", "C; fuse(AR, C)",
                             "C; fuse(RS[1], C, AG)", "C; fuse(RS[0], C); slice y"})
    EXPECT_TRUE(absl::c_linear_search(words, wanted))
        << wanted << " among " << absl::StrJoin(words, "\n");
}

TEST(Derive, SgdByNode) {
  const std::vector<Schedule> schedules = AllOf(Workload("sgd"), {.by_node = true});
  EXPECT_EQ(Descriptions(schedules),
            (std::vector<std::string>{
                "AR; C",
                "RS; AG; C",
                "RS(node); AR(across); AG(node); C",
                "AR; fuse(C)",
                "RS; C; AG p",
                "RS; AG; fuse(C)",
                "RS(node); AR(across); C; AG(node) p",
                "RS(node); AR(across); AG(node); fuse(C)",
                "RS(node); RS(across); AG(across); AG(node); C",
                "RS; fuse(C); AG p",
                "RS(node); AR(across); fuse(C); AG(node) p",
                "RS(node); RS(across); C; AG(across); AG(node) p",
                "RS(node); RS(across); AG(across); AG(node); fuse(C)",
                "RS(node); AR(across); fuse(C, AG(node))",
                "RS(node); RS(across); fuse(C); AG(across); AG(node) p",
                "ol(AR, fuse(C))",
                "ol(RS, AG, fuse(C))",
                "ol(RS(node), AR(across), AG(node), fuse(C))",
                "ol(RS, fuse(C), AG p)",
                "ol(RS(node), AR(across), fuse(C), AG(node) p)",
                "ol(RS(node), RS(across), AG(across), AG(node), fuse(C))",
                "ol(RS(node), AR(across), fuse(C, AG(node)))",
                "ol(RS(node), RS(across), fuse(C), AG(across), AG(node) p)",
            }));
}

TEST(Derive, ByNodeMakesNoScheduleTwiceAndFusesNothingThatReachesOtherNodes) {
  for (const char* name : {"adam", "lamb", "pipeline"}) {
    std::set<std::string> seen;
    for (const Schedule& s : AllOf(Workload(name), {.by_node = true})) {
      EXPECT_TRUE(seen.insert(Print(s)).second) << Describe(s);
      for (const auto& kernel : s.kernels()) {
        for (NodeId id : kernel) {
          EXPECT_FALSE(Communicates(s.graph(), id) && SpanOf(s.graph().nodes[id].op) != Span::kNode)
              << NodeText(s.graph(), id) << " in " << Describe(s);
        }
      }
      const absl::StatusOr<Schedule> replayed = Replay(Workload(name), s.trace());
      ASSERT_TRUE(replayed.ok()) << replayed.status();
      EXPECT_EQ(Print(*replayed), Print(s));
    }
    EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), [](const std::string& text) {
      return absl::StrContains(text, ", across)");
    }));
  }
}

TEST(Derive, Sgd) {
  EXPECT_EQ(Descriptions(WithoutOverlaps(AllOf(Workload("sgd")))), (std::vector<std::string>{
                                                                       "AR; C",
                                                                       "RS; AG; C",
                                                                       "AR; fuse(C)",
                                                                       "RS; C; AG p",
                                                                       "RS; AG; fuse(C)",
                                                                       "fuse(RS, AG); C",
                                                                       "fuse(AR, C)",
                                                                       "RS; fuse(C); AG p",
                                                                       "fuse(RS, AG); fuse(C)",
                                                                       "fuse(RS, AG, C)",
                                                                       "fuse(RS, C); AG p",
                                                                       "RS; fuse(C, AG)",
                                                                       "fuse(RS, C, AG)",
                                                                   }));
}

TEST(Derive, AdamAndSgdByNodeAsDocumented) {
  std::ifstream stream("docs/schedules.md");
  ASSERT_TRUE(stream.good());
  std::stringstream text;
  text << stream.rdbuf();
  const std::string documented = text.str();
  const size_t begin = documented.find("AR; C\n");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(absl::StrCat(
                absl::StrJoin(Descriptions(WithoutOverlaps(AllOf(Workload("adam")))), "\n"), "\n"),
            documented.substr(begin, documented.find("```", begin) - begin));
  const size_t by_node =
      documented.find("AR; C\n", documented.find("In worlds of several nodes, of SGD"));
  ASSERT_NE(by_node, std::string::npos);
  EXPECT_EQ(absl::StrCat(
                absl::StrJoin(
                    Descriptions(WithoutOverlaps(AllOf(Workload("sgd"), {.by_node = true}))), "\n"),
                "\n"),
            documented.substr(by_node, documented.find("```", by_node) - by_node));
}

TEST(Derive, MixedPrecisionMaySliceTheMasterWeights) {
  const std::vector<std::string> words =
      Descriptions(WithoutOverlaps(AllOf(Workload("adam", DType::kF16))));
  EXPECT_EQ(words.size(), 48u);
  EXPECT_EQ(words.back(), "fuse(RS, C, AG); slice w m v");
}

/// Properties that every derived schedule has.
void CheckSchedules(const Graph& program, const std::vector<Schedule>& schedules) {
  std::set<std::string> texts;
  std::pair<size_t, size_t> last_length;
  int baselines = 0;
  for (const Schedule& s : schedules) {
    EXPECT_TRUE(texts.insert(Print(s)).second) << "twice: " << TraceText(s.trace());
    EXPECT_TRUE(InferTypes(s.graph()).ok()) << TraceText(s.trace());
    EXPECT_EQ(Canonicalize(s.graph()).graph, s.graph()) << TraceText(s.trace());
    const absl::StatusOr<Schedule> replayed = Replay(program, *ParseTrace(TraceText(s.trace())));
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(Print(*replayed), Print(s));
    EXPECT_EQ(replayed->trace(), s.trace());
    const auto phase = [](const Transformation& t) {
      return std::holds_alternative<Overlap>(t) ? 2 : std::holds_alternative<Fuse>(t) ? 1 : 0;
    };
    EXPECT_TRUE(std::is_sorted(s.trace().begin(), s.trace().end(),
                               [&](const auto& a, const auto& b) { return phase(a) < phase(b); }))
        << TraceText(s.trace());
    const std::pair<size_t, size_t> length(s.overlaps().size(), s.trace().size());
    EXPECT_GE(length, last_length) << "not simplest first";
    last_length = length;
    baselines += IsBaseline(s);
  }
  EXPECT_TRUE(schedules[0].trace().empty());
  EXPECT_GE(baselines, 1);
}

TEST(Derive, SchedulesOfWorkloadsReplayAndAreToldApartByTheirWords) {
  for (const WorkloadInfo& workload : Workloads()) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      const Graph program = Workload(workload.name, dtype);
      const std::vector<Schedule> schedules = AllOf(program);
      CheckSchedules(program, schedules);
      const std::vector<std::string> words = Descriptions(schedules);
      // Some schedules of loss_scale differ only in the launch that checks the gradients.
      const size_t alike = workload.name == "loss_scale" ? 2 : 0;
      EXPECT_GE(std::set<std::string>(words.begin(), words.end()).size() + alike, words.size())
          << workload.name;
    }
  }
}

TEST(Derive, SchedulesOfRandomProgramsReplay) {
  for (uint64_t seed = 0; seed < 6 && !testing::Test::HasFailure(); ++seed) {
    const Graph program =
        RandomProgram(seed, {.kind = ProgramKind::kStep, .max_communications = 2});
    CheckSchedules(program, AllOf(program));
  }
}

TEST(Derive, IsTheSameForBoundSizes) {
  const Graph program = Workload("adam");
  const absl::StatusOr<Graph> bound = BindSizes(program, {{"N", 1000}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(Descriptions(AllOf(*bound)), Descriptions(AllOf(program)));
}

TEST(Derive, TheBaselineIsRecognised) {
  std::vector<std::string> baselines, unfused;
  for (const Schedule& s : WithoutOverlaps(AllOf(Workload("adam")))) {
    if (IsBaseline(s)) baselines.push_back(Describe(s));
    if (IsCommunicationUnfused(s)) unfused.push_back(Describe(s));
  }
  EXPECT_EQ(baselines, std::vector<std::string>{"AR; fuse(C)"});
  EXPECT_EQ(unfused,
            (std::vector<std::string>{
                "AR; C", "RS; AG; C", "AR; fuse(C)", "RS; C; AG p m v", "RS; AG; fuse(C)",
                "RS; C; AG p v; slice m", "RS; C; AG p m; slice v", "RS; fuse(C); AG p m v",
                "RS; C; AG p; slice m v", "RS; fuse(C); AG p v; slice m",
                "RS; fuse(C); AG p m; slice v", "RS; fuse(C); AG p; slice m v"}));
}

TEST(Derive, TheBaselineFusesWhatIsBetweenProducts) {
  const auto baseline_of = [](absl::string_view statements) {
    std::vector<std::string> baselines;
    for (const Schedule& s : AllOf(*Parse(absl::StrCat("coconet 1\n", statements)))) {
      if (IsBaseline(s)) baselines.push_back(Describe(s));
    }
    return absl::StrJoin(baselines, " or ");
  };
  // Connected computations of one shape are fused, before a product and behind it; a computation
  // that is used behind it only is done there.
  EXPECT_EQ(baseline_of("input x : f32[8, 8] local\ninput w : f32[8, 8] replicated\n"
                        "h = relu(x + 1)\nd = exp(x) * 2\noutput o = matmul(h, w) * d + h\n"),
            "fuse(C); MM; fuse(C) or fuse(C); fuse(MM, C)");
  // A fold of columns has a kernel of its own, and does not keep others apart.
  EXPECT_EQ(baseline_of("input x : f32[8, 8] local\nh = exp(x) * 2\noutput s = sum(h, 0)\n"
                        "output o = h + 1\n"),
            "fuse(C); C");
}

TEST(Derive, AProgramWithoutComputationIsItsOwnBaseline) {
  const std::vector<Schedule> schedules =
      AllOf(ScheduleOf("input g : f32[N] local\noutput y = all_reduce(sum, g)\n").graph());
  EXPECT_TRUE(IsBaseline(schedules[0]));
  EXPECT_EQ(Descriptions(schedules),
            (std::vector<std::string>{"AR", "RS; AG y", "fuse(AR)", "fuse(RS, AG)"}));
}

TEST(Derive, SplitsMatricesOverEachDimension) {
  std::set<std::string> words;
  for (const Schedule& s : AllOf(ScheduleOf("input g : f32[A, B] local\nstate m : f32[A, B]\n"
                                            "update(m, 0.5 * m + all_reduce(sum, g))\n")
                                     .graph())) {
    words.insert(Describe(s));
  }
  for (const char* dim : {"flat", "0", "1"}) {
    EXPECT_TRUE(words.contains(absl::StrCat("fuse(RS[", dim, "], C); slice m"))) << dim;
  }
}

TEST(Derive, FusesTwoReductionsIntoOneKernel) {
  std::set<std::string> words;
  for (const Schedule& s :
       AllOf(ScheduleOf(
                 "input g : f32[N] local\ninput h : f32[N] local\nstate p : f32[N] replicated\n"
                 "update(p, p - all_reduce(sum, g) * all_reduce(sum, h))\n")
                 .graph())) {
    words.insert(Describe(s));
  }
  for (const char* known :
       {"AR g h; fuse(C)", "fuse(AR g h, C)", "fuse(RS g h, AG, C)", "fuse(RS g h, C, AG)"}) {
    EXPECT_TRUE(words.contains(known)) << known;
  }
}

TEST(Derive, ComputesBeforeAndBehindAnExchange) {
  std::vector<std::string> words;
  for (const Schedule& s :
       AllOf(ScheduleOf("input x : f32[A, B] sliced(0)\noutput y = abs(all_to_all(-x, 1))\n")
                 .graph()))
    words.push_back(Describe(s));
  EXPECT_THAT(words, testing::UnorderedElementsAre("C; A2A; C", "C; A2A; fuse(C)",
                                                   "fuse(C, A2A); C", "fuse(C, A2A); fuse(C)",
                                                   "C; fuse(A2A, C)", "fuse(C, A2A, C)",
                                                   "ol(C, A2A); C", "ol(C, A2A, fuse(C))"));
}

TEST(Derive, ComputesBehindTheGathersOfTheSameKernel) {
  // The gradient's sum is not needed whole, but a local computation reads the new weights.
  std::set<std::string> words;
  for (const Schedule& s :
       AllOf(ScheduleOf("input g : f32[N] local\nstate p : f32[N] replicated\n"
                        "new = update(p, p - all_reduce(sum, g))\noutput y = g * new + g\n")
                 .graph())) {
    words.insert(Describe(s));
  }
  EXPECT_TRUE(words.contains("fuse(RS, C, AG, C)"));
}

TEST(Derive, OverlapsKernelsThatGoOnWithProductsAfterAllOtherSchedules) {
  const Graph program = ScheduleOf(
                            "input a : f32[96, 20] sliced(0)\ninput b : f32[20, 10] local\n"
                            "output c = abs(all_reduce(sum, exp(matmul(all_gather(a), b))))\n")
                            .graph();
  const std::vector<Schedule> all = AllOf(program);
  std::vector<std::string> fused, others;
  for (const Schedule& s : all)
    (TilesInKernels(s) ? fused : others).push_back(absl::StrCat(Describe(s), "|", Print(s)));
  for (absl::string_view want :
       {"ol(AG, fuse(MM, C), AR, fuse(C))|", "ol(AG, fuse(MM, C), fuse(AR, C))|",
        "ol(AG, fuse(MM, C), fuse(RS[0], C, AG c))|"}) {
    EXPECT_EQ(absl::c_count_if(
                  fused, [&](const std::string& words) { return absl::StartsWith(words, want); }),
              1)
        << want;
  }
  EXPECT_EQ(std::set(fused.begin(), fused.end()).size(), fused.size());
  // Where there is room for the others only, these are all of them.
  DeriveOptions options;
  options.max_schedules = static_cast<int>(others.size());
  std::vector<std::string> bounded;
  for (const Schedule& s : AllOf(program, options))
    bounded.push_back(absl::StrCat(Describe(s), "|", Print(s)));
  EXPECT_EQ(bounded, others);
}

TEST(Derive, OverlapsProductsAndSends) {
  const auto finds = [](absl::string_view workload, const std::vector<std::string>& wanted) {
    const std::vector<std::string> words = Descriptions(AllOf(Workload(workload)));
    for (const std::string& want : wanted) {
      EXPECT_EQ(std::count(words.begin(), words.end(), want), 1) << workload << ": " << want;
    }
  };
  finds("attention", {"ol(MM, AR, fuse(C))", "ol(MM, fuse(AR, C))", "ol(MM, RS[1], fuse(C), AG y)",
                      "ol(MM, fuse(RS[flat], C, AG))"});
  finds("sequence", {"ol(fuse(C), AG, MM); C; ol(MM, fuse(RS[1], C))"});
  finds("pipeline", {"ol(RS[1], fuse(C), send[1], AG y)", "ol(fuse(RS[1], C), send[1], AG y)",
                     "ol(AR, fuse(C), send)"});
  finds("pipeline", {"AR; fuse(C, send)", "fuse(AR, C, send)", "RS[1]; fuse(C, send[1]); AG y",
                     "fuse(RS[1], C, send[1]); AG y", "ol(RS[1], fuse(C, send[1]), AG y)",
                     "ol(AR, fuse(C, send))"});
  finds("adam", {"ol(RS, fuse(C), AG p); slice m v"});
  finds("moe", {"ol(C, A2A, fuse(C), MM, MM, fuse(C), MM, A2A); A2A; C; C; fuse(scatter, C)"});
}

/// One gradient and momentum a layer.
Graph Layers(int count) {
  std::string program;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&program, "input g", i, " : f32[", i + 5, "] local\nstate p", i, " : f32[",
                    i + 5, "] replicated\nstate m", i, " : f32[", i + 5, "]\nm1_", i, " = update(m",
                    i, ", 0.5 * m", i, " + all_reduce(sum, g", i, "))\nupdate(p", i, ", p", i,
                    " - m1_", i, ")\n");
  }
  return ScheduleOf(program).graph();
}

TEST(Derive, MovesEverywhereAtOnceInLargePrograms) {
  const Graph program = Layers(6);
  const std::vector<Schedule> schedules = AllOf(program);
  EXPECT_LE(schedules.size(), 1024u);
  CheckSchedules(program, schedules);
  const auto sliced_in_kernels =
      std::find_if(schedules.begin(), schedules.end(), [](const Schedule& s) {
        return s.kernels().size() == 6 && !IsCommunicationUnfused(s) &&
               absl::EndsWith(Describe(s), "slice m0 m1 m2 m3 m4 m5");
      });
  EXPECT_NE(sliced_in_kernels, schedules.end());
}

TEST(Derive, TakesOneOrderOfMovesWhereAllAreTooMany) {
  const Graph program =
      ScheduleOf(
          "input g : f32[3, N] local\ninput h : f32[N] local\nstate p : f32[3, N] "
          "replicated\nstate m : f32[3, N]\n"
          "state r : f32[N]\ns = all_reduce(sum, g)\nt = all_reduce(sum, h)\nr1 = update(r, 0.5 * "
          "r + t)\n"
          "m1 = update(m, 0.5 * m + s + r1)\nu = all_reduce(sum, g * s)\nupdate(p, p - m1 * u)\n")
          .graph();
  const size_t everywhere = AllOf(program).size();
  const absl::StatusOr<std::vector<Schedule>> fewer =
      Derive(program, {.max_schedules = static_cast<int>(everywhere) - 1});
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_LT(fewer->size(), everywhere);
  CheckSchedules(program, *fewer);
}

TEST(Derive, SaysWhenThereAreTooMany) {
  EXPECT_EQ(Derive(Workload("adam"), {.max_schedules = 3}).status(),
            absl::ResourceExhaustedError(
                "derive adam: more than 3 schedules; raise max_schedules, or split the program"));
}

/// A vector through so many elementwise operations, and the sum over ranks of what comes of it.
Graph LongProgram(int operations) {
  Graph g{"long", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {64}, Layout::Local()}});
  NodeId value = x;
  for (int i = 0; i < operations; ++i) value = g.Add(Pointwise{Pw::kAdd}, {value, x});
  g.Add(Output{"y"}, {g.Add(AllReduce{ReduceKind::kSum}, {value})});
  return g;
}

TEST(Derive, GivesAFewSchedulesOfALargeProgram) {
  const std::vector<Schedule> schedules = AllOf(LongProgram(100), {.large_program = 100});
  EXPECT_EQ(Descriptions(schedules),
            (std::vector<std::string>{"C; AR", "fuse(C); AR", "fuse(C); fuse(AR)", "C; RS; AG y",
                                      "fuse(C); RS; AG y", "fuse(C); fuse(RS, AG)"}));
  EXPECT_TRUE(schedules[0].trace().empty());
  EXPECT_EQ(absl::c_count_if(schedules, IsBaseline), 1);
  for (const Schedule& s : schedules)
    EXPECT_EQ(Print(Replay(schedules[0].graph(), s.trace()).value()), Print(s));
}

TEST(Derive, SlicesTheStatesOfALargeProgram) {
  constexpr int kLayers = 60;
  const std::vector<Schedule> schedules = AllOf(Layers(kLayers), {.large_program = 100});
  const Schedule& last = schedules.back();
  EXPECT_EQ(last.kernels().size(), kLayers);
  EXPECT_FALSE(IsCommunicationUnfused(last));
  for (NodeId id = 0; id < last.graph().size(); ++id) {
    const auto* state = As<State>(last.graph(), id);
    if (state != nullptr && state->name[0] == 'm') {
      EXPECT_TRUE(state->type.layout.sliced());
    }
  }
}

TEST(Derive, CutsASumOfManyTermsIntoKernelsOfBoundedLength) {
  Graph g{"sum", {}};
  constexpr int kTerms = 2000;
  std::vector<NodeId> terms;
  for (int i = 0; i < kTerms; ++i)
    terms.push_back(g.Add(Input{absl::StrCat("x", i), {DType::kF32, {64}, Layout::Replicated()}}));
  std::vector<NodeId> tree = terms;  // added up in pairs
  for (size_t i = 0; i + 1 < tree.size(); i += 2)
    tree.push_back(g.Add(Pointwise{Pw::kAdd}, {tree[i], tree[i + 1]}));
  g.Add(Output{"y"}, {tree.back()});
  const std::vector<Schedule> schedules = AllOf(g);
  const auto baseline = absl::c_find_if(schedules, IsBaseline);
  ASSERT_NE(baseline, schedules.end());
  int64_t passed_on = 0;  // elements that one kernel leaves to another
  for (const Traffic& traffic : baseline->traffic()) passed_on += traffic.written / (64 * 4);
  EXPECT_EQ(baseline->launches().size(), 16);
  EXPECT_EQ(baseline->kernels().size(), 16u);
  EXPECT_LT(passed_on, 12 * 16);
  for (const std::vector<NodeId>& kernel : baseline->kernels()) EXPECT_LE(kernel.size(), 128u);
  EXPECT_EQ(Print(Replay(g, baseline->trace()).value()), Print(*baseline));
}

/// So many sums over ranks, each of a product with the one before.
Graph ChainOfSums(int sums) {
  Graph g{"chain", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {64}, Layout::Local()}});
  NodeId value = x;
  for (int i = 0; i < sums; ++i)
    value = g.Add(Pointwise{Pw::kMul}, {g.Add(AllReduce{ReduceKind::kSum}, {value}), x});
  g.Add(Output{"y"}, {value});
  return g;
}

TEST(Derive, EndsWhenItIsToldTo) {
  const Graph program = ChainOfSums(20);
  int asked = 0;
  const std::vector<Schedule> all = AllOf(program, {.go_on = [&] { return ++asked > 0; }});
  EXPECT_EQ(Descriptions(all), Descriptions(AllOf(program)));
  ASSERT_GE(asked, 3);
  size_t before = 1;
  for (int after = 1; after <= 3; ++after) {
    const auto derive = [&] {
      int left = after;
      return AllOf(program, {.go_on = [&] { return --left > 0; }});
    };
    const std::vector<Schedule> some = derive();
    EXPECT_GT(some.size(), before);
    EXPECT_EQ(absl::c_count_if(some, IsBaseline), 1) << "after " << after;
    EXPECT_EQ(Descriptions(derive()), Descriptions(some)) << "the same each time";
    before = some.size();
  }
}

TEST(Derive, EndsWithinALargeProgram) {
  int asked = 0;
  const std::vector<Schedule> some =
      AllOf(LongProgram(20000), {.go_on = [&] { return ++asked < 2; }});
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(absl::c_count_if(some, IsBaseline), 1);
}

TEST(Derive, FusesWhatItCanOfALargeProgram) {
  // Operations of two shapes, so that there are many kernels, and scalars between them.
  Graph g{"blocks", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {64}, Layout::Replicated()}});
  NodeId scale = g.Add(Input{"scale", {DType::kF32, {}, Layout::Replicated()}});
  for (int block = 0; block < 200; ++block) {
    scale = g.Add(Pointwise{Pw::kAdd}, {scale, g.Add(Const{1.0 + block, DType::kF32})});
    const NodeId scaled = g.Add(Pointwise{Pw::kMul}, {x, scale});
    const NodeId added = g.Add(Pointwise{Pw::kAdd}, {scaled, x});
    scale = g.Add(Fold{FoldKind::kSum, {}}, {added});
  }
  g.Add(Output{"y"}, {scale});
  const std::vector<Schedule> schedules = AllOf(g);
  ASSERT_GE(schedules.size(), 2u);
  EXPECT_EQ(schedules[0].launches().size(), 601);
  EXPECT_EQ(schedules[1].kernels().size(), 200u);
  EXPECT_EQ(schedules[1].launches().size(), 201);
  EXPECT_EQ(Print(Replay(g, schedules[1].trace()).value()), Print(schedules[1]));
}

TEST(Derive, FollowsNoOperandsOnTheStack) {
  constexpr int kOperations = 100000;
  const std::vector<Schedule> schedules = AllOf(LongProgram(kOperations));
  ASSERT_GE(schedules.size(), 2u);
  EXPECT_EQ(schedules[0].launches().size(), kOperations + 2);
  EXPECT_EQ(Describe(schedules[0]), "C; AR");
}

TEST(Split, FollowsNoOperandsOnTheStack) {
  constexpr int kOperations = 100000;
  Graph g{"sum", {}};
  const NodeId x = g.Add(Input{"x", {DType::kF32, {64}, Layout::Local()}});
  NodeId value = g.Add(AllGather{}, {g.Add(ReduceScatter{ReduceKind::kSum, 0}, {x})});
  for (int i = 0; i < kOperations; ++i) value = g.Add(Pointwise{Pw::kAdd}, {value, value});
  const NodeId fold = g.Add(Fold{FoldKind::kSum, {}}, {value});
  g.Add(Output{"y"}, {fold});
  const absl::StatusOr<Schedule> plain = InitialSchedule(g);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const absl::StatusOr<Schedule> split = Apply(*plain, Split{fold, 0});
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(Describe(*split), "RS; C; AR");
}

}  // namespace
}  // namespace coconet
