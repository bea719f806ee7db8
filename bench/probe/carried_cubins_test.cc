#include "bench/probe/carried_cubins.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "coconet/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class CarriedCubinsTest : public ::testing::Test {
 protected:
  CarriedCubinsTest() {
    fs::remove_all(root_);
    folder_ = root_ + "/cubins";
    fs::create_directories(folder_);
    cache_ = BinaryCache::Open(root_ + "/cache").value();
  }
  absl::StatusOr<Binary> Take(const std::string& source, const std::string& arch = "sm_90a") {
    return MakeCarriedCubins(folder_, arch, cache_).value()->Compile(source);
  }
  std::string Refusal(const std::string& source, absl::StatusCode code,
                      const std::string& arch = "sm_90a") {
    const absl::Status status = Take(source, arch).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::string FileOf(const std::string& source, absl::string_view arch = "sm_90a") const {
    return absl::StrCat(folder_, "/", Fingerprint(source).substr(0, 16), ".", arch, ".cubin");
  }

  const std::string root_ = ::testing::TempDir() + "/carried";
  std::string folder_;
  std::shared_ptr<BinaryCache> cache_;
};

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST_F(CarriedCubinsTest, ComeThroughTheCacheAsTheyWereMade) {
  const std::string binary(
      "\x7f"
      "ELF\0 a cubin\n",
      13);
  ASSERT_TRUE(CarryCubin(folder_, "sm_90a", "kernel", binary, "nvrtc\n13.0").ok());
  const absl::StatusOr<Binary> taken = Take("kernel");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(BinaryCache::ReadAt(taken->path), binary);
  EXPECT_EQ(Take("kernel")->path, taken->path);
}

TEST_F(CarriedCubinsTest, SayWhatIsMissing) {
  EXPECT_THAT(Refusal("kernel", absl::StatusCode::kNotFound),
              AllOf(HasSubstr(".sm_90a.cubin in "), HasSubstr("it has no cubins"),
                    HasSubstr("--compile-for=sm_90a --cubins=")));
  ASSERT_TRUE(CarryCubin(folder_, "sm_100", "kernel", "x", "nvrtc").ok());
  EXPECT_THAT(Refusal("kernel", absl::StatusCode::kNotFound),
              HasSubstr("it has these kernels for sm_100"));
  EXPECT_THAT(Refusal("other", absl::StatusCode::kNotFound),
              HasSubstr("of other kernels it has 1 for sm_100"));
}

TEST_F(CarriedCubinsTest, RefuseRenamedAndDamagedFiles) {
  ASSERT_TRUE(CarryCubin(folder_, "sm_100", "kernel", "x", "nvrtc").ok());
  fs::rename(FileOf("kernel", "sm_100"), FileOf("kernel"));
  EXPECT_THAT(Refusal("kernel", absl::StatusCode::kInvalidArgument),
              HasSubstr("is for sm_100, and this GPU is sm_90a"));
  ASSERT_TRUE(CarryCubin(folder_, "sm_90a", "other", "x", "nvrtc").ok());
  fs::rename(FileOf("other"), FileOf("kernel"));
  EXPECT_THAT(Refusal("kernel", absl::StatusCode::kInvalidArgument),
              HasSubstr("has the text of other kernels than its name says"));
  ASSERT_TRUE(CarryCubin(folder_, "sm_90a", "kernel", "content", "nvrtc").ok());
  std::string whole = Content(FileOf("kernel"));
  whole[0] = 'C';
  std::ofstream(FileOf("kernel"), std::ios::binary) << whole;
  EXPECT_THAT(Refusal("kernel", absl::StatusCode::kDataLoss), HasSubstr("was changed"));
  for (size_t length : {size_t{0}, size_t{3}, whole.size() - 80}) {
    std::ofstream(FileOf("kernel"), std::ios::binary) << whole.substr(0, length);
    Refusal("kernel", absl::StatusCode::kDataLoss);
  }
}

TEST_F(CarriedCubinsTest, RefuseAFolderThatIsNone) {
  const absl::Status status = MakeCarriedCubins(root_ + "/none", "sm_90a", cache_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is no folder; make it by --compile-for"));
}

}  // namespace
}  // namespace coconet::bench
