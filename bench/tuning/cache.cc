// Prints how long tuning caches take: opening one of many records and reading all of them, finding
// one, storing one; and a job that finds its program in one, against the job that tuned it.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autotune/store/tuning_cache.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/process.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(int, records, 10'000, "records in the cache");
ABSL_FLAG(int, variants, 8, "variants of a record");
ABSL_FLAG(int, rounds, 21, "how often each is timed");
ABSL_FLAG(std::string, case, "", "store or warm_start (default: both)");

namespace coconet::bench {
namespace {

void Silent(absl::string_view /*warning*/) {}

/// A record as tuning makes it: the key names the machine, and has the program's text.
TuningRecord RecordOf(const std::string& program, int number, int variants,
                      std::vector<VariantResult>& results) {
  TuningRecord record;
  record.key_text = absl::StrCat(
      "key: 1\ngenerator: 4\nmeasurement: interleaved-rounds-2\nranks: 2\nnodes: 1\ncores: 2\n"
      "device: Intel(R) Xeon(R) Platinum 8481C, avx512f avx512bw avx512dq avx512vl\n"
      "compilers: g++ 12.2.0 -O3 -march=native\nlibrary: shm\nprogram: ",
      program, "\n# size ", number, "\nprogram: end\n");
  record.key = Fingerprint(record.key_text);
  results.clear();
  for (int v = 0; v < variants; ++v) {
    VariantResult result;
    result.trace =
        v == 0 ? "" : absl::StrCat("split(%7, flat); reorder(%", v, "); fuse(%8 %9 %10)");
    result.schedule = absl::StrCat("fuse(RS, C, AG); slice m v ", v);
    result.protocol = "two-shot";
    result.config.vec = 16;
    result.config.chunk = 4096;
    result.verdict = Verdict::kMeasured;
    const double us = 100 + 10 * v;
    result.timing = {us, us - 1, us + 1, 20};
    result.bytes = 4096;
    results.push_back(std::move(result));
  }
  record.best = results.back();
  record.baseline = results.front();
  record.runner_up = results[results.size() / 2].schedule;
  record.variants = variants;
  record.complete = true;
  record.created_s = 1'700'000'000 + number;
  record.trust = {{std::string(64, 'a'), std::string(16, 'b'), "steps on 9 sets of data", 1}};
  return record;
}

absl::StatusOr<double> TimeUs(const std::function<absl::Status()>& run) {
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(run());
  return 1e6 * (SecondsNow() - start_s);
}

/// The median of `rounds` times, and the 90th percentile, as fields.
absl::Status SetTimes(Row& row, const std::string& side, int rounds,
                      const std::function<absl::Status()>& run) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    ASSIGN_OR_RETURN(times.emplace_back(), TimeUs(run));
  }
  std::sort(times.begin(), times.end());
  row.Set(side + "_us", times[times.size() / 2]);
  row.Set(side + "_p90_us", times[times.size() * 9 / 10]);
  return absl::OkStatus();
}

