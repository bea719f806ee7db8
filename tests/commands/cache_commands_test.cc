// The cache command on records of other caches: what it moves, deletes and pins, what it refuses,
// and what a job makes of the layers.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autotune/store/tuning_cache.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CacheCommandsTest : public testing::Test {
 protected:
  CacheCommandsTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  std::string File(const std::string& name) const { return folder_ / name; }
  /// Stores records of these programs, with two variants of 10 and 30 us.
  void Fill(const std::string& name, const std::vector<std::string>& programs) const {
    const std::unique_ptr<TuningCache> cache = TuningCache::Open(File(name), nullptr);
    for (const std::string& program : programs)
      cache->Store(Record(absl::StrCat("program ", program), fast_, slow_), {fast_, slow_});
  }
  Ended Cache(std::vector<std::string> args, std::map<std::string, std::string> environment = {}) {
    args.insert(args.begin(), "autotune/cache");
    environment.insert({"COCONET_CACHE_DIR", folder_});
    return RunCommand(std::move(args), environment);
  }
  std::string Out(std::vector<std::string> args,
                  std::map<std::string, std::string> environment = {}) {
    const Ended ended = Cache(std::move(args), std::move(environment));
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
  /// Expects one line on stderr, nothing on stdout, and the exit code 2.
  void ExpectRefusal(std::vector<std::string> args, const std::string& words) {
    const Ended ended = Cache(std::move(args));
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(ended.err, testing::MatchesRegex("coconet cache: [^\n]*\n"));
    EXPECT_THAT(ended.err, HasSubstr(words));
  }

  const fs::path folder_;
  const VariantResult fast_ = Variant("split(%1, flat)", 10), slow_ = Variant("", 30);
};

TEST_F(CacheCommandsTest, MoveRecords) {
  Fill("tuning.db", {"sgd", "adam"});
  EXPECT_EQ(Cache({"export", "all", File("all.jsonl")}).code, 0);
  EXPECT_EQ(Cache({"export", "sgd", File("sgd.jsonl")}).code, 0);
  const std::string other = absl::StrCat("--cache=", File("other.db"));
  EXPECT_THAT(Out({"import", File("sgd.jsonl"), other, "--dry-run"}),
              HasSubstr("1 records offered: 1 would be added"));
  EXPECT_THAT(Out({"list", other}), Not(HasSubstr("sgd")));
  EXPECT_THAT(Out({"import", File("sgd.jsonl"), other}), HasSubstr("1 added"));
  EXPECT_THAT(Out({"list", other}), testing::ContainsRegex("sgd.* user .*imported"));
  EXPECT_THAT(Out({"merge", File("tuning.db"), other, "--json"}), HasSubstr("\"added\": 1"));
  EXPECT_THAT(Out({"diff", File("tuning.db"), File("other.db")}),
              HasSubstr("2 keys in both, 2 with the same winner; 0 only in A, 0 only in B"));
  EXPECT_THAT(Out({"stats", "--json", other}), HasSubstr("\"imported\": 2"));
}

TEST_F(CacheCommandsTest, RejectedLinesAreNamed) {
  Fill("tuning.db", {"sgd", "adam"});
  ASSERT_EQ(Cache({"export", "all", File("all.jsonl")}).code, 0);
  std::string text = ReadFile(File("all.jsonl"));
  text = absl::StrReplaceAll(text, {{"split(%1, flat)", "nonsense"}}) + "{\n";
  std::ofstream(File("bad.jsonl")) << text;
  const Ended ended = Cache({"import", File("bad.jsonl"), "--cache=" + File("other.db")});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("cache: line 2 is rejected: "));
  EXPECT_THAT(ended.err, HasSubstr("cache: line 4 is rejected: no JSON"));
  EXPECT_THAT(ended.out, HasSubstr("0 added"));
}

TEST_F(CacheCommandsTest, PinAndUnpin) {
  Fill("tuning.db", {"sgd", "adam"});
  EXPECT_THAT(Out({"pin", "sgd", "AR; C/vec=16"}), HasSubstr("once it is verified"));
  EXPECT_THAT(Out({"list", "sgd"}), HasSubstr("pinned"));
  EXPECT_THAT(Out({"unpin", "sgd"}), HasSubstr("runs its best again"));
  EXPECT_THAT(Out({"unpin", "sgd"}), HasSubstr("had nothing pinned"));
  ExpectRefusal({"pin", "sgd", "AR; X"}, "no stored variant has the schedule AR; X");
  ExpectRefusal({"pin", "sgd", "AR; C/vec=3"}, "has the config vec=3");
  ExpectRefusal({"pin", "all", "AR; C"}, "want one record, have 2");
}

TEST_F(CacheCommandsTest, PruneAndCount) {
  Fill("tuning.db", {"sgd", "adam"});
  EXPECT_THAT(Out({"prune"}), HasSubstr("0 records and 0 predictions were deleted"));
  EXPECT_THAT(Out({"prune", "--size=0", "--dry-run"}), HasSubstr("2 records"));
  EXPECT_THAT(Out({"stats"}), testing::ContainsRegex("user +2 +2 +0 +0 +4 "));
  EXPECT_THAT(Out({"prune", "--size=0"}), HasSubstr("2 records and 0 predictions were deleted"));
  EXPECT_THAT(Out({"stats"}), testing::ContainsRegex("user +0 +0 "));
}

