#include "autotune/search/choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ConfigSpace kHost{.ranks = 2, .cores = 2};
constexpr ConfigSpace kGpu{.ranks = 2, .cores = 2, .multiprocessors = 66, .bulk = true};

Chooser OfAdam(const ConfigSpace& space = kHost) {
  return Chooser(*BindSizes(*MakeWorkload("adam"), {{"N", 1 << 24}}), space);
}

std::string Refusal(const Choice& choice, const ConfigSpace& space = kHost) {
  const absl::StatusOr<Variant> one = OfAdam(space).One(choice);
  EXPECT_FALSE(one.ok());
  EXPECT_EQ(one.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OfAdam(space).All(choice).status().message(), one.status().message());
  return std::string(one.status().message());
}

TEST(Choice, LeftOutMeansTheBaselineAndItsPlainestConfig) {
  for (const char* none : {"", "*", " * "}) {
    const absl::StatusOr<Variant> variant = OfAdam().One({none, none});
    ASSERT_TRUE(variant.ok()) << variant.status();
    EXPECT_EQ(Describe(*variant).schedule, "AR; fuse(C)");
    EXPECT_EQ(variant->config, Configs(variant->schedule, kHost).front());
  }
}

TEST(Choice, NamesAScheduleByWordsAndByItsTrace) {
  const absl::StatusOr<Variant> by_words = OfAdam(kGpu).One({"fuse(RS, C, AG); slice m v", ""});
  ASSERT_TRUE(by_words.ok()) << by_words.status();
  const std::string trace = TraceOf(*by_words);
  const absl::StatusOr<Variant> by_trace = OfAdam(kGpu).One({trace, "*"});
  ASSERT_TRUE(by_trace.ok()) << by_trace.status();
  EXPECT_EQ(Print(by_words->schedule), Print(by_trace->schedule));
  EXPECT_EQ(by_words->config, by_trace->config);
}

TEST(Choice, TakesConfigsThatNoSearchTries) {
  const absl::StatusOr<Variant> variant =
      OfAdam(kGpu).One({"fuse(RS, C, AG); slice m v", "blocks=33 threads=96 vec=2 chunk=2048"});
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->config.blocks, 33);
  EXPECT_EQ(variant->config.threads, 96);
  EXPECT_EQ(variant->config.vec, 2);
  const std::vector<Config> tried = Configs(variant->schedule, kGpu);
  EXPECT_EQ(std::count(tried.begin(), tried.end(), variant->config), 0);
}

TEST(Choice, TakesSchedulesThatNoSearchTries) {
  const Graph product =
      Canonicalize(*Parse("coconet 1\nprogram t\ninput a : f32[96, 20] local\ninput b : f32[20, "
                          "10] local\noutput c = abs(all_reduce(sum, matmul(a, b)))\n"))
          .graph;
  Chooser chooser(product, kHost);
  EXPECT_EQ(
      chooser.One({"fuse(MM, AR, C)", ""}).status().message(),
      "schedule \"fuse(MM, AR, C)\" of t: no config is tried for it on 2 ranks of 1 node here: "
      "others are known to be faster; name a config to run it");
  const absl::StatusOr<Variant> named = chooser.One({"fuse(MM, AR, C)", "generated tiles=64"});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->config.tiles, 64);
  EXPECT_THAT(chooser.One({"fuse(MM, AR, C)", "generated tiles=65"}).status().message(),
              HasSubstr("want tiles of 128 or 64"));
}

TEST(Choice, NumbersThatAreNotSaidAreThePlainestOfTheProtocol) {
  const absl::StatusOr<Variant> variant =
      OfAdam(kGpu).One({"RS; fuse(C); AG p; slice m v", "generated bulk=1"});
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->config.protocol, Protocol::kGenerated);
  EXPECT_TRUE(variant->config.bulk);
}

TEST(Choice, AllHasEveryConfigOfTheSchedule) {
  const absl::StatusOr<VariantSet> all = OfAdam().All({"fuse(RS, C, AG); slice m v", ""});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->baseline, 0);
  EXPECT_EQ(all->variants.size(), Configs(all->variants[0].schedule, kHost).size());
  for (const Variant& v : all->variants)
    EXPECT_EQ(Describe(v).schedule, "fuse(RS, C, AG); slice m v");
}

