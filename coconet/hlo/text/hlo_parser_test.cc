#include "coconet/hlo/text/hlo_parser.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/hlo/text/hlo_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A step after partitioning, as XLA prints it.
constexpr char kStep[] =
    R"(HloModule jit_step, is_scheduled=true,
  input_output_alias={ {0}: (0, {}, may-alias), {1,2}: (1, {3}, must-alias) },
  entry_computation_layout={(f32[4,8]{1,0}, /*index=1*/f32[8]{0})->(f32[4,8]{1,0}, f32[8]{0})},
  num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%a, %b)
}

%pass (p: f32[8]) -> f32[8]{0} {
  ROOT %p = f32[8]{0} parameter(0)
}

// A comment.
ENTRY %main.7_spmd (param: f32[4,8], param.1: f32[8]) -> (f32[4,8], f32[8]) {
  %param.1 = f32[8]{0:T(256)} parameter(1), sharding={replicated},
    metadata={op_name="x[\"w\"]" source_file="a,b.py"}
  %param = f32[4,8]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  %zero = f32[] constant(0)
  %table = s32[2,3]{1,0} constant({ { 1, 2, 3 }, { -4, 5, 6 } })
  %reduce.1 = f32[8]{0} reduce(%param, %zero), dimensions={0}, to_apply=%sum
  %all-reduce = f32[8]{0} all-reduce(f32[8]{0} %reduce.1), channel_id=1,
    replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true, to_apply=%sum
  %slice.2 = f32[2,4]{1,0} slice(%param), slice={[0:4:2], [4:8]}
  %pad.1 = f32[3,9]{1,0} pad(%slice.2, %zero), padding=0_1x-1_2_1
  %permute = f32[8]{0} collective-permute(%param.1), channel_id=2, source_target_pairs={{0,1},{1,0}}
  ROOT %tuple = (f32[4,8]{1,0}, f32[8]{0}) tuple(%param, /*index=1*/%all-reduce)
}
)";

/// The same kind of program in the short form of HloPrintOptions.
constexpr char kShort[] = R"(HloModule jit_f

region_0.3 {
  Arg_0.4 = f32[] parameter(0)
  Arg_1.5 = f32[] parameter(1)
  ROOT max.6 = f32[] maximum(Arg_0.4, Arg_1.5)
}

ENTRY main.9 {
  x = f32[4]{0} parameter(0)
  c = f32[] constant(-inf)
  ROOT r = f32[] reduce(x, c), dimensions={0}, to_apply=region_0.3
}
)";

const HloInstruction& Named(const HloComputation& computation, absl::string_view name) {
  for (const HloInstruction& instruction : computation.instructions) {
    if (instruction.name == name) return instruction;
  }
  ADD_FAILURE() << "no instruction " << name;
  return computation.instructions[0];
}

TEST(ParseHlo, ReadsWhatAStepSays) {
  const absl::StatusOr<HloModule> module = ParseHlo(kStep);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->name, "jit_step");
  EXPECT_EQ(*module->Find("num_partitions"), "4");
  ASSERT_EQ(module->computations.size(), 3u);
  EXPECT_EQ(module->FindComputation("%sum"), &module->computations[0]);
  EXPECT_EQ(module->FindComputation("nothing"), nullptr);
  const HloComputation& entry = module->Entry();
  EXPECT_EQ(entry.name, "main.7_spmd");
  ASSERT_EQ(entry.instructions.size(), 10u);
  EXPECT_THAT(entry.parameters, ElementsAre(1, 0));
  EXPECT_EQ(entry.Root().name, "tuple");
  EXPECT_THAT(entry.Root().operands, ElementsAre(1, 5));
  EXPECT_EQ(Text(entry.Root().shape), "(f32[4,8], f32[8])");
  EXPECT_EQ(entry.Root().shape.bytes(), 4 * 40);
  EXPECT_EQ(Named(entry, "all-reduce").opcode, "all-reduce");
  EXPECT_EQ(Where(Named(entry, "reduce.1")), "line 23: %reduce.1 = f32[8] reduce");
  EXPECT_EQ(*Named(entry, "param.1").Find("metadata"),
            R"({op_name="x[\"w\"]" source_file="a,b.py"})");
}

