// Reads every document of the tree and holds it against the tree: the files, labels and links that
// it names exist.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// The checkout: where this file's link leads to.
fs::path Root() {
  return fs::canonical("tests/documents/documents_test.cc")
      .parent_path()
      .parent_path()
      .parent_path();
}

/// The contents of a file; "" where it cannot be read.
std::string Contents(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Paths of all documents, from the root, sorted.
std::vector<std::string> Documents() {
  std::vector<std::string> documents = {"README.md"};
  for (const char* folder : {"bench", "docs", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(Root() / folder)) {
      if (entry.path().extension() == ".md")
        documents.push_back(entry.path().lexically_relative(Root()));
    }
  }
  std::sort(documents.begin(), documents.end());
  return documents;
}

/// What group 1 of the pattern is, wherever it matches.
std::vector<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

/// Files and folders from the root: "coconet/ir/op.h", "runtime/simt". Files that kernels include
/// by another name are left out.
std::vector<std::string> PathsIn(const std::string& text) {
  std::vector<std::string> paths =
      Matches(text,
              "(?:^|[^A-Za-z0-9_./@-])((?:autotune|bench|coconet|docs|examples|jit|runtime|tests|"
              "third_party)/[A-Za-z0-9_./-]*[A-Za-z0-9_])");
  std::erase(paths, "coconet/kernel.h");
  return paths;
}

/// "//coconet/ir", "//tests:layering_test"; what ends with "..." is none.
std::vector<std::string> LabelsIn(const std::string& text) {
  std::vector<std::string> labels =
      Matches(text, "(//(?:[a-z_][a-z0-9_/]*)?(?::[A-Za-z0-9_.-]*[A-Za-z0-9_])?(?:\\.\\.\\.)?)");
  std::erase_if(labels, [](const std::string& label) {
    return label.size() == 2 || absl::EndsWith(label, "...");
  });
  return labels;
}

/// Targets of links, without what lies outside of the tree.
std::vector<std::string> LinksIn(const std::string& text) {
  std::vector<std::string> links = Matches(text, "\\]\\(([^)]*)\\)");
  std::erase_if(links, [](const std::string& link) { return absl::StrContains(link, "://"); });
  return links;
}

/// The text that names a package's targets: its BUILD file and the macros that this loads.
std::string TargetsText(const std::string& package) {
  std::string text = Contents(Root() / package / "BUILD.bazel");
  for (const std::string& label : Matches(text, "load\\(\"//([^\"]*)\""))
    text += Contents(Root() / absl::StrReplaceAll(label, {{":", "/"}}));
  return text;
}

/// Whether the package has the target. Macros may number targets: "long_%d".
bool IsTarget(const std::string& label) {
  const size_t colon = label.find(':');
  const std::string package = label.substr(2, colon - 2);
  const std::string name =
      colon != std::string::npos ? label.substr(colon + 1) : package.substr(package.rfind('/') + 1);
  const std::string numbered = std::regex_replace(name, std::regex("[0-9]+$"), "%d");
  const std::string text = TargetsText(package);
  return absl::StrContains(text, absl::StrCat("\"", name, "\"")) ||
         absl::StrContains(text, absl::StrCat("\"", numbered, "\""));
}

/// As GitHub writes a heading's anchor: "How it is tested" is "how-it-is-tested".
std::string Anchor(absl::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    if (absl::ascii_isalnum(c) || c == '_' || c == '-') anchor += absl::ascii_tolower(c);
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

bool HasHeading(const fs::path& document, const std::string& anchor) {
  for (const std::string& heading : Matches(Contents(document), "(?:^|\n)#+ ([^\n]*)")) {
    if (Anchor(heading) == anchor) return true;
  }
  return false;
}

/// Whether a link of `document` leads somewhere.
bool Leads(const fs::path& document, const std::string& link) {
  const size_t hash = link.find('#');
  const std::string file = link.substr(0, hash);
  const fs::path target = file.empty() ? document : document.parent_path() / file;
  if (!fs::exists(target)) return false;
  return hash == std::string::npos || HasHeading(target, link.substr(hash + 1));
}

TEST(Documents, NameFilesThatExist) {
  size_t named = 0;
  for (const std::string& document : Documents()) {
    for (const std::string& path : PathsIn(Contents(Root() / document))) {
      ++named;
      EXPECT_TRUE(fs::exists(Root() / path)) << document << " names " << path;
    }
  }
  EXPECT_GT(named, 50u) << "the tree was not found under " << Root();
}

TEST(Documents, NameLabelsThatExist) {
  size_t named = 0;
  for (const std::string& document : Documents()) {
    for (const std::string& label : LabelsIn(Contents(Root() / document))) {
      ++named;
      EXPECT_TRUE(IsTarget(label)) << document << " names " << label;
    }
  }
  EXPECT_GT(named, 20u) << "the tree was not found under " << Root();
}

TEST(Documents, LinkToWhatExists) {
  size_t links = 0;
  for (const std::string& document : Documents()) {
    for (const std::string& link : LinksIn(Contents(Root() / document))) {
      ++links;
      EXPECT_TRUE(Leads(Root() / document, link)) << document << " links to " << link;
    }
  }
  EXPECT_GT(links, 20u) << "the tree was not found under " << Root();
}

TEST(Documents, FindsWhatIsNotThere) {
  EXPECT_EQ(PathsIn("see `coconet/ir/op.h`, runtime/simt. And bazel-bin/autotune/sweep"),
            (std::vector<std::string>{"coconet/ir/op.h", "runtime/simt"}));
  EXPECT_EQ(LabelsIn("`//tests:layering_test`, bazel test //... and //coconet/ir; // a remark"),
            (std::vector<std::string>{"//tests:layering_test", "//coconet/ir"}));
  EXPECT_EQ(LinksIn("[a](b.md#c), [d](https://example.com)"), (std::vector<std::string>{"b.md#c"}));
  EXPECT_TRUE(IsTarget("//tests:layering_test"));
  EXPECT_FALSE(IsTarget("//tests:no_such_test"));
  EXPECT_FALSE(Leads(Root() / "README.md", "docs/no_such_page.md"));
  EXPECT_FALSE(Leads(Root() / "README.md", "docs/schedules.md#no-such-heading"));
  EXPECT_TRUE(Leads(Root() / "README.md", "docs/schedules.md#how-it-is-tested"));
}

}  // namespace
}  // namespace coconet