/// Opens a cache of many records, reads all of them, and finds and stores one.
absl::StatusOr<std::vector<Row>> MeasureStore(const std::string& folder) {
  const int records = IsQuick() ? 200 : absl::GetFlag(FLAGS_records);
  const int rounds = IsQuick() ? 3 : absl::GetFlag(FLAGS_rounds);
  const std::string file = absl::StrCat(folder, "/many/tuning.db");
  ASSIGN_OR_RETURN(const Graph program, MakeWorkload("adam"));
  const std::string text = Print(program);
  std::vector<std::string> key_texts;
  std::vector<VariantResult> variants;
  {
    const std::unique_ptr<TuningCache> cache = TuningCache::Open(file, Silent);
    // Filling the cache is not measured.
    RETURN_IF_ERROR(cache->db()->Execute("PRAGMA synchronous=OFF"));
    for (int i = 0; i < records; ++i) {
      const TuningRecord record = RecordOf(text, i, absl::GetFlag(FLAGS_variants), variants);
      cache->Store(record, variants);
      key_texts.push_back(record.key_text);
    }
    if (!cache->stores()) return absl::InternalError("the cache of the benchmark stores nothing");
  }
  const auto row_of = [&](const char* name) {
    Row row;
    row.Set("case", name).Set("records", static_cast<int64_t>(records));
    return row;
  };
  std::vector<Row> rows;
  Row load = row_of("open and load all");
  RETURN_IF_ERROR(SetTimes(load, "ours", rounds, [&]() -> absl::Status {
    const std::unique_ptr<TuningCache> cache =
        TuningCache::Open(file, Silent, TuningCache::Use::kRead);
    const size_t count = cache->List().size();
    if (count == static_cast<size_t>(records)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("want ", records, " records, have ", count));
  }));
  rows.push_back(load.SetBars(BarsOf("ours_us <= 20000")));
  Row index = row_of("open and load keys");
  RETURN_IF_ERROR(SetTimes(index, "ours", rounds, [&]() -> absl::Status {
    const std::unique_ptr<TuningCache> cache =
        TuningCache::Open(file, Silent, TuningCache::Use::kRead);
    const size_t count = cache->KeyTexts().size();
    if (count == static_cast<size_t>(records)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("want ", records, " keys, have ", count));
  }));
  rows.push_back(index.SetBars(BarsOf("ours_us <= 20000")));
  Row open = row_of("open");
  RETURN_IF_ERROR(SetTimes(open, "ours", rounds, [&]() -> absl::Status {
    TuningCache::Open(file, Silent, TuningCache::Use::kRead);
    return absl::OkStatus();
  }));
  rows.push_back(open.Set("bar", ""));
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(file, Silent);
  size_t next = 0;
  const auto find_next = [&]() -> absl::Status {
    next = (next + 7919) % key_texts.size();
    if (cache->Find(key_texts[next]).has_value()) return absl::OkStatus();
    return absl::InternalError("a record is not found");
  };
  Row find = row_of("find one");
  RETURN_IF_ERROR(SetTimes(find, "ours", std::max(rounds, 1000), find_next));
  rows.push_back(find.Set("bar", ""));
  Row store = row_of("store one");
  int stored = records;
  RETURN_IF_ERROR(SetTimes(store, "ours", std::max(rounds, 100), [&]() -> absl::Status {
    const TuningRecord record = RecordOf(text, stored++, absl::GetFlag(FLAGS_variants), variants);
    cache->Store(record, variants);
    return absl::OkStatus();
  }));
  rows.push_back(store.Set("bar", ""));
  return rows;
}

/// Seconds of a job of its own: sweep.
absl::StatusOr<double> RunSweep(const std::string& sweep, const std::string& folder,
                                const std::string& expects, bool tunes) {
  const double start_s = SecondsNow();
  ASSIGN_OR_RETURN(
      const Finished ended,
      RunProcess({.argv = {sweep, "adam", "--N=1Mi", "--ranks=2", "--budget=20"},
                  .environment = {"COCONET_CACHE_DIR=" + folder,
                                  absl::StrCat("COCONET_ASSERT_CACHED=", tunes ? 0 : 1)}}));
  const double seconds = SecondsNow() - start_s;
  if (ended.how != Finished::How::kExited || ended.code != 0 ||
      ended.output.find(expects) == std::string::npos) {
    return absl::InternalError(absl::StrCat("sweep: want '", expects, "', have ", ended.output));
  }
  return seconds;
}

/// A job that tunes, and the next one.
absl::StatusOr<Row> MeasureWarmStart(const std::string& folder) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  const std::string sweep =
      own.parent_path().parent_path().parent_path() / "autotune" / "sweep";  // in bazel-bin
  const std::string cache = folder + "/warm";
  ASSIGN_OR_RETURN(const double cold_s, RunSweep(sweep, cache, "stored as", /*tunes=*/true));
  std::vector<double> warm_s;
  const int rounds = IsQuick() ? 2 : 7;
  for (int round = 0; round < rounds; ++round) {
    // Without tuning, a record that other programs' load left incomplete is used as it is, too.
    ASSIGN_OR_RETURN(warm_s.emplace_back(), RunSweep(sweep, cache, "cache hit", /*tunes=*/false));
  }
  std::sort(warm_s.begin(), warm_s.end());
  Row row;
  row.Set("case", "warm start").Set("records", int64_t{1});
  row.Set("ours_us", 1e6 * warm_s[warm_s.size() / 2]);
  row.Set("ours_p90_us", 1e6 * warm_s[warm_s.size() * 9 / 10]);
  row.Set("baseline_us", 1e6 * cold_s).Set("ratio", cold_s / warm_s[warm_s.size() / 2]);
  return row.Set("bar", "");
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string chosen = absl::GetFlag(FLAGS_case);
  std::vector<Row> rows;
  if (chosen != "warm_start") {
    ASSIGN_OR_RETURN(rows, MeasureStore(folder->path()));
  }
  if (chosen != "store") {
    ASSIGN_OR_RETURN(rows.emplace_back(), MeasureWarmStart(folder->path()));
  }
  return Show(rows, ColumnsOf("case, records|%.0f, median|time|ours_us, p90|time|ours_p90_us, "
                              "tuning|time|baseline_us, ratio, bar"));
}

const Registered kBenchmark({.name = "cache",
                             .purpose = "measures tuning caches",
                             .heeds = {"quick"},
                             .positive = {"records", "variants", "rounds"},
                             .words = {{"case", "store, warm_start"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