TEST(ParseHlo, PassesOverTablesOfSources) {
  const absl::StatusOr<HloModule> module = ParseHlo(R"(HloModule m, is_scheduled=true

FileNames
1 "/home/me/step.py"

FunctionNames
1 "<module>"
2 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=2 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x)
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->Entry().instructions.size(), 2u);
  EXPECT_EQ(module->Entry().Root().line, 19);
}

TEST(ParseHlo, ReadsTheShortForm) {
  const absl::StatusOr<HloModule> module = ParseHlo(kShort);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->Entry().Root().opcode, "reduce");
  EXPECT_EQ(module->FindComputation("region_0.3")->Root().opcode, "maximum");
  EXPECT_EQ(Named(module->Entry(), "c").argument, "-inf");
}

TEST(ParseHlo, TheLastInstructionIsTheRootWhereNoneIsMarked) {
  const absl::StatusOr<HloModule> module =
      ParseHlo("HloModule m\nENTRY e { a = f32[] parameter(0)\n b = f32[] negate(a) }");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->Entry().Root().name, "b");
}

TEST(HloAttributes, AreReadAsValues) {
  const HloModule module = *ParseHlo(kStep);
  const HloComputation& entry = module.Entry();
  EXPECT_THAT(*IntegersOf(Named(entry, "reduce.1"), "dimensions"), ElementsAre(0));
  EXPECT_THAT(*ComputationsOf(Named(entry, "reduce.1"), "to_apply"), ElementsAre("sum"));
  EXPECT_EQ(*IntegerOf(Named(entry, "all-reduce"), "channel_id"), 1);
  EXPECT_TRUE(*FlagOf(Named(entry, "all-reduce"), "use_global_device_ids"));
  EXPECT_FALSE(*FlagOf(Named(entry, "all-reduce"), "constrain_layout"));
  EXPECT_THAT(*GroupsOf(Named(entry, "all-reduce")),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  const std::vector<HloRange> ranges = *SliceOf(Named(entry, "slice.2"));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].step, 2);
  EXPECT_EQ(ranges[1].begin, 4);
  const std::vector<HloPadding> padding = *PaddingOf(Named(entry, "pad.1"));
  ASSERT_EQ(padding.size(), 2u);
  EXPECT_EQ(padding[0].after, 1);
  EXPECT_EQ(padding[1].before, -1);
  EXPECT_EQ(padding[1].between, 1);
  EXPECT_THAT(*PairsOf(Named(entry, "permute")),
              ElementsAre(::testing::Pair(0, 1), ::testing::Pair(1, 0)));
  EXPECT_THAT(*LiteralOf(Named(entry, "table")), ElementsAre("1", "2", "3", "-4", "5", "6"));
  const std::vector<HloAlias> aliases = *AliasesOf(module);
  ASSERT_EQ(aliases.size(), 2u);
  EXPECT_THAT(aliases[1].output, ElementsAre(1, 2));
  EXPECT_EQ(aliases[1].parameter, 1);
  EXPECT_THAT(aliases[1].of_parameter, ElementsAre(3));
}

/// An all-reduce with the given groups.
absl::StatusOr<std::vector<std::vector<int64_t>>> Groups(const std::string& groups) {
  absl::StatusOr<HloModule> module =
      ParseHlo(absl::StrCat("HloModule m\nENTRY e { a = f32[] parameter(0)\n ROOT r = f32[] "
                            "all-reduce(a), replica_groups=",
                            groups, "\n}"));
  EXPECT_TRUE(module.ok()) << module.status();
  return GroupsOf(module->Entry().Root());
}

