#include "coconet/base/bundle.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using Parts = std::vector<std::pair<std::string, std::string>>;

Parts Unpacked(absl::string_view bundle) {
  Parts parts;
  const auto unpacked = UnpackBundle(bundle);
  EXPECT_TRUE(unpacked.ok()) << unpacked.status();
  if (unpacked.ok())
    for (const auto& [name, content] : *unpacked) parts.emplace_back(name, content);
  return parts;
}

TEST(Bundle, GivesBackWhatItGot) {
  const std::string zeros(3, '\0');
  for (const Parts& parts :
       {Parts{}, Parts{{"a", ""}}, Parts{{"k_1", "one\n\ntwo"}, {"k_2", zeros}},
        Parts{{"a", "\n"}, {"b", ""}, {"c", "x y 3\n"}}}) {
    const std::string bundle = PackBundle(parts);
    EXPECT_TRUE(IsBundle(bundle));
    EXPECT_EQ(Unpacked(bundle), parts);
    EXPECT_EQ(Unpacked(bundle + "a digest"), parts);
  }
}

TEST(Bundle, SaysThatItIsCutOff) {
  const std::string bundle = PackBundle({{{"k_1", "one"}, {"k_2", "two"}}});
  for (size_t bytes = 0; bytes < bundle.size(); ++bytes)
    EXPECT_TRUE(absl::IsDataLoss(UnpackBundle(bundle.substr(0, bytes)).status())) << bytes;
  EXPECT_FALSE(IsBundle("\177ELF"));
  EXPECT_TRUE(absl::IsDataLoss(UnpackBundle("coconet bundle 1\nk_1 -1\n\nx").status()));
  EXPECT_TRUE(
      absl::IsDataLoss(UnpackBundle("coconet bundle 1\nk_1 99999999999999999999\n\nx").status()));
}

}  // namespace
}  // namespace coconet
