// What users are shown, examples and the reference of the language, is what the library takes.
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/ir/graph.h"
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

}  // namespace
}  // namespace coconet