TEST(HloAttributes, GroupsHaveThreeNotations) {
  EXPECT_TRUE(Groups("{}")->empty());
  EXPECT_EQ(*Groups("[1,4]<=[4]"), *Groups("{{0,1,2,3}}"));
  EXPECT_EQ(*Groups("[4,2]<=[8]"), *Groups("{{0,1},{2,3},{4,5},{6,7}}"));
  // NumPy: arange(8).reshape(2, 4).transpose(1, 0).reshape(4, 2).
  EXPECT_EQ(*Groups("[4,2]<=[2,4]T(1,0)"), *Groups("{{0,4},{1,5},{2,6},{3,7}}"));
  // NumPy: arange(12).reshape(2, 3, 2).transpose(2, 0, 1).reshape(3, 4).
  EXPECT_EQ(*Groups("[3,4]<=[2,3,2]T(2,0,1)"), *Groups("{{0,2,4,6},{8,10,1,3},{5,7,9,11}}"));
  EXPECT_EQ(*Groups("mesh['x'=2,'y'=4] {'y'}"), *Groups("{{0,1,2,3},{4,5,6,7}}"));
  EXPECT_EQ(*Groups("mesh['x'=2,'y'=4] {'x'}"), *Groups("{{0,4},{1,5},{2,6},{3,7}}"));
  // NumPy: arange(12).reshape(2, 3, 2).transpose(1, 2, 0).reshape(3, 4).
  EXPECT_EQ(*Groups("mesh['a'=2,'b'=3,'c'=2] {'c','a'}"),
            *Groups("{{0,6,1,7},{2,8,3,9},{4,10,5,11}}"));
  for (const char* wrong :
       {"mesh['x'=2] {'y'}", "mesh['x'=2] {'x','x'}", "mesh['x'=2]", "mesh[] {}",
        "mesh['x'=0] {'x'}", "mesh['x'=99999999999] {'x'}", "mesh['x=2] {'x'}", "{{0,1},{1,2}}",
        "{{0},{}}", "{{-1}}", "[2,2]<=[5]", "[2,2]<=[2,2]T(0,0)", "[4]<=[4]", "[2,2]<=[2,2]T(1)",
        "[0,4]<=[4]", "[9999999,9999999]<=[9999999,9999999]", "{{0,x}}", "{0,1}", "[2,2]"}) {
    const auto groups = Groups(wrong);
    ASSERT_FALSE(groups.ok()) << wrong;
    EXPECT_THAT(std::string(groups.status().message()),
                HasSubstr("line 3: %r = f32[] all-reduce: want replica_groups="))
        << wrong;
  }
}

TEST(ParseHlo, NamesWhatIsWrong) {
  const std::string head = "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n";
  const struct {
    std::string text, message;
  } kCases[] = {
      {"", "line 1: want 'HloModule', but the text ends here"},
      {"#loc = 1\nmodule @jit_f { func.func public @main() }", "have StableHLO"},
      {"module @jit_f", "have StableHLO"},
      {"\x1f\x8b\x08", "that gzip compressed; decompress it: gunzip"},
      {"\n\x05step\x12\x01x", "have a binary file, as an HloProto is; print the module as text"},
      {"HloModule m\n", "want a computation that begins with ENTRY"},
      {"HloModule m\nENTRY e {\n}", "computation e has no instructions"},
      {head, "line 4: want an instruction or '}', but the text ends here"},
      {head + "  b = f32[4] add(a, c)\n}",
       "line 4: %b = add: want operands that are defined before it, have %c"},
      {head + "  b = f32[4] add(a, b)\n}", "have %b"},
      {head + "  a = f32[4] negate(a)\n}", "line 4: %a = negate: its name is defined twice"},
      {head + "  b = f7[4] negate(a)\n}", "line 4: %b: want a type"},
      {head + "  b = f32[<=4] negate(a)\n}", "programs of dynamic shapes"},
      {head + "  b = f32[-4] negate(a)\n}", "an extent of at least 0"},
      {head + "  b = f32[1099511627776,2] negate(a)\n}", "at most 2^40 elements"},
      {head + "  b = f32[0,1099511627776,1099511627776] negate(a)\n}", "at most 2^40 elements"},
      {head + "  b = f32[99999999999999999999] negate(a)\n}", "want an extent"},
      {head + "  b = f32[4] parameter(0)\n}", "parameter 0 is defined twice"},
      {head + "  b = f32[4] parameter(2)\n}", "has no parameter 1"},
      {head + "  b = f32[4] parameter(99999999999)\n}", "want the parameter's number"},
      {head + "  b = f32[4] constant({1, 2\n}", "the text ends within what begins here"},
      {head + "  ROOT b = f32[4] negate(a)\n  ROOT c = f32[4] negate(b)\n}", "a second ROOT"},
      {head + "  b = f32[4] negate(a), metadata=]\n}", "']' closes nothing that is open"},
      {head + "  b = f32[4] negate(a), metadata={op=\"x\n}", "the text ends within"},
      {head + "}\nENTRY f {\n  a = f32[] parameter(0)\n}", "want one ENTRY, have a second, f"},
      {head + "}\ne {\n  a = f32[] parameter(0)\n}", "computation e is defined twice"},
      {"HloModule m\nENTRY e {\n  a = " + std::string(200, '(') + "f32[]", "tuples at most 100"},
      {"HloModule m, x=" + std::string(200, '{'), "brackets at most 100 deep"},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<HloModule> module = ParseHlo(c.text);
    ASSERT_FALSE(module.ok()) << c.text;
    EXPECT_TRUE(absl::IsInvalidArgument(module.status()));
    EXPECT_THAT(std::string(module.status().message()), HasSubstr(c.message)) << c.text;
  }
}

