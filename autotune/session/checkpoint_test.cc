#include "autotune/session/checkpoint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / absl::StrCat("checkpoint_", getpid());
    fs::create_directories(folder_);
    path_ = folder_ / "a.ckpt";
    std::iota(m_.begin(), m_.end(), 0.5f);
    std::iota(n_.begin(), n_.end(), 7);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<CheckpointState> States() const {
    return {{"m", {DType::kF32, {30, 100}, Layout::Auto()}},
            {"n", {DType::kI64, {9}, Layout::Auto()}},
            {"e", {DType::kF16, {0}, Layout::Auto()}}};
  }
  /// Slices in any order.
  void Save() {
    absl::StatusOr<CheckpointWriter> writer = CheckpointWriter::Create(path_, States());
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int part : {2, 0, 1})
      ASSERT_TRUE(writer->Write(0, 1000 * part, 1000, m_.data() + 1000 * part).ok());
    ASSERT_TRUE(writer->Write(1, 0, 9, n_.data()).ok());
    const absl::Status committed = writer->Commit();
    ASSERT_TRUE(committed.ok()) << committed;
  }
  std::string OpenError() {
    const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(path_);
    return reader.ok() ? std::string(reader->CheckDigests().message())
                       : std::string(reader.status().message());
  }

  fs::path folder_, path_;
  std::vector<float> m_ = std::vector<float>(3000);
  std::vector<int64_t> n_ = std::vector<int64_t>(9);
};

TEST_F(CheckpointTest, ReadsBackAnyPart) {
  Save();
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->CheckStates(States()).ok());
  EXPECT_TRUE(reader->CheckDigests().ok()) << reader->CheckDigests();
  std::vector<float> part(1500);
  ASSERT_TRUE(reader->Read(0, 1200, 1500, part.data()).ok());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), m_.begin() + 1200));
  std::vector<int64_t> n(9);
  ASSERT_TRUE(reader->Read(1, 0, 9, n.data()).ok());
  EXPECT_EQ(n, n_);
}

TEST_F(CheckpointTest, WithoutCommitNothingIsThere) {
  {
    absl::StatusOr<CheckpointWriter> writer = CheckpointWriter::Create(path_, States());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Write(0, 0, 3000, m_.data()).ok());
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(CheckpointReader::Open(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, OtherStatesAreRefused) {
  Save();
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  const auto message = [&](auto edit) {
    std::vector<CheckpointState> want = States();
    edit(want);
    const absl::Status status = reader->CheckStates(want);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(message([](auto& s) { s[0].type.shape[0] = 31; }),
              HasSubstr("want m f32[31, 100], have m f32[30, 100]"));
  EXPECT_THAT(message([](auto& s) { s[1].type.dtype = DType::kI32; }),
              HasSubstr("want n i32[9], have n i64[9]"));
  EXPECT_THAT(message([](auto& s) { s.pop_back(); }),
              HasSubstr("want no more states, have e f16[0]"));
  EXPECT_THAT(message([](auto& s) { s[2].name = "f"; }), HasSubstr("want f f16[0], have e f16[0]"));
}

TEST_F(CheckpointTest, DamageIsSeen) {
  Save();
  fs::resize_file(path_, 8192 + 4096);
  EXPECT_THAT(OpenError(), HasSubstr("the file is cut off"));
  Save();
  std::fstream bytes(path_, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(4096 + 17);
  bytes.put('\x55');
  bytes.close();
  EXPECT_THAT(OpenError(), HasSubstr("state m is not as it was saved"));
  std::ofstream(path_, std::ios::trunc) << "something else";
  EXPECT_THAT(OpenError(), HasSubstr("no checkpoint of this version"));
  std::ofstream(path_, std::ios::trunc)
      << "coconet checkpoint 1\nstate m : f32[-5]\ndigest 0\nend\n";
  EXPECT_FALSE(CheckpointReader::Open(path_).ok());
  std::ofstream(path_, std::ios::trunc) << "coconet checkpoint 1\nstate m : f32[5]\n";
  EXPECT_THAT(OpenError(), HasSubstr("header is cut off"));
}

TEST_F(CheckpointTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(CheckpointWriter::Create(folder_ / "no" / "a.ckpt", States()).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace coconet
