#include "autotune/prior/kept_configs.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<Config> Chunks(int count) {
  std::vector<Config> configs(count);
  for (int i = 0; i < count; ++i) configs[i].chunk = 4096 * (i + 1);
  return configs;
}

TEST(KeptConfigs, AreAllWhereTheyAreFew) {
  EXPECT_THAT(KeptConfigs(Chunks(3), std::vector<double>{9, 1, 1e9}, 3), ElementsAre(0, 1, 2));
}

TEST(KeptConfigs, AreThoseWithAShortTime) {
  EXPECT_THAT(KeptConfigs(Chunks(5), std::vector<double>{90, 10, 80, 20, 70}, 2),
              ElementsAre(1, 3));
}

TEST(KeptConfigs, HaveEachValueThatIsNotMuchSlower) {
  // 40 chunks with the library, faster by a little than the only two of generated kernels.
  std::vector<Config> configs = Chunks(42);
  configs[40].protocol = configs[41].protocol = Protocol::kGenerated;
  std::vector<double> prior_us(42, 100);
  prior_us[40] = 102;
  prior_us[41] = 1000;
  const std::vector<int> kept = KeptConfigs(configs, prior_us, 6);
  EXPECT_THAT(kept, SizeIs(6));
  EXPECT_THAT(kept, Contains(40));
  EXPECT_THAT(kept, testing::Not(Contains(41)));
}

TEST(KeptConfigs, AreTheSameForTheSameArguments) {
  const std::vector<double> equal(100, 5);
  EXPECT_EQ(KeptConfigs(Chunks(100), equal), KeptConfigs(Chunks(100), equal));
  EXPECT_THAT(KeptConfigs(Chunks(100), equal), SizeIs(kKeptConfigs));
}

}  // namespace
}  // namespace coconet
