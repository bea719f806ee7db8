#include "autotune/store/phases.h"

#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr auto kShort = std::chrono::milliseconds(20);

TEST(Phases, CountEachMomentOnce) {
  const auto begin = std::chrono::steady_clock::now();
  Phases phases;
  {
    const Phases::Part verify(&phases, Phase::kVerifySmall);
    std::this_thread::sleep_for(kShort);
    {
      const Phases::Part bind(&phases, Phase::kBind);
      std::this_thread::sleep_for(kShort);
    }
    std::this_thread::sleep_for(kShort);
  }
  const PhaseSeconds seconds = phases.Seconds();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  double sum = 0;
  for (double s : seconds) sum += s;
  EXPECT_LE(sum, all.count());
  EXPECT_GE(seconds[static_cast<size_t>(Phase::kVerifySmall)], 0.04);
  EXPECT_GE(seconds[static_cast<size_t>(Phase::kBind)], 0.02);
  EXPECT_EQ(seconds[static_cast<size_t>(Phase::kTime)], 0);
}

TEST(Phases, CountNothingIfNoPhasesAreGiven) {
  const Phases::Part part(nullptr, Phase::kTime);  // must not crash
}

TEST(Phases, AreShownWhereTheyTookLong) {
  PhaseSeconds seconds{};
  seconds[static_cast<size_t>(Phase::kOther)] = 0.5;
  seconds[static_cast<size_t>(Phase::kCompile)] = 3.14159;
  seconds[static_cast<size_t>(Phase::kBind)] = 0.001;
  EXPECT_EQ(Text(seconds), "compile 3.14 s, other 0.50 s");
}

TEST(Phases, HaveNamesOfTheirOwn) {
  std::set<absl::string_view> names;
  for (size_t phase = 0; phase < kPhases; ++phase)
    EXPECT_TRUE(names.insert(Name(static_cast<Phase>(phase))).second);
}

}  // namespace
}  // namespace coconet
