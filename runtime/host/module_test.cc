#include "runtime/host/module.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/kernel_abi.h"

namespace coconet {
namespace {

constexpr char kPath[] = "runtime/host/module_for_test.so";

TEST(HostModule, FindsAndRunsItsKernels) {
  absl::StatusOr<std::unique_ptr<Module>> module = LoadHostModule(kPath);
  ASSERT_TRUE(module.ok()) << module.status();
  absl::StatusOr<void*> kernel = (*module)->Symbol("store_block");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  int64_t found = 0;
  const Word params[] = {reinterpret_cast<Word>(&found)};
  reinterpret_cast<HostKernel>(*kernel)(params, 3, 5);
  EXPECT_EQ(found, 305);
}

TEST(HostModule, SaysWhatIsMissing) {
  absl::StatusOr<std::unique_ptr<Module>> module = LoadHostModule(kPath);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->Symbol("other").status(),
            absl::NotFoundError("module runtime/host/module_for_test.so has no kernel \"other\""));
  const absl::Status missing = LoadHostModule("/no/such.so").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr("/no/such.so"));
}

}  // namespace
}  // namespace coconet
