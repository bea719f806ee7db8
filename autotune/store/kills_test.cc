// Processes that store into one file at once, and are killed at any time: what a process has said
// to be committed is there, and the file is whole.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "coconet/base/descriptor.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int kProcesses = 32;
constexpr int kKills = 1000;
constexpr std::chrono::seconds kMostTime(200);

/// A running store_worker.
struct Worker {
  pid_t pid = 0;
  std::string name;
  Descriptor out;
  std::string text;  // read so far
};

Worker Start(const std::string& file, const std::string& name) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Worker worker{0, name, Descriptor(ends[0]), ""};
  const Descriptor in(ends[1]);
  worker.pid = fork();
  if (worker.pid == 0) {
    dup2(in.get(), STDOUT_FILENO);
    execl("autotune/store/store_worker", "store_worker", file.c_str(), name.c_str(), nullptr);
    _exit(127);
  }
  return worker;
}

/// Reads what has come; to the end once the process is gone.
void Read(Worker& worker, bool to_end) {
  char bytes[4096];
  while (true) {
    pollfd ready{worker.out.get(), POLLIN, 0};
    if (!to_end && poll(&ready, 1, 0) <= 0) return;
    const ssize_t n = read(worker.out.get(), bytes, sizeof(bytes));
    if (n <= 0) return;
    worker.text.append(bytes, static_cast<size_t>(n));
  }
}

class KillsTest : public TuningCacheTest {
 protected:
  /// Kills the worker; what it had committed goes to committed_.
  void End(Worker& worker) {
    kill(worker.pid, SIGKILL);
    int status = 0;
    waitpid(worker.pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << worker.name << " ended by itself: " << status;
    Read(worker, /*to_end=*/true);
    for (absl::string_view line : absl::StrSplit(worker.text, '\n', absl::SkipEmpty()))
      committed_.push_back(absl::StrCat(worker.name, " ", line));
  }
  std::vector<std::string> committed_;  // the programs of records
};

TEST_F(KillsTest, LoseNothingThatWasCommitted) {
  uint64_t seed = 20261130;
  if (const char* given = std::getenv("COCONET_SEED")) (void)absl::SimpleAtoi(given, &seed);
  SCOPED_TRACE(absl::StrCat("COCONET_SEED=", seed));
  std::mt19937_64 random(seed);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Worker> workers;
  int kills = 0, started = 0;
  const auto another = [&] { return Start(file_, absl::StrCat("w", started++)); };
  for (int i = 0; i < kProcesses; ++i) workers.push_back(another());
  while (kills < kKills && std::chrono::steady_clock::now() - start < kMostTime) {
    usleep(static_cast<useconds_t>(random() % 20000));
    for (Worker& worker : workers) Read(worker, /*to_end=*/false);
    Worker& victim = workers[random() % kProcesses];
    End(victim);
    ++kills;
    victim = another();
  }
  for (Worker& worker : workers) End(worker);
  RecordProperty("kills", kills);
  RecordProperty("committed", static_cast<int>(committed_.size()));
  EXPECT_EQ(kills, kKills) << "within the time";
  EXPECT_GT(committed_.size(), 500u);
  EXPECT_EQ(FilesWith("corrupt"), 0);
  const std::unique_ptr<TuningCache> cache = Open();
  ASSERT_TRUE(cache->stores());
  EXPECT_EQ(cache->db()->QueryText("PRAGMA integrity_check").value(), "ok");
  EXPECT_EQ(cache->db()->QueryText("PRAGMA foreign_key_check").value(), "");
  std::set<std::string> stored;
  for (const TuningRecord& record : cache->List()) {
    stored.insert(record.key);
    EXPECT_EQ(
        cache->db()
            ->QueryInt(absl::StrCat("SELECT count(*) FROM variant WHERE key = '", record.key, "'"))
            .value(),
        2);
  }
  int lost = 0;
  for (const std::string& program : committed_)
    lost += stored.count(Record(program, fast_, slow_).key) == 0 ? 1 : 0;
  EXPECT_EQ(lost, 0) << "of " << committed_.size();
  EXPECT_TRUE(warnings_.empty());
  std::printf("%d kills, %d commits, %d lost\n", kills, static_cast<int>(committed_.size()), lost);
}

}  // namespace
}  // namespace coconet
