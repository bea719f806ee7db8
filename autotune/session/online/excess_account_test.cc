#include "autotune/session/online/excess_account.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(ExcessAccount, AdmitsAsMuchAsFitsInAnEmptyWindow) {
  const ExcessAccount account(100, 5);
  EXPECT_EQ(account.Place(7, {{2, 3}}), 7);
  EXPECT_EQ(account.Place(7, {{2, 3.1}}), ExcessAccount::kNever);
  EXPECT_EQ(account.Place(7, std::vector<double>(101, 0.01)), ExcessAccount::kNever);
}

TEST(ExcessAccount, DefersWhatDoesNotFitBesideEarlierCalls) {
  ExcessAccount account(100, 5);
  account.Reserve(10, 3);
  account.Reserve(20, 1.5);
  EXPECT_EQ(account.Place(30, {{0.5}}), 30);
  EXPECT_EQ(account.Place(30, {{0.25, 0.5}}), 110) << "until call 10 has left the window";
  EXPECT_EQ(account.Place(30, {{4}}), 120);
}

TEST(ExcessAccount, CountsWhatWasMeasuredInPlaceOfTheMost) {
  ExcessAccount account(100, 5);
  account.Reserve(10, 3);
  account.Charge(10, 0.5);
  EXPECT_EQ(account.Place(11, {{4.5}}), 11);
  account.Charge(10, 40);
  EXPECT_EQ(account.Place(11, {{0.1}}), 110) << "more than its most: no other call is begun";
}

TEST(ExcessAccount, ForgetsWhatIsInNoLaterWindow) {
  ExcessAccount account(100, 5);
  account.Reserve(10, 5);
  account.Forget(109);
  EXPECT_EQ(account.Place(109, {{1}}), 110);
  account.Forget(110);
  EXPECT_EQ(account.Place(110, {{1}}), 110);
}

TEST(ExcessAccount, ScalesToOtherSteps) {
  ExcessAccount account(100, 5);
  account.Reserve(10, 2);
  account.Scale(2);
  EXPECT_EQ(account.Place(11, {{1}}), 11);
  EXPECT_EQ(account.Place(11, {{1.5}}), 110);
}

TEST(ExcessAccount, KeepsTheBoundInAnyWindowWhateverCallsTakeUpToTheirMost) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform;
    ExcessAccount account(100, 5);
    std::vector<double> excess(20'000);
    int64_t call = 1;
    while (call < 15'000) {
      std::vector<double> most(1 + random() % 6);
      for (double& one : most) one = uniform(random) < 0.3 ? 0 : 5 * uniform(random);
      account.Forget(call);
      const int64_t begin = account.Place(call + static_cast<int64_t>(random() % 3), most);
      if (begin == ExcessAccount::kNever) continue;
      for (size_t i = 0; i < most.size(); ++i) {
        call = begin + static_cast<int64_t>(i);
        account.Reserve(call, most[i]);
        excess[call] = random() % 2 == 0 ? most[i] : most[i] * uniform(random);
        account.Charge(call, excess[call]);
      }
      ++call;
    }
    double window = 0, worst = 0;
    for (size_t i = 0; i < excess.size(); ++i) {
      window += excess[i];
      if (i >= 100) window -= excess[i - 100];
      worst = std::max(worst, window);
    }
    EXPECT_LE(worst, 5 + 2e-9) << "seed " << seed;
    EXPECT_GT(worst, 4) << "the allowance is used, seed " << seed;
  }
}

}  // namespace
}  // namespace coconet