TEST_F(CacheCommandsTest, BadInputIsRefusedInALine) {
  Fill("tuning.db", {"sgd"});
  std::ofstream(File("text")) << "text\n";
  std::ofstream(File("newer")) << "{\"format\": \"coconet tuning records\", \"version\": 9}\n";
  ExpectRefusal({"import"}, "import: want the file to read");
  ExpectRefusal({"import", File("none")}, "cannot read");
  ExpectRefusal({"import", File("")}, "cannot read");
  ExpectRefusal({"import", File("text")}, "want the header of an export");
  ExpectRefusal({"import", File("newer")}, "version 9 of the format");
  ExpectRefusal({"merge", File("none.db")}, "does not exist");
  ExpectRefusal({"merge", File("text")}, "file is not a database");
  ExpectRefusal({"merge", File("tuning.db")}, "is the tuning cache itself");
  ExpectRefusal({"diff", File("tuning.db")}, "want two tuning caches");
  ExpectRefusal({"diff", File("tuning.db"), File("none")}, "does not exist");
  ExpectRefusal({"export", "nothing", File("x")}, "no record of nothing");
  ExpectRefusal({"export", "all", File("no/folder/x")}, "cannot write");
  ExpectRefusal({"prune", "--size=-1"}, "want a number of bytes");
  ExpectRefusal({"prune", "--size=x"}, "want a number of bytes");
  ExpectRefusal({"prune", "--older=90"}, "want a number of hours, days or weeks");
  ExpectRefusal({"prune", "--older=99999999999999999999d"}, "want a number");
  ExpectRefusal({"list", "--dry-run"}, "--dry-run is not for list");
  ExpectRefusal({"forget", "all", "--size=5"}, "--size is not for forget");
  ExpectRefusal({"pin", "sgd"}, "pin: want the beginning of a key, and SCHEDULE/CONFIG");
}

TEST_F(CacheCommandsTest, LayersAreSaidAndOnlyRead) {
  Fill("tuning.db", {"sgd"});
  fs::create_directories(folder_ / "site");
  Fill("site/site.db", {"sgd", "adam"});
  const std::map<std::string, std::string> site = {{"COCONET_SITE_CACHE", File("site/site.db")}};
  const std::string before = ReadFile(File("site/site.db"));
  const std::string list = Out({"list"}, site);
  EXPECT_THAT(list, testing::ContainsRegex("sgd.* user "));
  EXPECT_THAT(list, testing::ContainsRegex("adam.* site "));
  EXPECT_THAT(list, testing::ContainsRegex("sgd.* site, not used"));
  EXPECT_THAT(Out({"show", "adam"}, site), HasSubstr("layer site, "));
  const Ended forget = Cache({"forget", "adam"}, site);
  EXPECT_EQ(forget.code, 2);
  EXPECT_THAT(forget.err, HasSubstr("which is only read"));
  EXPECT_THAT(Out({"retune", "adam"}, site), HasSubstr("is tuned again by the next job"));
  EXPECT_THAT(Out({"list", "adam"}, site), testing::ContainsRegex("adam.* user .*incomplete"));
  EXPECT_EQ(ReadFile(File("site/site.db")), before);
  // What others may write is not used.
  chmod(File("site/site.db").c_str(), 0666);
  EXPECT_THAT(Cache({"list"}, site).err, HasSubstr("may be written by others"));
}

TEST_F(CacheCommandsTest, AJobRunsWhatTheSiteHasAndVerifiesItFirst) {
  const auto sweep = [&](const std::string& user, std::map<std::string, std::string> more = {}) {
    more.insert({"COCONET_CACHE_DIR", File("kernels")});
    return RunCommand(
        {"autotune/sweep", "sgd", "--N=3001", "--ranks=1", absl::StrCat("--cache=", File(user))},
        more);
  };
  fs::create_directories(folder_ / "site");
  ASSERT_EQ(SweepUntilHit([&] { return sweep("site/site.db"); }).code, 0);
  const std::string before = ReadFile(File("site/site.db"));
  const std::map<std::string, std::string> site = {{"COCONET_SITE_CACHE", File("site/site.db")},
                                                   {"COCONET_ASSERT_CACHED", "1"}};
  for (int job = 0; job < 2; ++job) {
    const Ended hit = sweep("user.db", site);
    EXPECT_EQ(hit.code, 0) << hit.err;
    EXPECT_THAT(hit.out, HasSubstr("cache hit"));
    EXPECT_THAT(hit.err, IsEmpty());
  }
  EXPECT_EQ(ReadFile(File("site/site.db")), before);
  const std::unique_ptr<TuningCache> user = TuningCache::Open(File("user.db"), nullptr);
  EXPECT_THAT(user->List(), IsEmpty());
  EXPECT_EQ(user->db()->QueryInt("SELECT count(*) FROM trust").value(), 1) << "verified here";
  // With the mode off, nobody's records are taken, and nothing is kept.
  std::map<std::string, std::string> off = site;
  off["COCONET_CACHE_MODE"] = "off";
  EXPECT_NE(sweep("user.db", off).code, 0);
  // In the mode readonly they are, and the user's file stays as it is, if there is none.
  std::map<std::string, std::string> read_only = site;
  read_only["COCONET_CACHE_MODE"] = "readonly";
  EXPECT_THAT(sweep("other.db", read_only).out, HasSubstr("cache hit"));
  EXPECT_FALSE(fs::exists(File("other.db")));
}

}  // namespace
}  // namespace coconet
