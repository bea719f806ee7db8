// What cannot be imported, and how the importer says so.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/testing/imported_results.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MistakeIn(const std::string& instructions, const std::string& attributes = "") {
  const absl::StatusOr<ImportedHlo> imported = Import(Module(instructions, attributes));
  EXPECT_FALSE(imported.ok()) << instructions;
  return std::string(imported.status().message());
}

TEST(ImportHlo, NamesWhatIsWrong) {
  const std::string x = "x = f32[2,3] parameter(0)\n";
  EXPECT_THAT(MistakeIn(x + "y = f32[3] parameter(1)\n a = f32[2,3] add(x, y)"),
              HasSubstr("%a = f32[2,3] add: want operands of one type and shape"));
  EXPECT_THAT(MistakeIn(x + "a = f32[3,3] add(x, x)"),
              HasSubstr("%a = f32[3,3] add: its operands give f32[2,3]"));
  EXPECT_THAT(MistakeIn(x + "t = f32[3,2] transpose(x), dimensions={1,1}"),
              HasSubstr("want dimensions of f32[2,3], each once"));
  EXPECT_THAT(MistakeIn(x + "t = f32[2,3] broadcast(x), dimensions={0,7}"),
              HasSubstr("want dimensions of f32[2,3], each once"));
  EXPECT_THAT(MistakeIn(x + "s = f32[2,9] slice(x), slice={[0:2], [0:9]}"),
              HasSubstr("want a range within [0, 3), have [0, 9)"));
  EXPECT_THAT(MistakeIn(x + "r = f32[7] reshape(x)"), HasSubstr("number of elements"));
  EXPECT_THAT(MistakeIn(x + "d = f32[2,2] dot(x, x), lhs_contracting_dims={0}, "
                            "rhs_contracting_dims={1}"),
              HasSubstr("want equal extents"));
  EXPECT_THAT(MistakeIn("c = f32[2] constant({1, x})"), HasSubstr("want numbers of f32, have 'x'"));
  EXPECT_THAT(MistakeIn("c = f16[] constant(65520)"), HasSubstr("numbers of f16, have '65520'"));
  EXPECT_THAT(MistakeIn("c = s32[2] parameter(0)\n m = s32[2] mulhi(c, c)"),
              HasSubstr("unsupported operations: 1 x mulhi"));
  EXPECT_THAT(MistakeIn(x + "g = f32[2,3] get-tuple-element(x), index=0"),
              HasSubstr("want an element of a tuple"));
  EXPECT_THAT(MistakeIn(x + "t = f32[2,3] tuple(x)"),
              HasSubstr("want operands of its elements' types"));
  EXPECT_THAT(MistakeIn(x + "c = f32[2,3] call(x), to_apply=nothing"),
              HasSubstr("want to_apply to name a computation"));
  EXPECT_THAT(MistakeIn(x + "c = f32[2,3] call(x), to_apply=add"),
              HasSubstr("want 2 arguments, have 1"));
  EXPECT_THAT(
      MistakeIn(x + "r = f32[2,3] all-reduce(x), replica_groups={{0,1}}, to_apply=add" + kGlobal,
                ", num_partitions=4"),
      HasSubstr("want groups in which each of 4 devices is once, have 2 in them"));
}

TEST(ImportHlo, ConstantsWithoutNumbersArePlanned) {
  const auto planned = [](const std::string& instructions) -> absl::StatusOr<ImportedHlo> {
    const absl::StatusOr<HloModule> module = ParseHlo(Module(instructions));
    if (!module.ok()) return module.status();
    return ImportHlo(*module, {.for_planning = true});
  };
  const std::string some =
      "x = f32[15] parameter(0)\n c = f32[15] constant({...})\n k = s32[2,8] constant({...})\n";
  const absl::StatusOr<ImportedHlo> imported = planned(some + "r = f32[15] multiply(x, c)");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->elided, 2);
  EXPECT_THAT(imported->parameters, ElementsAre("x"));
  EXPECT_EQ(Print(imported->program),
            "coconet 1\nprogram m\ninput x : f32[15] replicated\ninput c : f32[15] replicated\n"
            "input k : i32[2, 8] replicated\n%3 = mul(x, c)\noutput out = %3\n");
  // To run it, or to know a branch, an index or a count, needs them.
  EXPECT_THAT(MistakeIn(some + "r = f32[15] multiply(x, c)"),
              HasSubstr("%c = f32[15] constant: its numbers were left out when the module was "
                        "printed; print it by as_hlo_text(print_large_constants=True)"));
  const std::string one = some +
                          "s = s32[1,1] slice(k), slice={[1:2], [3:4]}\n i = s32[] reshape(s)\n"
                          "t = s32[] constant(2)\n j = s32[] add(i, t)\n";
  const std::string known = "%k = s32[2,8] constant: its numbers were left out";
  EXPECT_THAT(std::string(planned(one + "r = f32[3] dynamic-slice(x, j), dynamic_slice_sizes={3}")
                              .status()
                              .message()),
              AllOf(HasSubstr("%r = f32[3] dynamic-slice: its index follows from numbers"),
                    HasSubstr(known)));
  EXPECT_THAT(std::string(planned(one + "a = (f32[15], f32[15]) tuple(x, x)\n"
                                        "r = f32[15] conditional(j, a, a), "
                                        "branch_computations={sorted, sorted}")
                              .status()
                              .message()),
              HasSubstr("%r = f32[15] conditional: the branch that is taken follows from"));
  // Mixed with data, it is data.
  EXPECT_TRUE(planned(one + "n = s32[] parameter(1)\n m = s32[] add(i, n)\n"
                            "r = f32[3] dynamic-slice(x, m), dynamic_slice_sizes={3}")
                  .ok());
  const std::string loop = R"(HloModule m
