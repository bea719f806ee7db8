#include "runtime/host/module.h"

#include <fstream>
#include <iterator>

#include "coconet/base/bundle.h"
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

TEST(HostModule, LoadsBundles) {
  std::ifstream file(kPath, std::ios::binary);
  const std::string object(std::istreambuf_iterator<char>(file), {});
  ASSERT_FALSE(object.empty());
  const std::string path = testing::TempDir() + "/kernels.bundle";
  const auto write = [&](const std::string& content) { std::ofstream(path) << content; };
  write(PackBundle({{{"other,store_block", object}, {"one_more", object}}}) + "a digest");
  const absl::StatusOr<std::unique_ptr<Module>> module = LoadHostModule(path);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_TRUE((*module)->Symbol("store_block").ok());
  EXPECT_TRUE(absl::IsNotFound((*module)->Symbol("other").status()));
  EXPECT_TRUE(absl::IsNotFound((*module)->Symbol("").status()));
  write(PackBundle({{{"store_block", object}}}).substr(0, object.size()));
  EXPECT_TRUE(absl::IsDataLoss(LoadHostModule(path).status()));
  write(PackBundle({{{"store_block", "no object"}}}));
  EXPECT_TRUE(absl::IsNotFound(LoadHostModule(path).status()));
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
