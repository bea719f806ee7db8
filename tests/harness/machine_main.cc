// main of tests that run on the machine which COCONET_TEST_BACKEND names.

#include <cstdio>
#include <string>

#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  const absl::Status machine = coconet::MachineOfTests().status();
  if (!machine.ok()) {
    std::printf("%s: %s\n", absl::IsUnavailable(machine) ? "skipped" : "failed",
                std::string(machine.message()).c_str());
    return absl::IsUnavailable(machine) ? 0 : 2;
  }
  return RUN_ALL_TESTS();
}
