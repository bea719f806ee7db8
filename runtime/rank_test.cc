#include "runtime/rank.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr uintptr_t kFar = 0x1000;  // not mapped on the host
constexpr int64_t kBytes = 100;

/// A device's memory: bytes at address kFar.
class Faraway final : public FarSpace {
 public:
  int gpu() const override { return 0; }
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override {
    if (fails) return absl::InternalError("no way there");
    ++copies;
    std::memcpy(At(to), At(const_cast<void*>(from)), static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  mutable int copies = 0;
  bool fails = false;
  mutable std::string content = std::string(kBytes, '.');

 private:
  void* At(void* address) const {
    const auto far = reinterpret_cast<uintptr_t>(address) - kFar;
    return far <= kBytes ? content.data() + far : address;
  }
};

class Bytes final : public Memory {
 public:
  Bytes(void* at, std::shared_ptr<const FarSpace> space)
      : Memory(0, kBytes, false, {at}, std::move(space)) {}
};

struct Far {
  std::shared_ptr<Faraway> space = std::make_shared<Faraway>();
  Bytes memory{reinterpret_cast<void*>(kFar), space};
};

TEST(Memory, OfADeviceIsReadAndWrittenByCopies) {
  Far far;
  ASSERT_TRUE(far.memory.Write(10, 3, "abc").ok());
  EXPECT_EQ(far.space->content.substr(9, 5), ".abc.");
  char found[2];
  ASSERT_TRUE(far.memory.Read(11, 2, found).ok());
  EXPECT_EQ(std::string(found, 2), "bc");
}

TEST(Memory, IsRepeatedWhereItLies) {
  Far far;
  std::string content(kBytes, '.');
  Bytes here(content.data(), nullptr);
  for (Memory* const memory : {static_cast<Memory*>(&far.memory), static_cast<Memory*>(&here)}) {
    ASSERT_TRUE(memory->Write(0, 3, "abc").ok());
    ASSERT_TRUE(memory->Repeat(3, 3).ok());
    char found[30];
    ASSERT_TRUE(memory->Read(0, 5, found).ok());
    EXPECT_EQ(std::string(found, 5), "abc..");
    ASSERT_TRUE(memory->Repeat(3, 29).ok());
    ASSERT_TRUE(memory->Read(0, 30, found).ok());
    EXPECT_EQ(std::string(found, 30), "abcabcabcabcabcabcabcabcabcab.");
  }
  EXPECT_EQ(far.space->copies, 7) << "one there, two back, four for 26 bytes";
  far.space->fails = true;
  EXPECT_EQ(far.memory.Repeat(3, 9), absl::InternalError("no way there"));
}

TEST(Memory, OfTheHostIsReadAndWrittenAsItIs) {
  std::string content(kBytes, '.');
  Bytes memory(content.data(), nullptr);
  ASSERT_TRUE(memory.Write(10, 3, "abc").ok());
  EXPECT_EQ(content.substr(9, 5), ".abc.");
  ASSERT_TRUE(memory.Write(kBytes, 0, nullptr).ok());
}

TEST(HostView, OfADeviceIsACopyUntilItIsStored) {
  Far far;
  far.space->content[4] = 'x';
  absl::StatusOr<HostView> view = HostView::Of(far.memory, 8);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(std::string(view->data(), 8), "....x...");
  view->data()[0] = 'y';
  EXPECT_EQ(far.space->content[0], '.');
  ASSERT_TRUE(view->Store().ok());
  EXPECT_EQ(far.space->content.substr(0, 9), "y...x....");
}

TEST(HostView, ThatIsWrittenWholeReadsNothing) {
  Far far;
  HostView view = HostView::Blank(far.memory, 4);
  EXPECT_EQ(far.space->copies, 0);
  std::memcpy(view.data(), "abcd", 4);
  ASSERT_TRUE(view.Store().ok());
  EXPECT_EQ(far.space->content.substr(0, 5), "abcd.");
}

TEST(HostView, OfTheHostIsTheMemoryItself) {
  std::string content(kBytes, '.');
  Bytes memory(content.data(), nullptr);
  absl::StatusOr<HostView> view = HostView::Of(memory, kBytes);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->data(), content.data());
  EXPECT_TRUE(view->Store().ok());
}

TEST(HostView, SaysWhyADeviceCannotBeRead) {
  Far far;
  far.space->fails = true;
  EXPECT_EQ(HostView::Of(far.memory, 8).status(), absl::InternalError("no way there"));
  EXPECT_EQ(HostView::Blank(far.memory, 8).Store(), absl::InternalError("no way there"));
  EXPECT_EQ(far.memory.Write(0, 1, "a"), absl::InternalError("no way there"));
}

}  // namespace
}  // namespace coconet
