#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

/// The one command, as a user starts it, with a cache of its own.
class CoconetTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("coconet_test_", getpid());
    fs::create_directories(root_ / "work");
    setenv("COCONET_CACHE_DIR", (root_ / "cache").c_str(), 1);
    setenv("BUILD_WORKING_DIRECTORY", (root_ / "work").c_str(), 1);
    program_ = fs::absolute("autotune/coconet");
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  static Ended Run(std::vector<std::string> args) {
    args.insert(args.begin(), program_);
    return RunCommand(std::move(args));
  }
  static fs::path root_, program_;
};
fs::path CoconetTest::root_, CoconetTest::program_;

TEST_F(CoconetTest, KnowsItsCommands) {
  const Ended help = Run({"help"});
  EXPECT_EQ(help.code, 0) << help.err;
  for (const char* command : {"sweep", "plan", "cache", "report", "completion", "help"}) {
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat("  coconet ", command)));
    const Ended of = Run({command, "--help"});
    EXPECT_EQ(of.code, 0) << of.err;
    EXPECT_THAT(of.out, ::testing::StartsWith(
                            absl::StrCat("coconet", std::string(command) == "help" ? "" : " ",
                                         std::string(command) == "help" ? "" : command, ":")));
    EXPECT_EQ(Run({"help", command}).out, of.out);
    for (absl::string_view line : absl::StrSplit(of.out, '\n')) EXPECT_LE(line.size(), 100u);
  }
  EXPECT_EQ(Run({"--help"}).out, help.out);
  EXPECT_THAT(Run({"--version"}).out, ::testing::MatchesRegex("coconet [0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(Run({"plan", "--help"}).out, HasSubstr("--device=h100"));
  EXPECT_THAT(Run({"plan", "--help"}).out, Not(HasSubstr("--nodes=")));
  EXPECT_THAT(Run({"sweep", "--help"}).out, Not(HasSubstr("--device=")));
}

TEST_F(CoconetTest, BadInputIsOneLineAndExitCode2) {
  const struct {
    std::vector<std::string> args;
    std::string words;
  } cases[] = {
      {{"swep"},
       "coconet: want sweep, plan, cache, report, completion, help; have 'swep' (did you "
       "mean 'sweep'?)"},
      {{"--verbose"}, "have '--verbose'"},
      {{"help", "swep"}, "did you mean 'sweep'?"},
      {{"sweep", "adm"}, "coconet sweep: "},
      {{"plan", "adm"}, "coconet plan: "},
      {{"plan", "adam", "--nodes=2"}, "--nodes: a plan runs nothing and does not heed it"},
      {{"cache", "dance"}, "coconet cache: want one of list"},
      {{"completion"}, "coconet completion: want bash or zsh"},
      {{"completion", "bahs"}, "did you mean 'bash'?"},
      {{"report"}, "coconet report: there is no "},
      {{"report", "--out"}, "--out: want --out=FILE"},
      {{"report", "--oot=x"}, "did you mean '--out'?"},
      {{"report", "a", "b"}, "want one key or program, have 'a' and 'b'"},
  };
  for (const auto& [args, words] : cases) {
    const Ended ended = Run(args);
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
  }
  const Ended none = Run({});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("coconet sweep"));
}

