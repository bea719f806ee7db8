#include "runtime/host/thread_world.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "runtime/host/cpu.h"
#include "runtime/testing/checks.h"

namespace coconet {
namespace {

constexpr double kTimeout = 60;

using Check = absl::Status (*)(Rank&);
struct Case {
  const char* name;
  Check check;
  int ranks;
};

class ThreadWorld : public testing::TestWithParam<Case> {};

TEST_P(ThreadWorld, Does) {
  EXPECT_EQ(RunThreadWorld(GetParam().ranks, kTimeout, true, GetParam().check), absl::OkStatus());
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (int ranks : {1, 2, 3, 4, 8}) {
    cases.push_back({"Exchange", CheckExchange, ranks});
    cases.push_back({"Collectives", CheckCollectives, ranks});
    cases.push_back({"Memory", CheckMemory, ranks});
    cases.push_back({"Plans", CheckPlans, ranks});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ThreadWorld, testing::ValuesIn(AllCases()), [](const auto& info) {
  return info.param.name + std::to_string(info.param.ranks);
});

}  // namespace
}  // namespace coconet
