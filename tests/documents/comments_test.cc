// Reads every comment and docstring of the tree: none begins with a word that leaves its subject or
// its verb out.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// The words that no line of a comment begins with.
constexpr absl::string_view kWords[] = {"Of", "Those", "Likewise"};

/// What follows the first `mark` on a line outside of literals; none without a mark. A literal is
/// taken to end on its line.
std::optional<absl::string_view> AfterMark(absl::string_view line, absl::string_view mark) {
  char quote = 0;  // that of the literal around `i`; 0: none
  for (size_t i = 0; i < line.size(); ++i) {
    const bool separates_digits = i > 0 && line[i] == '\'' && absl::ascii_isalnum(line[i - 1]);
    if (quote != 0) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == quote)
        quote = 0;
    } else if (line[i] == '"' || (line[i] == '\'' && !separates_digits)) {
      quote = line[i];
    } else if (absl::StartsWith(line.substr(i), mark)) {
      return line.substr(i + mark.size());
    }
  }
  return std::nullopt;
}

/// The text of the comment on a line of C++, without its marks; "" if it has none.
absl::string_view CommentInCpp(absl::string_view line) {
  absl::string_view text = AfterMark(line, "//").value_or("");
  absl::ConsumePrefix(&text, "/");
  absl::ConsumePrefix(&text, "<");
  return absl::StripAsciiWhitespace(text);
}

/// The text of the comment, or of the docstring that begins, on a line of Python; "" if it has
/// none.
absl::string_view CommentInPython(absl::string_view line) {
  absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&text, "\"\"\"")) text = AfterMark(line, "#").value_or("");
  absl::ConsumePrefix(&text, ":");
  return absl::StripAsciiWhitespace(text);
}

/// Whether a comment's text begins with one of kWords.
bool IsRiddle(absl::string_view comment) {
  return std::any_of(std::begin(kWords), std::end(kWords), [&](absl::string_view word) {
    absl::string_view rest = comment;
    return absl::ConsumePrefix(&rest, word) &&
           (rest.empty() || absl::StrContains(" ,.:;", rest.substr(0, 1)));
  });
}

/// The checkout: where this file's link leads to.
std::filesystem::path Root() {
  return std::filesystem::canonical("tests/documents/comments_test.cc")
      .parent_path()
      .parent_path()
      .parent_path();
}

bool IsPython(const std::filesystem::path& file) { return file.extension() == ".py"; }

/// Paths of all sources in C++ and Python, from the root, sorted.
std::vector<std::filesystem::path> Sources() {
  std::vector<std::filesystem::path> sources;
  for (const char* folder : {"autotune", "bench", "coconet", "examples", "jit", "python", "runtime",
                             "tests", "third_party"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Root() / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".cc" || extension == ".h" || extension == ".inc" || extension == ".py")
        sources.push_back(entry.path().lexically_relative(Root()));
    }
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

TEST(Comments, NameTheirSubject) {
  int64_t comments = 0, count = 0;
  std::string riddles;
  for (const std::filesystem::path& path : Sources()) {
    std::ifstream file(Root() / path);
    int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const absl::string_view comment = IsPython(path) ? CommentInPython(line) : CommentInCpp(line);
      comments += !comment.empty();
      if (!IsRiddle(comment)) continue;
      ++count;
      absl::StrAppend(&riddles, path.string(), ":", number, ": ", comment, "\n");
    }
  }
  EXPECT_EQ(count, 0) << riddles << "say what is returned, held or done";
  EXPECT_GT(comments, 10000) << "the tree was not found under " << Root();
}

TEST(Comments, RiddlesAreFound) {
  for (absl::string_view line :
       {"/// Of a rank: its cores.", "  // Those of a group.", "int a = 0;  // Likewise.",
        "  int b;  ///< Of a block, its threads.", "f(\"a\", '\"');  // Of", "//Of the node",
        "int a = 1'000;  // Likewise, but for b"})
    EXPECT_TRUE(IsRiddle(CommentInCpp(line))) << line;
  for (absl::string_view line : {"\"\"\"Of the next step.\"\"\"", "    # Those of a group",
                                 "    #: Of the whole tensor.", "a = 'x'  # Likewise"})
    EXPECT_TRUE(IsRiddle(CommentInPython(line))) << line;
}

TEST(Comments, SentencesAndCodeAreNoRiddles) {
  for (absl::string_view line :
       {"/// The cores of a rank.", "// Offsets of groups.", "// Of<&Dropout::rate>(form)",
        "Of(\"// Of a literal\");", "auto Of = 'x';", "const Index big = 1'000;  // of a rank", ""})
    EXPECT_FALSE(IsRiddle(CommentInCpp(line))) << line;
  for (absl::string_view line : {"\"\"\"Offsets of groups.\"\"\"", "# The group", "Of = '# Of a'"})
    EXPECT_FALSE(IsRiddle(CommentInPython(line))) << line;
}

}  // namespace
}  // namespace coconet
