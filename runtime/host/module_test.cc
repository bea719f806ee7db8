#include "runtime/host/module.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

/// In a process of its own, where a file system may be mounted.
void LoadFromNoExec(const std::string& folder) {
  constexpr int kCannotMount = 77;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", folder.c_str(), "tmpfs", MS_NOEXEC, "") != 0)
    std::_Exit(kCannotMount);
  const std::string path = folder + "/kernels.so";
  std::ofstream(path, std::ios::binary) << std::ifstream(kPath, std::ios::binary).rdbuf();
  if (dlopen(path.c_str(), RTLD_NOW) != nullptr) std::_Exit(kCannotMount);
  const absl::StatusOr<std::unique_ptr<Module>> module = LoadHostModule(path);
  if (!module.ok()) std::fprintf(stderr, "%s\n", std::string(module.status().message()).c_str());
  std::_Exit(module.ok() && (*module)->Symbol("store_block").ok() ? 0 : 1);
}

TEST(HostModule, LoadsFromFileSystemsThatForbidExecution) {
  const std::string folder = testing::TempDir() + "/noexec";
  ASSERT_TRUE(mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
  const pid_t child = fork();
  if (child == 0) LoadFromNoExec(folder);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
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
