// Whether the speed-ups that tunings store hold: beside another program, and alone.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/tuning/pairs.h"
#include "bench/tuning/stranger.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "cases, comma-separated; default: all");
ABSL_FLAG(int, tunings, 20, "tunings of each short case beside the stranger, and alone");
ABSL_FLAG(int, rounds, 200, "rounds of a pair alone");
ABSL_FLAG(uint64_t, seed, 1, "of the stranger");

namespace coconet::bench {
namespace {

struct Case {
  absl::string_view name;
  Subject subject;
  bool is_short = true;
};
const Case kCases[] = {
    {"adam 300K", {"adam", "", 300'000}},
    {"adam 1Mi", {"adam", "", 1 << 20}},
    {"decode", {"decode", "small"}},
    {"swiglu", {"swiglu"}, false},
    {"adam 16Mi", {"adam", "", 1 << 24}, false},
    {"adam 16Mi, processes", {"adam", "", 1 << 24, 2, true}, false},
};
constexpr double kBudgetSeconds = 8;
/// Attempts to time a pair while ranks meet as fast as in its tuning: on virtual machines that
/// changes by the minute, and speed-ups with it.
constexpr int kAttempts = 10;

struct Truth {
  double ratio = 1;      // of the pair
  double over_best = 1;  // the pick's time over that of the best found exhaustively
};
struct Judged {
  Stored stored;
  std::optional<Truth> truth;
};

class Judge {
 public:
  Judge(const Case& c, const std::string& scratch)
      : case_(c), scratch_(scratch), cache_(scratch + "/cache") {}

  absl::StatusOr<Stored> TuneOnce(double budget_s, const std::string& search,
                                  std::optional<uint64_t> stranger) const {
    std::optional<Stranger> beside;
    if (stranger.has_value()) beside.emplace(*stranger);
    return TuneApart(case_.subject, budget_s, search, cache_, scratch_);
  }

  absl::StatusOr<std::vector<Judged>> Tunings(int count, const Choice& best,
                                              std::optional<uint64_t> stranger) const {
    std::vector<Judged> judged;
    for (int i = 0; i < count; ++i) {
      if (stranger.has_value()) ++*stranger;
      ASSIGN_OR_RETURN(const Stored s, TuneOnce(kBudgetSeconds, "auto", stranger));
      ASSIGN_OR_RETURN(const std::optional<Truth> found, TruthOf(s, best));
      judged.push_back({s, found});
      absl::FPrintF(stderr, "  %s %d: at %.2f us %.2fx (%.2f to %.2f)%s, %s, %.1f s: %s\n",
                    stranger.has_value() ? "beside" : "alone", i, s.meeting_us, s.ratio, s.low,
                    s.high, s.is_known ? "" : " unknown",
                    found.has_value() ? absl::StrFormat("truly %.2fx, %.3f of the best",
                                                        found->ratio, found->over_best)
                                      : "not compared",
                    s.seconds, s.schedule);
    }
    return judged;
  }

  /// The truth of what a tuning has stored, measured alone; `best` is the best found exhaustively.
  /// None if the machine does not come back to the state that it was tuned in.
  absl::StatusOr<std::optional<Truth>> TruthOf(const Stored& stored, const Choice& best) const {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      ASSIGN_OR_RETURN(const Rounds rounds,
                       RoundsOf(case_.subject, {stored.baseline, stored.best, best},
                                absl::GetFlag(FLAGS_rounds), cache_, scratch_));
      const auto ratio = [&](size_t over, size_t under) {
        std::vector<double> ratios;
        for (size_t r = 0; r < rounds.us[over].size(); ++r)
          ratios.push_back(rounds.us[over][r] / rounds.us[under][r]);
        return Median(ratios);
      };
      if (MeetAlike(rounds.least_meeting_us, stored.meeting_us) &&
          MeetAlike(rounds.most_meeting_us, stored.meeting_us))
        return Truth{ratio(0, 1), ratio(1, 2)};
    }
    return std::nullopt;
  }

  static Row RowOf(const std::vector<Judged>& judged) {
    int given = 0, off = 0, far = 0, near = 0, narrow = 0, compared = 0;
    std::vector<double> widths;
    for (const auto& [s, truth] : judged) {
      widths.push_back(std::sqrt(s.high / s.low) - 1);
      narrow += widths.back() <= 0.05;
      given += s.is_known;
      if (!truth.has_value()) continue;
      ++compared;
      near += truth->over_best <= 1.05;
      if (!s.is_known) continue;
      off += truth->ratio < s.low || truth->ratio > s.high;
      far += std::abs(std::log(s.ratio / truth->ratio)) > std::log(1.2);
    }
    const auto n = static_cast<double>(judged.size());
    Row row;
    row.Set("tunings", static_cast<int64_t>(judged.size()))
        .Set("given", given / n)
        .Set("off_share", off / std::max<double>(given, 1))
        .Set("far", int64_t{far})
        .Set("compared", int64_t{compared})
        .Set("near_share", near / std::max<double>(compared, 1))
        .Set("half_width", Median(widths))
        .Set("narrow_share", narrow / n);
    return row;
  }

 private:
  const Case& case_;
  const std::string scratch_, cache_;
};

absl::Status RunAll() {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  std::vector<Row> rows;
  for (const Case& c : kCases) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), c.name) == wanted.end())
      continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
    Judge judge(c, folder->path());
    const int count =
        c.is_short ? absl::GetFlag(FLAGS_tunings) : std::max(1, absl::GetFlag(FLAGS_tunings) / 4);
    // The first one compiles.
    ASSIGN_OR_RETURN(const Stored best, judge.TuneOnce(60, "exhaustive", std::nullopt));
    ASSIGN_OR_RETURN(const std::vector<Judged> beside,
                     judge.Tunings(count, best.best, absl::GetFlag(FLAGS_seed)));
    ASSIGN_OR_RETURN(const std::vector<Judged> alone,
                     judge.Tunings(count, best.best, std::nullopt));
    for (const bool is_beside : {true, false}) {
      Row row;
      row.Set("case", std::string(c.name)).Set("stranger", is_beside ? "beside" : "none");
      const Row own = Judge::RowOf(is_beside ? beside : alone);
      for (const char* field : {"tunings", "given", "off_share", "far", "compared", "near_share",
                                "half_width", "narrow_share"})
        row.Set(field, own.Get(field));
      row.SetBars(BarsOf(
          is_beside ? "given >= 0.6, off_share <= 0.05, far <= 0, near_share >= 0.95"
                    : "narrow_share >= 0.95, off_share <= 0.05, far <= 0, near_share >= 0.95"));
      AddMachine(row);
      rows.push_back(std::move(row));
    }
  }
  return Show(
      rows,
      ColumnsOf(
          "case, stranger, tunings|%.0f, given|100*%.0f%%, off|100*%.0f%%|off_share, "
          "far|%.0f, compared|%.0f, near|100*%.0f%%|near_share, half width|100*%.1f%%|half_width, "
          "narrow|100*%.0f%%|narrow_share, met"));
}

const Registered kBenchmark({.name = "numbers",
                             .purpose = "judges the speed-ups that tunings store",
                             .positive = {"tunings", "rounds"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
