#include "coconet/base/nearest.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(DidYouMean, NamesTheNearest) {
  EXPECT_EQ(DidYouMean("sqroot", {"add", "sqrt", "sub"}), " (did you mean 'sqrt'?)");
  EXPECT_EQ(DidYouMean("Adam", {"sgd", "adam", "adamw"}), " (did you mean 'adam'?)");
  EXPECT_EQ(DidYouMean("bd", {"ad", "be"}), " (did you mean 'ad'?)");
}

TEST(DidYouMean, IsSilentAboutWordsFarAway) {
  EXPECT_EQ(DidYouMean("convolution", {"add", "sqrt"}), "");
  EXPECT_EQ(DidYouMean("x", {"y"}), "");
  EXPECT_EQ(DidYouMean("", {"add"}), "");
  EXPECT_EQ(DidYouMean("add", {}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'a'), {"a"}), "");
}

TEST(NearestTo, OrdersByDistanceThenByPlace) {
  const std::vector<std::string> known = {"fuse(C)", "AR", "fuse(RS, C)", "fuse(AR)"};
  EXPECT_EQ(NearestTo("fuse(AR)", known, 2), (std::vector<size_t>{3, 0}));
  EXPECT_EQ(NearestTo("AR", {"RA", "R", "A"}, 9), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(NearestTo("AR", {}, 3), std::vector<size_t>());
  EXPECT_EQ(NearestTo(std::string(100000, 'a'), {std::string(100000, 'a'), "b"}, 1),
            std::vector<size_t>{0});
}

}  // namespace
}  // namespace coconet
