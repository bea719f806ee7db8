// What users are shown, examples and the reference of the language, is what the library takes.
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::string Contents(const std::string& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream.good()) << file;
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Documented, ExamplesParseAndBind) {
  for (const auto& [file, sizes] : {std::pair<const char*, Sizes>{"adam", {{"N", 1000}}},
                                    {"adamw_mixed", {{"N", 1000}}},
                                    {"clip_example", {{"N", {1000, 7}}}},
                                    {"muon", {{"R", {8, 5}}, {"C", 9}, {"W", {3, 2}}}},
                                    {"regression", {{"B", 7}, {"K", 5}}},
                                    {"sgd_momentum", {{"M", 10}, {"N", 100}}}}) {
    absl::StatusOr<Graph> g = Parse(Contents(absl::StrCat("examples/", file, ".coco")));
    ASSERT_TRUE(g.ok()) << file << ": " << g.status();
    EXPECT_EQ(g->name, file);
    absl::StatusOr<Graph> bound = BindSizes(*g, sizes);
    EXPECT_TRUE(bound.ok()) << file << ": " << bound.status();
  }
}

TEST(Documented, TheReferencesProgramParses) {
  const std::string reference = Contents("docs/language.md");
  const size_t begin = reference.find("coconet 1\n");
  ASSERT_NE(begin, std::string::npos);
  absl::StatusOr<Graph> g = Parse(reference.substr(begin, reference.find("```", begin) - begin));
  EXPECT_TRUE(g.ok()) << g.status();
}

TEST(Documented, TheReferenceListsEveryFunctionAndDType) {
  const std::string reference = Contents("docs/language.md");
  // Rows of the table of functions, each starting with its names in backquotes.
  const size_t begin = reference.find("| functions | operands |");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = reference.substr(begin, reference.find("\n\n", begin) - begin);
  for (const PwInfo& info : AllPointwise()) {
    bool listed = false;
    for (absl::string_view end : {" ", "`", "("}) {
      for (absl::string_view start : {"`", " "}) {
        listed |= table.find(absl::StrCat(start, info.name, end)) != std::string::npos;
      }
    }
    EXPECT_TRUE(listed) << info.name;
  }
  for (DType dtype : kAllDTypes) {
    EXPECT_NE(reference.find(absl::StrCat("\"", Name(dtype), "\"")), std::string::npos)
        << Name(dtype);
  }
}

/// The words in front of a parenthesis that are operations, but no elementwise functions.
std::set<std::string> Operations() {
  const std::string known(Parse("coconet 1\noutput y = nothing()\n").status().message());
  const std::vector<std::string> names =
      absl::StrSplit(known.substr(known.find("operations are ") + 15), ", ");
  std::set<std::string> operations(names.begin(), names.end());
  for (const PwInfo& info : AllPointwise()) operations.erase(std::string(info.name));
  return operations;
}

/// What `pattern` captures in a text, wherever it matches.
std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

TEST(Documented, TheGrammarHasEveryOperation) {
  const std::string reference = Contents("docs/language.md");
  const size_t begin = reference.find("\ncall        = "), end = reference.find("\nkind        = ");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos);
  std::set<std::string> words;
  for (const std::string& of_one : Matches(reference.substr(begin, end - begin),
                                           "\n[a-z ]*[=|] ([^(]*|\\([^(]*\\)) ?\"\\(\"")) {
    words.merge(Matches(of_one, "\"(\\w+)\""));
  }
  EXPECT_EQ(words, Operations());
}

TEST(Documented, TheReferenceListsEveryOperation) {
  const std::string reference = Contents("docs/language.md");
  for (const std::string& name : Operations())
    EXPECT_NE(reference.find(absl::StrCat("`", name, "(")), std::string::npos) << name;
}

TEST(Documented, PythonHasEveryOperation) {
  std::set<std::string> words =
      Matches(Contents("python/coconet/words.py"), "\ndef ([a-z]\\w*)\\(");
  std::set<std::string> operations = Operations();
  // Programs update states, and `coconet.world` has the dtype of what it meets.
  EXPECT_EQ(operations.erase("update") + operations.erase("world") + words.erase("world_as"), 3);
  EXPECT_EQ(words, operations);
}

}  // namespace
}  // namespace coconet
