#include "autotune/command/sweep_flags.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "autotune/command/paths.h"
#include "autotune/command/sizes.h"
#include "autotune/command/sweep_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

std::string Message(const std::vector<std::string>& args) {
  const absl::StatusOr<SweepFlags> flags = ParseSweepFlags(args, "/home/me");
  EXPECT_FALSE(flags.ok());
  return std::string(flags.status().message());
}

TEST(ParseSize, KnowsSuffixes) {
  EXPECT_EQ(*ParseSize("0"), 0);
  EXPECT_EQ(*ParseSize("4096"), 4096);
  EXPECT_EQ(*ParseSize("16Ki"), 16384);
  EXPECT_EQ(*ParseSize("16Mi"), 16777216);
  EXPECT_EQ(*ParseSize("1Gi"), 1073741824);
  EXPECT_EQ(*ParseSize("1.5Mi"), 1572864);
  EXPECT_EQ(*ParseSize("2k"), 2000);
  EXPECT_EQ(*ParseSize("3M"), 3000000);
  EXPECT_EQ(*ParseSize("1G"), 1000000000);
  for (const char* bad : {"", "Mi", "-1", "1x", "1.5", "1.0001Ki", "1 Ki", "99999999999999999999",
                          "9e9", "1e300G", "nan"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(ParseSizes, KnowsLists) {
  EXPECT_EQ(*ParseSizes("1Ki", "/"), BoundSize(1024));
  EXPECT_EQ(*ParseSizes("1024,3x5,1Ki", "/"), (BoundSize{1024, 15, 1024}));
  EXPECT_EQ(*ParseSizes("2x3x4", "/"), (BoundSize{24}));
  EXPECT_EQ(ParseSizes("@bert-large", "/")->sizes.size(), 396u);
  for (const char* bad : {"", "1,", ",1", "1,x", "3x", "1 2"})
    EXPECT_FALSE(ParseSizes(bad, "/").ok()) << bad;
  EXPECT_EQ(Message({"adam", "--N=@gpt9"}),
            "--N: 'gpt9' is no list of a model (bert-large, gpt2) and no file to read");
}

TEST(ParseSizes, ReadsFiles) {
  const std::string folder = ::testing::TempDir();
  std::ofstream(folder + "/sizes.txt") << "1024  # a bias\n\n3x5\n";
  EXPECT_EQ(*ParseSizes("@sizes.txt", folder), (BoundSize{1024, 15}));
  std::ofstream(folder + "/sizes.txt") << "1024\nmany\n";
  EXPECT_EQ(ParseSizes("@sizes.txt", folder).status().message(),
            "line 2 of sizes.txt: want a size such as 4096, 16Mi or 1G, have 'many'");
  std::ofstream(folder + "/sizes.txt") << "# none\n";
  EXPECT_EQ(ParseSizes("@sizes.txt", folder).status().message(), "file sizes.txt names no size");
}

TEST(SizesText, IsShort) {
  EXPECT_EQ(SizesText({{"B", 3}, {"N", {1, 2}}}), "B=3 N=1,2");
  EXPECT_EQ(SizesText({{"N", *ParseSizes("@bert-large", "/")}}), "N=(396 tensors, 335707968)");
}

TEST(ParseSweepFlags, ReadsThemAll) {
  const absl::StatusOr<SweepFlags> flags =
      ParseSweepFlags({"adam", "--N=16Mi", "--ranks=4", "--dtype=bf16", "--cache=c.db",
                       "--json=/tmp/x.json", "--budget=2.5", "--memory=1.5Mi", "--order=rank",
                       "--B=3", "--sum-rounding=each", "--nans=none"},
                      "/home/me");
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->program, "adam");
  EXPECT_FALSE(flags->is_file);
  EXPECT_EQ(flags->sizes, (Sizes{{"N", 16777216}, {"B", 3}}));
  EXPECT_EQ(flags->ranks, 4);
  EXPECT_EQ(flags->dtype, DType::kBF16);
  EXPECT_EQ(flags->cache, "/home/me/c.db");
  EXPECT_EQ(flags->json, "/tmp/x.json");
  EXPECT_EQ(flags->budget_s, 2.5);
  EXPECT_EQ(flags->memory_limit, 3 << 19);
  EXPECT_EQ(flags->sum_order, SumOrder::kRank);
  EXPECT_EQ(flags->sum_rounding, SumRounding::kEach);
  EXPECT_EQ(flags->nans, Nans::kNone);
}

TEST(ParseSweepFlags, FilesAreWhereTheUserStands) {
  EXPECT_EQ(ParseSweepFlags({"my.coco"}, "/home/me")->program, "/home/me/my.coco");
  EXPECT_EQ(ParseSweepFlags({"../x/y"}, "/home/me")->program, "/home/x/y");
  EXPECT_TRUE(ParseSweepFlags({"../x/y"}, "/home/me")->is_file);
  EXPECT_EQ(ParseSweepFlags({"adam", "--cache=:none:"}, "/home/me")->cache, ":none:");
}

TEST(ParseSweepFlags, RefusesWithWords) {
  EXPECT_EQ(Message({}), "want a workload, or a .coco or .hlo file; see --list and --help");
  EXPECT_EQ(Message({"adam", "sgd"}), "want one workload or file, have 'adam' and 'sgd'");
  EXPECT_EQ(Message({"adam", "--rank=x"}),
            "unknown flag --rank (did you mean 'ranks'?); see --help");
  EXPECT_EQ(Message({"adam", "--ranks=0"}), "--ranks: want 1 to 1024, have '0'");
  EXPECT_EQ(Message({"adam", "--ranks=two"}), "--ranks: want 1 to 1024, have 'two'");
  EXPECT_EQ(Message({"adam", "--N=big"}), "--N: want a size such as 4096, 16Mi or 1G, have 'big'");
  EXPECT_EQ(Message({"adam", "--N=-3"}), "--N: want a size such as 4096, 16Mi or 1G, have '-3'");
  EXPECT_EQ(Message({"adam", "--sum-rounding=twice"}),
            "--sum-rounding: want once or each, have 'twice'");
  EXPECT_EQ(Message({"adam", "--nans=all"}), "--nans: want possible or none, have 'all'");
  EXPECT_EQ(Message({"adam", "--dtype=double"}), "--dtype: want f32, f16 or bf16, have 'double'");
  EXPECT_EQ(Message({"adam", "--order=up"}), "--order: want any or rank, have 'up'");
  EXPECT_EQ(Message({"adam", "--budget=-1"}), "--budget: want seconds, have '-1'");
  for (const char* limit : {"0", "-1", "200000G", "half", ""}) {
    EXPECT_EQ(
        Message({"adam", absl::StrCat("--memory=", limit)}),
        absl::StrCat("--memory: want 1 to 140737488355328 bytes, as in 512Mi, have '", limit, "'"));
  }
  EXPECT_EQ(Message({"adam", "--json="}), "--json: want a file, have ''");
  EXPECT_EQ(Message({"adam", "--ranks"}), "want --ranks=VALUE, have --ranks; see --help");
  EXPECT_EQ(Message({"adam", "-v"}), "unknown flag -v; see --help");
  for (const auto& [flag, meant] :
       std::vector<std::pair<std::string, std::string>>{{"--nans=non", "none"},
                                                        {"--dtype=bf17", "bf16"},
                                                        {"--backend=cdua", "cuda"},
                                                        {"--search=racng", "racing"},
                                                        {"--order=rnk", "rank"},
                                                        {"--sum-rounding=onec", "once"},
                                                        {"--device=h10", "h100"},
                                                        {"-ranks", "--ranks"}}) {
    EXPECT_THAT(Message({"adam", flag}), HasSubstr(absl::StrCat("(did you mean '", meant, "'?)")))
        << flag;
  }
  EXPECT_EQ(Message({"my.coco", "--dtype=f16"}),
            "--dtype is for workloads: a file names its own types");
}

TEST(LoadSweepProgram, SaysWhatAFileIs) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/files_", getpid());
  std::filesystem::create_directory(folder);
  const auto error = [&](const std::string& name, const std::string& content) {
    if (!content.empty()) std::ofstream(absl::StrCat(folder, "/", name)) << content;
    absl::StatusOr<SweepFlags> flags = ParseSweepFlags({name}, folder);
    return std::string(LoadSweepProgram(*flags).status().message());
  };
  for (const char* name : {"step.hlo.gz", "step.hlo", "step.txt", "step.coco"})
    EXPECT_THAT(error(name, "\x1f\x8b\x08"), HasSubstr("decompress it: gunzip FILE")) << name;
  EXPECT_THAT(error("step.pb", "\n\x05step\x12"), HasSubstr("as an HloProto is"));
  EXPECT_THAT(error("step.mlir", "module @step {}"), HasSubstr("have StableHLO"));
  EXPECT_THAT(error("step.text", "module @step {}"), HasSubstr("have StableHLO"));
  EXPECT_THAT(error("stp.coco", ""), HasSubstr("cannot be read (did you mean 'step.coco'?)"));
  std::filesystem::remove_all(folder);
}

class LoadSweepProgramTest : public ::testing::Test {
 protected:
  absl::StatusOr<Graph> Load(const std::string& text, std::vector<std::string> args) {
    const std::string file = absl::StrCat(::testing::TempDir(), "/load_", getpid(), ".coco");
    std::ofstream(file) << text;
    args.insert(args.begin(), file);
    absl::StatusOr<SweepFlags> flags = ParseSweepFlags(args, "/");
    EXPECT_TRUE(flags.ok()) << flags.status();
    flags_ = *flags;
    absl::StatusOr<Graph> program = LoadSweepProgram(flags_);
    std::filesystem::remove(file);
    return program;
  }
  SweepFlags flags_;
};

constexpr char kProgram[] =
    "coconet 1\nprogram p\ninput g : f32[N, B] local\noutput s = all_reduce(sum, g)\n";

TEST_F(LoadSweepProgramTest, BindsSymbols) {
  EXPECT_TRUE(Load(kProgram, {"--N=3", "--B=4"}).ok());
  ASSERT_TRUE(Load(kProgram, {"--B=4"}).ok());
  EXPECT_EQ(flags_.sizes, (Sizes{{"N", 1048576}, {"B", 4}})) << "N has a default";
  EXPECT_EQ(Load(kProgram, {}).status().message(),
            "want --B=SIZE: a symbol of the program without a value");
  EXPECT_EQ(Load(kProgram, {"--B=4", "--M=4"}).status().message(),
            "--M: no flag, and no symbol of the program; its symbols are B, N");
}

TEST_F(LoadSweepProgramTest, BindsWeightsAndSymbolsOfConstants) {
  const std::string program =
      "coconet 1\ninput g : f32[9] sliced(0, by L)\noutput s = g * count(f32, [M])\n";
  EXPECT_TRUE(Load(program, {"--L=3,0", "--M=4"}).ok());
  EXPECT_EQ(Load(program, {"--M=4"}).status().message(),
            "want --L=SIZE: a symbol of the program without a value");
  EXPECT_EQ(Load(program, {"--L=3,0"}).status().message(),
            "want --M=SIZE: a symbol of the program without a value");
}

TEST_F(LoadSweepProgramTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(
      std::string(Load("coconet 1\nprogram p\ninput g : f32[3] local\noutput s = foo(g)\n", {})
                      .status()
                      .message()),
      HasSubstr("line 4"));
  SweepFlags flags;
  flags.program = "/nowhere.coco";
  flags.is_file = true;
  EXPECT_EQ(LoadSweepProgram(flags).status(), absl::NotFoundError("/nowhere.coco: cannot be read"));
  flags.program = ::testing::TempDir();
  EXPECT_THAT(std::string(LoadSweepProgram(flags).status().message()), HasSubstr("cannot be read"));
}

TEST(LoadSweepProgram, SizesShapeATrainingStep) {
  const auto load = [](std::vector<std::string> args, SweepFlags& flags) {
    const absl::StatusOr<SweepFlags> parsed = ParseSweepFlags(args, "/");
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    flags = *parsed;
    return LoadSweepProgram(flags);
  };
  SweepFlags flags;
  const absl::StatusOr<Graph> one = load({"gpt_step", "--layers=1", "--width=16"}, flags);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(flags.sizes.empty());
  EXPECT_EQ(flags.built_with.at("layers"), BoundSize(1));
  EXPECT_EQ(flags.built_with.at("heads"), BoundSize(4)) << "of the preset";
  EXPECT_GT(load({"gpt_step"}, flags)->size(), one->size());
  EXPECT_THAT(std::string(load({"gpt_step", "--layer=1"}, flags).status().message()),
              HasSubstr("no size 'layer' (did you mean 'layers'?)"));
  EXPECT_THAT(std::string(load({"mlp_step", "--layers=1,2"}, flags).status().message()),
              HasSubstr("want one number for layers, have 1,2"));
  EXPECT_THAT(std::string(load({"gpt_stp"}, flags).status().message()),
              HasSubstr("did you mean 'gpt_step'?"));
  EXPECT_THAT(std::string(load({"gpt_step", "--preset=gpt3"}, flags).status().message()),
              HasSubstr("has no preset 'gpt3' (did you mean 'gpt2'?)"));
}

TEST(LoadSweepProgram, UnknownWorkloadsAreNamed) {
  absl::StatusOr<SweepFlags> flags = ParseSweepFlags({"adm"}, "/");
  EXPECT_THAT(std::string(LoadSweepProgram(*flags).status().message()),
              HasSubstr("did you mean 'adam'?"));
}

TEST(ParseSweepFlags, TakesOneScheduleAndConfig) {
  const absl::StatusOr<SweepFlags> flags =
      ParseSweepFlags({"adam", "--schedule=RS; fuse(C); AG p", "--config=vec=4 threads=512"}, "/");
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->choice.schedule, "RS; fuse(C); AG p");
  EXPECT_EQ(flags->choice.config, "vec=4 threads=512");
  EXPECT_EQ(Message({"adam", "--schedule="}), "--schedule: want a text, or * for all, have ''");
  EXPECT_EQ(Message({"adam", "--schedule=AR", "--only=AR"}),
            "want --only, or --schedule and --config, not both");
  EXPECT_EQ(Message({"adam", "--config=vec=4", "--plan-only"}),
            "--config: --plan-only does not heed it; leave one of the two out");
  EXPECT_EQ(Message({"adam", "--all", "--plan-only"}),
            "--all: --plan-only does not heed it; leave one of the two out");
  for (const char* of_plans : {"--device=h100", "--link=5", "--trace=file"}) {
    EXPECT_THAT(Message({"adam", of_plans}), HasSubstr("want --plan-only, too"));
    EXPECT_TRUE(ParseSweepFlags({"adam", of_plans, "--plan-only"}, "/").ok());
  }
}

TEST(IsSweepFlag, TellsFlagsFromSymbols) {
  EXPECT_TRUE(IsSweepFlag("budget"));
  EXPECT_FALSE(IsSweepFlag("N"));
  EXPECT_FALSE(IsSweepFlag("K"));
}

TEST(CheckWritable, AsksForFilesThatAreNamed) {
  EXPECT_TRUE(CheckWritable("--json", "").ok());
  const std::string file = testing::TempDir() + "/rows.json";
  std::ofstream(file) << "[]";
  EXPECT_TRUE(CheckWritable("--json", file).ok());
  std::string kept;
  std::ifstream(file) >> kept;
  EXPECT_EQ(kept, "[]");
  EXPECT_EQ(CheckWritable("--json", "/nowhere/x.json"),
            absl::FailedPreconditionError("--json: cannot write /nowhere/x.json"));
}

}  // namespace
}  // namespace coconet
