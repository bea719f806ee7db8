#include "runtime/cuda/memory/handle_mail.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// An empty file of `bytes` bytes, which identifies it.
Descriptor OfSize(int bytes) {
  Descriptor file(memfd_create("a file of a test", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), bytes), 0);
  return file;
}
int64_t SizeOf(const Descriptor& file) {
  struct stat found{};
  return file && fstat(file.get(), &found) == 0 ? static_cast<int64_t>(found.st_size) : -1;
}

/// For each of `ranks` threads, the sizes of the files that it gets from ranks 0, 1, ... of the
/// group; -1: none.
std::vector<std::vector<int64_t>> SwapAll(int ranks, const Members& group,
                                          const std::vector<bool>& sends) {
  std::vector<HandleMail> mails;
  std::vector<std::string> addresses;
  for (int r = 0; r < ranks; ++r) {
    mails.push_back(HandleMail::Open().value());
    addresses.push_back(mails.back().Address(sends[r]));
  }
  std::vector<std::vector<int64_t>> sizes(ranks);
  std::vector<std::thread> threads;
  for (int i = 0; i < group.size; ++i) {
    threads.emplace_back([&, rank = group.Rank(i)] {
      const auto files = mails[rank].Swap(group, rank, addresses,
                                          sends[rank] ? OfSize(100 + rank) : Descriptor(), 20);
      ASSERT_TRUE(files.ok()) << files.status();
      for (const Descriptor& file : *files) sizes[rank].push_back(SizeOf(file));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sizes;
}

TEST(HandleMail, FilesComeFromEachWhoSendsOne) {
  for (int ranks : {1, 2, 3, 40}) {  // 40 files exceed a socket's queue
    const auto sizes = SwapAll(ranks, {0, 1, ranks}, std::vector<bool>(ranks, true));
    for (int r = 0; r < ranks; ++r) {
      for (int peer = 0; peer < ranks; ++peer)
        EXPECT_EQ(sizes[r][peer], peer == r ? -1 : 100 + peer);
    }
  }
  // In the group of ranks 1 and 3, rank 1 sends.
  const auto from_one = SwapAll(4, {1, 2, 2}, {true, true, true, false});
  EXPECT_EQ(from_one[1], std::vector<int64_t>(4, -1));
  EXPECT_EQ(from_one[3], (std::vector<int64_t>{-1, 101, -1, -1}));
}

TEST(HandleMail, ForeignersAreNotHeard) {
  const auto mail = HandleMail::Open().value(), peer = HandleMail::Open().value(),
             foreign = HandleMail::Open().value();
  std::string guessed = mail.Address(true);
  guessed[0] = static_cast<char>(guessed[0] + 1);  // a byte of the secret
  EXPECT_FALSE(foreign
                   .Swap({0, 1, 2}, 1, std::vector<std::string>{guessed, foreign.Address(false)},
                         OfSize(7), 0.05)
                   .ok());  // it receives nothing
  const std::vector<std::string> addresses = {mail.Address(false), peer.Address(true)};
  std::thread other([&] { EXPECT_TRUE(peer.Swap({0, 1, 2}, 1, addresses, OfSize(9), 20).ok()); });
  const auto files = mail.Swap({0, 1, 2}, 0, addresses, Descriptor(), 20);
  other.join();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(SizeOf((*files)[1]), 9);
}

TEST(HandleMail, ThoseThatDoNotComeAreGivenUp) {
  const auto mail = HandleMail::Open().value(), silent = HandleMail::Open().value();
  const absl::Status status =
      mail.Swap({0, 1, 2}, 0, std::vector<std::string>{mail.Address(true), silent.Address(true)},
                OfSize(1), 0.05)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("waited 0.05 s for 1 of them and for room for 0"));
  const std::string gone = HandleMail::Open().value().Address(false);
  EXPECT_THAT(
      std::string(
          mail.Swap({0, 1, 2}, 0, std::vector<std::string>{mail.Address(true), gone}, OfSize(1), 5)
              .status()
              .message()),
      HasSubstr("sendmsg: Connection refused"));
  const auto none =
      mail.Swap({0, 1, 2}, 0, std::vector<std::string>{mail.Address(true), ""}, OfSize(1), 5);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(SizeOf((*none)[1]), -1);
}

}  // namespace
}  // namespace coconet
