#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/fingerprint.h"
#include "gtest/gtest.h"

namespace coconet {

/// A measured variant.
inline VariantResult Variant(absl::string_view trace, double us) {
  VariantResult v;
  v.trace = std::string(trace);
  v.schedule = "AR; C";
  v.protocol = "library";
  v.verdict = Verdict::kMeasured;
  v.timing = {us, us - 1, us + 1, 20};
  v.bytes = 64;
  return v;
}

/// A complete, verified record of a program on two ranks.
inline TuningRecord Record(absl::string_view program, const VariantResult& best,
                           const VariantResult& baseline) {
  TuningRecord r;
  r.key_text = absl::StrCat("ranks: 2\nprogram: ", program, "\nprogram: end\n");
  r.key = Fingerprint(r.key_text);
  r.best = best;
  r.baseline = baseline;
  r.variants = 2;
  r.complete = true;
  r.created_s = 1700000000;
  r.trust = {{"code", "here", "all", 1700000000}};
  return r;
}

/// Tuning caches at `file_`, in a folder that does not exist yet, and what they warned of.
class TuningCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) /
           absl::StrCat("tuning_cache_", getpid(), "_",
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(dir_);
    file_ = dir_ / "sub" / "tuning.db";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<TuningCache> Open() {
    return TuningCache::Open(file_,
                             [this](absl::string_view text) { warnings_.emplace_back(text); });
  }
  void Overwrite(absl::string_view text) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << text;
  }
  /// Runs SQL that our own code never would.
  void Tamper(const std::string& sql) {
    absl::StatusOr<Database> db = Database::Open(file_, Access::kReadWrite);
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status done = db->Execute(sql.c_str());
    ASSERT_TRUE(done.ok()) << done;
  }
  int FilesWith(absl::string_view part) const {
    return std::count_if(std::filesystem::directory_iterator(file_.parent_path()), {},
                         [&](const std::filesystem::directory_entry& e) {
                           return absl::StrContains(e.path().filename().string(), part);
                         });
  }

  std::filesystem::path dir_, file_;
  std::vector<std::string> warnings_;
  const VariantResult fast_ = Variant("split(%1, flat)", 10), slow_ = Variant("", 30);
};

/// Runs `body` in a process of its own; its exit status, or -signal.
inline int InChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace coconet
