#include "jit/compile/embedded_headers.h"

#include <vector>

#include "absl/strings/match.h"
#include "coconet/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Names(Dialect dialect) {
  std::vector<std::string> names;
  for (const DeviceHeader& header : DeviceHeaders(dialect)) names.push_back(header.name);
  return names;
}

absl::string_view Text(Dialect dialect, absl::string_view name) {
  for (const DeviceHeader& header : DeviceHeaders(dialect)) {
    if (header.name == name) return header.text;
  }
  return "";
}

TEST(DeviceHeaders, EachDialectHasOnePreludeOfItsOwn) {
  for (Dialect dialect : kAllDialects) {
    const std::vector<std::string> names = Names(dialect);
    EXPECT_THAT(names, Contains("coconet/kernel.h"));
    EXPECT_THAT(names, Contains("kernel_abi.h"));
    EXPECT_THAT(names, Contains("prelude.h").Times(1));
  }
  EXPECT_NE(Text(Dialect::kHost, "prelude.h"), Text(Dialect::kCuda, "prelude.h"));
  EXPECT_EQ(Text(Dialect::kSimt, "prelude.h"), Text(Dialect::kCuda, "prelude.h"));
  EXPECT_NE(Text(Dialect::kSimt, "ptx.h"), Text(Dialect::kCuda, "ptx.h"));
  EXPECT_THAT(std::string(Text(Dialect::kCuda, "ptx.h")), HasSubstr("__device__"));
  EXPECT_EQ(Text(Dialect::kHost, "kernel_abi.h"), Text(Dialect::kCuda, "kernel_abi.h"));
}

TEST(HeadersFingerprint, IsOfTheTextThatWasEmbedded) {
  for (Dialect dialect : kAllDialects)
    EXPECT_EQ(HeadersFingerprint(dialect), Fingerprint(HeadersText(dialect)).substr(0, 16));
}

TEST(DeviceHeaders, AKernelExpandsToOneTextWithoutQuotedIncludes) {
  for (Dialect dialect : kAllDialects) {
    const auto text =
        ExpandIncludes("#include \"coconet/kernel.h\"\nint kernel;\n", DeviceHeaders(dialect));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, Not(HasSubstr("#include \"")));
    EXPECT_TRUE(absl::EndsWith(*text, "#line 2 \"kernel.cc\"\nint kernel;\n"));
  }
}

const DeviceHeader kHeaders[] = {
    {"coconet/kernel.h", "#include \"prelude.h\"\nint a;\n#  include \"more.h\"  // reason\n"},
    {"prelude.h", "#include <stdint.h>\nint b;"},
    {"more.h", "#include \"prelude.h\"\nint c;\n"},
};

TEST(ExpandIncludes, IncludesEachHeaderOnceAndKeepsLineNumbers) {
  const auto text =
      ExpandIncludes("#include \"coconet/kernel.h\"\n#include \"more.h\"\nint d;\n", kHeaders);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "#line 1 \"kernel.cc\"\n"
            "#line 1 \"coconet/kernel.h\"\n"
            "#line 1 \"prelude.h\"\n"
            "#include <stdint.h>\n"
            "int b;\n"
            "#line 2 \"coconet/kernel.h\"\n"
            "int a;\n"
            "#line 1 \"more.h\"\n"
            "#line 2 \"more.h\"\n"
            "int c;\n"
            "#line 4 \"coconet/kernel.h\"\n"
            "#line 2 \"kernel.cc\"\n"
            "#line 3 \"kernel.cc\"\n"
            "int d;\n");
}

TEST(ExpandIncludes, RefusesAHeaderThatIsNotEmbedded) {
  const absl::Status status = ExpandIncludes("#include \"cuda.h\"\n", kHeaders).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "kernel.cc: #include \"cuda.h\": want one of coconet/kernel.h, prelude.h, more.h; have "
            "no such header");
}

TEST(ExpandIncludes, LeavesOtherLinesAlone) {
  const std::string source =
      "// #include \"x.h\"\n#define include \"y.h\"\nconst char* s = \"#include\";\n";
  const auto text = ExpandIncludes(source, kHeaders);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "#line 1 \"kernel.cc\"\n" + source);
}

}  // namespace
}  // namespace coconet