twice { p = f32[] parameter(0)
  ROOT c = f32[] add(p, p) }
more { p = f32[] parameter(0)
  k = f32[11] constant({...})
  s = f32[1] slice(k), slice={[2:3]}
  l = f32[] reshape(s)
  ROOT c = pred[] compare(p, l), direction=LT }
ENTRY e { x = f32[] constant(1)
  ROOT w = f32[] while(x), condition=more, body=twice }
)";
  const absl::StatusOr<HloModule> module = ParseHlo(loop);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(std::string(ImportHlo(*module, {.for_planning = true}).status().message()),
              AllOf(HasSubstr("%w = f32[] while: the number of its turns follows from numbers"),
                    HasSubstr("line 5: %k = f32[11] constant: its numbers were left out")));
}

TEST(ImportHlo, CountsUnsupportedOperations) {
  const std::string message = MistakeIn(
      "x = f32[4] parameter(0)\n s = f32[4] sort(x), dimensions={0}, to_apply=max\n"
      "t = f32[4] sort(s), dimensions={0}, to_apply=max\n u = f32[4] add(s, t)\n"
      "z = f32[] constant(1)\n v = f32[] reduce(x, z), dimensions={0}, to_apply=sorted\n"

      "c = f32[4] custom-call(x), custom_call_target=\"te_fused\"\n"
      "ROOT r = (f32[4], f32[], f32[4]) tuple(u, v, c)");
  EXPECT_THAT(message, HasSubstr("2 x sort (first at line"));
  EXPECT_THAT(message, HasSubstr("1 x sort in a reduction"));
  EXPECT_THAT(message, HasSubstr("1 x custom-call to te_fused"));
  EXPECT_THAT(MistakeIn("x = f32[4] parameter(0)\n r = f32[4] all-reduce(x), "
                        "replica_groups={{0,1,2},{3}}, to_apply=add, channel_id=1, "
                        "use_global_device_ids=true",
                        ", num_partitions=4"),
              HasSubstr("1 x all-reduce in groups of different sizes"));
}

TEST(ImportHlo, ModulesThatAreNotPartitionedAreRefused) {
  const std::string split = "x = f32[4,2] parameter(0), sharding={devices=[2,1]<=[2]}\n";
  const std::string copy = split + " r = f32[4,2] copy(x)";
  EXPECT_THAT(MistakeIn(copy, ", num_partitions=2"),
              HasSubstr("the module is not partitioned yet"));
  EXPECT_THAT(MistakeIn(split + " r = f32[4,2] custom-call(x), custom_call_target=\"Sharding\", "
                                "sharding={replicated}",
                        ", num_partitions=2"),
              HasSubstr("the module is not partitioned yet"));
  EXPECT_THAT(MistakeIn(split + " r = f32[] constant(1)", ", num_partitions=2"),
              HasSubstr("nothing uses it"));
  // Scheduled, or with collectives: it has been partitioned.
  EXPECT_EQ(Result(copy, 2, 1, ", num_partitions=2, is_scheduled=true").size(), 8u);
  EXPECT_EQ(Result(split + " r = f32[8,2] all-gather(x), dimensions={0}, replica_groups={{0,1}}" +
                       kGlobal,
                   2, 1, ", num_partitions=2")
                .size(),
            16u);
  // All devices have the same.
  for (const char* sharding :
       {"{replicated}", "{devices=[1,1,2]<=[2] last_tile_dim_replicate}",
        "{devices=[1,1,2]<=[2] last_tile_dims={replicated}}", "{maximal device=0}"}) {
    EXPECT_EQ(Result(absl::StrCat("x = f32[4,2] parameter(0), sharding=", sharding,
                                  "\n r = f32[4,2] copy(x)"),
                     2, 1, ", num_partitions=2")
                  .size(),
              8u)
        << sharding;
  }
}

TEST(ImportHlo, NamesOperationsThatHloHasNot) {
  EXPECT_THAT(MistakeIn("x = f32[4] parameter(0)\n r = f32[4] frobnicate(x)"),
              HasSubstr("line 43: %r = f32[4] frobnicate: want an operation of HLO"));
}

TEST(ImportHlo, LoopsWithoutACountAreRefused) {
  const std::string text = R"(HloModule m
same { p = f32[] parameter(0)
  ROOT c = f32[] copy(p) }
data { p = f32[] parameter(0)
  z = f32[] constant(0)
  ROOT l = pred[] compare(p, z), direction=LT }
ENTRY e { x = f32[] parameter(0)
  ROOT w = f32[] while(x), condition=data, body=same }
)";
  const absl::StatusOr<ImportedHlo> imported = Import(text);
  EXPECT_THAT(std::string(imported.status().message()),
              HasSubstr("want a loop whose number of turns follows from constants"));
  const std::string endless = R"(HloModule m
same { p = f32[] parameter(0)
  ROOT c = f32[] copy(p) }
always { p = f32[] parameter(0)
  ROOT l = pred[] constant(true) }
ENTRY e { x = f32[] parameter(0)
  ROOT w = f32[] while(x), condition=always, body=same }
)";
  EXPECT_THAT(std::string(Import(endless).status().message()), HasSubstr("more than 2000000"));
}

}  // namespace
}  // namespace coconet