TEST(Choice, AllHasEveryScheduleThatAConfigIsLegalFor) {
  const absl::StatusOr<VariantSet> all = OfAdam(kGpu).All({"", "generated bulk=1"});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_GT(all->variants.size(), 1u);
  for (const Variant& v : all->variants) EXPECT_TRUE(v.config.bulk);
}

TEST(Choice, SaysWhichSchedulesAreNearest) {
  EXPECT_THAT(Refusal({"fuse(RS, C, AG); slice m w", ""}),
              AllOf(HasSubstr("schedule \"fuse(RS, C, AG); slice m w\" of adam: none has these "
                              "words"),
                    HasSubstr("the nearest are \"fuse(RS, C, AG); slice m v\", ")));
  EXPECT_THAT(Refusal({"split(%1000, 0)", ""}), HasSubstr("the nearest are "));
  EXPECT_THAT(Refusal({"split(%", ""}), HasSubstr("schedule, at 'split(%'"));
}

TEST(Choice, SaysWhichConfigsAreNearest) {
  EXPECT_THAT(
      Refusal({"AR; fuse(C)", "vec=3"}),
      AllOf(HasSubstr("want vec a power of two in 1..64"), HasSubstr("the nearest are \"")));
  EXPECT_THAT(Refusal({"AR; fuse(C)", "vex=4"}),
              HasSubstr("no number is called 'vex' (did you mean 'vec'?)"));
  EXPECT_THAT(Refusal({"AR; fuse(C)", "pieces=4"}), HasSubstr("want pieces=2 to 256 for"));
  EXPECT_THAT(Refusal({"AR; fuse(C)", "threads=100"}, kGpu), HasSubstr("want threads a multiple"));
}

TEST(Choice, WordsAndTracesNameEverySchedule) {
  Chooser chooser = OfAdam();
  const absl::StatusOr<VariantSet> all = chooser.All({"*", "*"});
  ASSERT_TRUE(all.ok()) << all.status();
  std::set<std::string> seen;
  for (const Variant& v : all->variants) {
    if (!seen.insert(TraceOf(v)).second) continue;
    for (const std::string& text : {Describe(v).schedule, TraceOf(v)}) {
      const absl::StatusOr<Variant> named = chooser.One({text, Text(v.config)});
      ASSERT_TRUE(named.ok()) << named.status();
      if (!text.empty()) {
        EXPECT_EQ(Print(named->schedule), Print(v.schedule)) << text;
      }
    }
  }
  EXPECT_GT(seen.size(), 20u);
}

TEST(Choice, AsksForATraceWhereWordsNameSeveralSchedules) {
  int several = 0;
  for (const WorkloadInfo& workload : Workloads()) {
    const Graph program = *BindSizes(*MakeWorkload(workload.name), workload.presets[0].sizes);
    const absl::StatusOr<std::vector<Schedule>> schedules = Derive(program);
    if (!schedules.ok()) continue;
    std::map<std::string, std::vector<std::string>> traces;  // by words
    for (const Schedule& s : *schedules) traces[Describe(s)].push_back(TraceText(s.trace()));
    for (const auto& [words, of_words] : traces) {
      if (of_words.size() < 2 || ++several > 3) continue;
      const absl::StatusOr<Variant> one = Chooser(program, kHost).One({words, ""});
      EXPECT_EQ(one.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(one.status().message()),
                  AllOf(HasSubstr(absl::StrCat(of_words.size(), " have these words; say which by")),
                        HasSubstr(of_words[0]), HasSubstr(of_words[1])));
      EXPECT_TRUE(Chooser(program, kHost).One({of_words[1], ""}).ok());
    }
  }
  EXPECT_GT(several, 0);
}

TEST(Choice, TakesACombinationOfPartsWithoutAConfig) {
  EXPECT_THAT(Refusal({"apart {nothing}", "vec=4"}), HasSubstr("want none, since the parts"));
  EXPECT_THAT(Refusal({"apart {nothing}", ""}), HasSubstr("kinds of parts"));
}

}  // namespace
}  // namespace coconet