TEST(HloAttributes, NameWhatIsWrong) {
  const HloModule module = *ParseHlo(
      "HloModule m, input_output_alias={ {0}: 0 }\nENTRY e { a = f32[2] parameter(0)\n"
      "b = f32[2] constant({1})\n c = f32[2] constant({...})\n"
      "ROOT r = f32[2] slice(a), slice={0:2}, dimensions={x}, index=1.5, flag=maybe\n}");
  const HloComputation& entry = module.Entry();
  const HloInstruction& root = entry.Root();
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_THAT(message(LiteralOf(Named(entry, "b"))),
              HasSubstr("line 3: %b = f32[2] constant: want a literal of 2 numbers, have 1"));
  EXPECT_THAT(message(LiteralOf(Named(entry, "c"))), HasSubstr("its numbers were left out"));
  EXPECT_THAT(message(SliceOf(root)), HasSubstr("want slice={[begin:end], ...}, have '{0:2}'"));
  EXPECT_THAT(message(IntegersOf(root, "dimensions")), HasSubstr("want dimensions={integers}"));
  EXPECT_THAT(message(IntegerOf(root, "index")), HasSubstr("want index=an integer, have '1.5'"));
  EXPECT_THAT(message(FlagOf(root, "flag")), HasSubstr("want flag=true or false"));
  EXPECT_THAT(message(PaddingOf(root)), HasSubstr("have none"));
  EXPECT_THAT(message(AliasesOf(module)), HasSubstr("want input_output_alias="));
}

TEST(ParseHlo, ReadsOrRefusesWhatIsLeftOfAText) {
  const std::string step = kStep;
  for (size_t size = 0; size < step.size(); ++size) {
    const absl::StatusOr<HloModule> module = ParseHlo(step.substr(0, size));
    // Only what ends after the last instruction is whole.
    EXPECT_EQ(module.ok(), size + 1 >= step.size()) << size;
  }
}

TEST(ParseHlo, ReadsOrRefusesChangedTexts) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  const std::string step = kStep, characters = "%(){}[]<>=,:.\"\\ \nab01-";
  for (int i = 0; i < 3000; ++i) {
    std::string text = step;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const size_t at = random() % text.size();
      const char character = characters[random() % characters.size()];
      if (random() % 2 == 0)
        text[at] = character;
      else
        text.insert(at, 1, character);
    }
    const absl::StatusOr<HloModule> module = ParseHlo(text);
    if (!module.ok()) {
      EXPECT_TRUE(absl::StartsWith(module.status().message(), "line ")) << "seed " << seed << text;
      continue;
    }
    for (const HloComputation& computation : module->computations) {
      for (const HloInstruction& instruction : computation.instructions) {
        // Values or errors, whatever the text.
        GroupsOf(instruction).IgnoreError();
        SliceOf(instruction).IgnoreError();
        PaddingOf(instruction).IgnoreError();
        PairsOf(instruction).IgnoreError();
        LiteralOf(instruction).IgnoreError();
        IntegersOf(instruction, "dimensions").IgnoreError();
      }
    }
  }
}

}  // namespace
}  // namespace coconet