TEST_F(CoconetTest, ReportsWhatItTuned) {
  for (const char* size : {"--N=1000", "--N=4000"}) {
    const Ended tuned = Run({"sweep", "sgd", size, "--ranks=1", "--budget=20"});
    ASSERT_EQ(tuned.code, 0) << tuned.err;
    // Nothing is cut where it is not written to a terminal.
    EXPECT_THAT(tuned.out, Not(HasSubstr("...\n")));
  }
  const Ended page = Run({"report"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("report.html: 2 records"));
  const std::string html = ReadFile(root_ / "work" / "report.html");
  EXPECT_THAT(html, HasSubstr("sgd f32[1000]"));
  EXPECT_THAT(html, HasSubstr("Time over size of sgd, 1 rank"));
  const Ended json = Run({"report", "sgd", "--json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"program\": \"sgd f32[4000]\""));
  EXPECT_EQ(Run({"report", "--json", "--out=numbers.json"}).code, 0);
  EXPECT_THAT(ReadFile(root_ / "work" / "numbers.json"), HasSubstr("\"families\": ["));
  EXPECT_THAT(Run({"report", "nothing"}).err, HasSubstr("no record of nothing in "));
  const Ended nowhere = Run({"report", "--out=no/such/folder/r.html"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--out: cannot write "));
}

TEST_F(CoconetTest, PlansAndDrawsThePlan) {
  const Ended planned =
      Run({"plan", "mlp_step", "--ranks=4", "--budget=0.2", "--report=plan.html"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("nothing was run"));
  const std::string page = ReadFile(root_ / "work" / "plan.html");
  EXPECT_THAT(page, HasSubstr("A plan of mlp_step"));
  EXPECT_THAT(page, HasSubstr(">l0<"));
}

/// Completion in a real shell.
class Completion : public CoconetTest {
 protected:
  /// What bash completes behind these words, the last of which is being typed.
  static std::vector<std::string> InBash(const std::vector<std::string>& words) {
    std::string script = absl::StrCat("source <('", program_.string(),
                                      "' completion bash) || exit 9; COMP_WORDS=(coconet");
    for (const std::string& word : words) absl::StrAppend(&script, " '", word, "'");
    absl::StrAppend(&script, "); COMP_CWORD=", words.size(),
                    "; _coconet; printf '%s\\n' \"${COMPREPLY[@]}\"");
    const Ended ended = RunCommand({"bash", "-c", script});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err, IsEmpty());
    return absl::StrSplit(ended.out, '\n', absl::SkipEmpty());
  }
};

TEST_F(Completion, OfCommandsProgramsAndFlags) {
  EXPECT_EQ(absl::StrJoin(InBash({""}), " "), "sweep plan cache report completion help");
  EXPECT_EQ(absl::StrJoin(InBash({"sw"}), " "), "sweep");
  EXPECT_EQ(absl::StrJoin(InBash({"completion", ""}), " "), "bash zsh");
  EXPECT_THAT(InBash({"sweep", "ada"}), ::testing::ElementsAre("adam", "adamw"));
  EXPECT_THAT(InBash({"plan", "gpt_"}), ::testing::ElementsAre("gpt_step"));
  EXPECT_THAT(InBash({"sweep", "adam", ""}), Not(Contains("adam"))) << "one program";
  EXPECT_THAT(InBash({"sweep", "adam", "--se"}), ::testing::ElementsAre("--search="));
  EXPECT_THAT(InBash({"plan", "adam", "--"}), Contains("--device="));
  EXPECT_THAT(InBash({"plan", "adam", "--"}), Not(Contains("--retune")));
  EXPECT_THAT(InBash({"sweep", "gpt_step", "--l"}), IsSupersetOf({"--layers=", "--list"}));
  EXPECT_THAT(InBash({"cache", ""}), IsSupersetOf({"list", "why", "predictions"}));
  EXPECT_THAT(InBash({"cache", "why", "ad"}), Contains("adam"));
  EXPECT_THAT(InBash({"cache", "--"}), IsSupersetOf({"--json", "--lift", "--cache="}));
  EXPECT_THAT(InBash({"report", "a"}), IsSupersetOf({"adam", "all"}));
  EXPECT_THAT(InBash({"report", "--o"}), ::testing::ElementsAre("--out="));
}

TEST_F(Completion, OfAllCommandsThatTheCacheNames) {
  // "coconet cache: want one of list, show, ...; see --help"
  std::string named = Run({"cache"}).err;
  named = named.substr(named.find("one of ") + 7);
  named = named.substr(0, named.find(';'));
  const std::vector<std::string> completed = InBash({"cache", ""});
  const std::vector<std::string> words = absl::StrSplit(named, ", ");
  EXPECT_GE(words.size(), 8u);
  for (const std::string& word : words) EXPECT_THAT(completed, Contains(word));
}

TEST_F(Completion, OfValues) {
  // As bash cuts words at "=", and as it does where COMP_WORDBREAKS has none.
  for (const auto& [flag, values] : std::vector<std::pair<std::string, std::string>>{
           {"--dtype", "f32 f16 bf16"},
           {"--search", "auto exhaustive racing model evolution"},
           {"--backend", "host cuda simt"},
           {"--order", "any rank"},
           {"--sum-rounding", "once each"},
           {"--nans", "possible none"}}) {
    EXPECT_EQ(absl::StrJoin(InBash({"sweep", "adam", flag, "="}), " "), values);
  }
  EXPECT_THAT(InBash({"sweep", "adam", "--dtype", "=", "b"}), ::testing::ElementsAre("bf16"));
  EXPECT_THAT(InBash({"sweep", "adam", "--dtype=b"}), ::testing::ElementsAre("--dtype=bf16"));
  EXPECT_THAT(InBash({"plan", "adam", "--device", "=", "h"}), ::testing::ElementsAre("h100"));
  EXPECT_THAT(InBash({"sweep", "moe", "--preset", "=", "mix"}), ::testing::ElementsAre("mixtral"));
  EXPECT_THAT(InBash({"sweep", "adam", "--preset", "=", "mix"}), IsEmpty()) << "of its program";
  EXPECT_THAT(InBash({"sweep", "lamb", "--N", "=", "@b"}), Contains("@bert-large"));
  std::ofstream(root_ / "work" / "mine.coco") << "x";
  const std::string mine = root_ / "work" / "mi";
  EXPECT_THAT(InBash({"sweep", mine}), ::testing::ElementsAre(mine + "ne.coco"));
  EXPECT_THAT(InBash({"cache", "list", "--cache", "=", mine}),
              ::testing::ElementsAre(mine + "ne.coco"));
}

TEST_F(Completion, InZsh) {
  if (RunCommand({"bash", "-c", "command -v zsh"}).code != 0)
    GTEST_SKIP() << "zsh is not installed: its completion is not tried";
  // A shell in a pseudoterminal, to which words and tabs are typed; it prints what it then has.
  constexpr char kScript[] = R"zsh(
zmodload zsh/zpty
zpty shell zsh -f -i
say() { zpty -w shell "$1"; }
say 'cd @ROOT@; autoload -Uz compinit; compinit -u -D; source <(@PROGRAM@ completion zsh)'
say 'typed() { print -r -- "<$BUFFER>" >>@ROOT@/typed; zle kill-whole-line; }; zle -N typed'
say 'bindkey "^T" typed'
for words in 'coconet sw' 'coconet sweep adam --dtype=b' 'coconet sweep gpt_st' \
  'coconet sweep moe --preset=mix' 'coconet cache predic'; do
  zpty -w -n shell "$words"$'\t\x14'
done
say 'exit'
for ((i = 0; i < 300; ++i)); do
  zpty -r shell line || break
done
)zsh";
  const std::string script =
      absl::StrReplaceAll(kScript, {{"@ROOT@", root_.string()}, {"@PROGRAM@", program_.string()}});
  const Ended ended = RunCommand({"zsh", "-f", "-c", script});
  EXPECT_EQ(ReadFile(root_ / "typed"),
            "<coconet sweep >\n<coconet sweep adam --dtype=bf16 >\n<coconet sweep gpt_step >\n"
            "<coconet sweep moe --preset=mixtral >\n<coconet cache predictions >\n")
      << ended.out << ended.err;
}

}  // namespace
}  // namespace coconet
