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

}  // namespace
}  // namespace coconet
