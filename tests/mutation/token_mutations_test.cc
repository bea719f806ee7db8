#include "tests/mutation/token_mutations.h"

#include <optional>
#include <random>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kSource[] = R"(#include "coconet/kernel.h"

namespace k_0123456789abcdef_n {
using namespace coconet;
constexpr int kV = 8;
CC_KERNEL(k_0123456789abcdef) {
  if (!Enter(sync, grid)) return;
  const auto x0 = FetchAll<V>(p.b1, i);
  const auto v0 = Summed(x0);
  const auto v1 = v0 + v0;
  Store<kCached>(own0 + i, v1);
}
}  // namespace k_0123456789abcdef_n
)";

TEST(TokenMutation, ChangesOneTokenOfTheKernel) {
  std::mt19937_64 random(1);
  std::set<std::string> changed;
  for (int i = 0; i < 2000; ++i) {
    const std::optional<TokenMutation> mutation = DrawTokenMutation(kSource, random);
    ASSERT_TRUE(mutation.has_value());
    EXPECT_NE(mutation->kernel, mutation->changed) << mutation->what;
    const std::string text = WithMutation(kSource, *mutation);
    EXPECT_NE(text, kSource);
    EXPECT_TRUE(absl::StartsWith(text, "#include \"coconet/kernel.h\"\n\nnamespace k_0123456789"));
    changed.insert(text);
  }
  const auto has = [&](const std::string& line) {
    for (const std::string& text : changed) {
      if (absl::StrContains(text, line)) return true;
    }
    return false;
  };
  EXPECT_TRUE(has("kV = 9;")) << "a number one above";
  EXPECT_TRUE(has("if (Enter(sync, grid))")) << "a negation that is dropped";
  EXPECT_TRUE(has("if (!Exit(sync, grid))")) << "another name of the kind";
  EXPECT_TRUE(has("Greatest(x0)"));
  EXPECT_TRUE(has("FetchAll<V>(p.b1, (i + 1))"));
  EXPECT_TRUE(has("v0 - v0;")) << "another operator";
  EXPECT_TRUE(has("v1 + v0;")) << "another value";
  EXPECT_TRUE(has("v1 = v0 + v0;\n  ;\n}")) << "a store that is not made";
  EXPECT_FALSE(has("auto v1 = Summed")) << "what is declared keeps its name";
}

TEST(TokenMutation, LeavesOtherSourcesAsTheyAre) {
  std::mt19937_64 random(1);
  EXPECT_FALSE(DrawTokenMutation("#include \"coconet/kernel.h\"\n", random).has_value());
  const std::optional<TokenMutation> mutation = DrawTokenMutation(kSource, random);
  EXPECT_EQ(WithMutation("other", *mutation), "other");
}

}  // namespace
}  // namespace coconet
