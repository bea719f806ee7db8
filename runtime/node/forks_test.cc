#include "runtime/node/forks.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "coconet/base/descriptor.h"
#include "gtest/gtest.h"
#include "runtime/node/memory.h"

namespace coconet {
namespace {

constexpr int64_t kBytes = 3 << 20;

std::shared_ptr<Region> MapShared(int64_t bytes) {
  const Descriptor file(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), Region::Rounded(bytes)), 0);
  return *Region::Map(bytes, file.get());
}

int* Numbers(const Region& region) { return static_cast<int*>(region.base()); }

/// Runs `child` in a child, which waits until `parent` is done here.
bool InAChild(const std::function<bool()>& child, const std::function<void()>& parent = [] {}) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  Descriptor reading(ends[0]), writing(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    writing.Close();
    char byte = 0;
    const bool began = read(reading.get(), &byte, 1) == 0;
    _exit(began && child() ? 0 : 1);
  }
  parent();
  writing.Close();
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Forks, ParentAndChildSeeNothingOfEachOther) {
  const std::shared_ptr<Region> region = MapShared(kBytes);
  CopyInChildren(Numbers(*region) + 5);
  const int64_t last = kBytes / static_cast<int64_t>(sizeof(int)) - 1;
  int* const numbers = Numbers(*region);
  numbers[0] = numbers[last] = 1;
  EXPECT_TRUE(InAChild(
      [&] {
        const bool is_old = numbers[0] == 1 && numbers[last] == 1;
        numbers[0] = 2;
        return is_old && InAChild([&] { return numbers[0] == 2; });
      },
      [&] { numbers[last] = 3; }));
  EXPECT_EQ(numbers[0], 1);
  EXPECT_TRUE(InAChild([&] { return numbers[last] == 3; }));
}

TEST(Forks, ChildrenHaveTheContentOfTheirFork) {
  const std::shared_ptr<Region> region = MapShared(kBytes);
  CopyInChildren(region->base());
  int* const numbers = Numbers(*region);
  for (int i = 0; i < 4; ++i) {
    numbers[7] = i / 2;  // every second one shares the copy of the one before
    EXPECT_TRUE(InAChild([&] { return numbers[7]++ == i / 2; }));
    if (i == 2) DropForkCopies();
  }
}

TEST(Forks, OtherMemoryIsLeftAlone) {
  const std::shared_ptr<Region> shared = MapShared(100);
  absl::StatusOr<std::shared_ptr<Region>> own = Region::Map(100, -1);
  ASSERT_TRUE(own.ok()) << own.status();
  CopyInChildren((*own)->base());
  EXPECT_TRUE(InAChild([&] {
    *Numbers(*shared) = 2;
    return true;
  }));
  EXPECT_EQ(*Numbers(*shared), 2);
}

TEST(Forks, NothingIsLeftOfMemoryThatWasFreed) {
  const void* base = nullptr;
  {
    const std::shared_ptr<Region> region = MapShared(100);
    CopyInChildren(base = region->base());
  }
  CopyInChildren(base);
  EXPECT_TRUE(InAChild([] { return true; }));
}

}  // namespace
}  // namespace coconet
