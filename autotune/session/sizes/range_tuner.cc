#include "autotune/session/sizes/range_tuner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/time_budget.h"
#include "autotune/session/load/loading.h"
#include "autotune/session/load/program_loader.h"
#include "autotune/session/sizes/family.h"
#include "autotune/session/sizes/size_buckets.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"
#include "coconet/schedule/schedule.h"

namespace coconet {
namespace {

constexpr double kGridFactor = 4;       // between sizes of the grid
constexpr size_t kMostLines = 8;        // of sizes of the other symbols, in all
constexpr int kWideGrid = 5;            // sizes of a grid from which on two are tuned in full
constexpr double kShareInFull = 0.5;    // of the budget, for those
constexpr double kLeading = 1.1;        // a leader's time over the best one's
constexpr size_t kMostLeaders = 6;      // of a size
constexpr int kPromising = 3;           // variants that the prior adds
constexpr double kTie = 1.02;           // times that are not worth another variant
constexpr double kLeastBudget_s = 0.5;  // of a size
/// A size's race has more samples where a step is shorter than so many microseconds: its times vary
/// more, and cost less.
constexpr double kShortStepUs = 2000;
constexpr int kSamples = 8, kSamplesOfShort = 20;
/// Two variants that differ by less are as good: a bucket does not end for it.
constexpr double kWorthAChange = 1.03;

/// The variants that were timed at a size, and what is stored of it.
struct Tuned {
  int64_t size = 1;  // of the main symbol
  Sizes sizes;
  TuningRecord record;
  std::string code;                  // FamilyCode of the winner
  std::map<std::string, double> us;  // by variant
  bool decided = true;  // several variants, and all that it was to start from, were tried
};

/// The sizes of a box where each range is one size.
Sizes SizesOf(const SizeRanges& box) {
  Sizes sizes;
  for (const auto& [symbol, range] : box) sizes.emplace(symbol, range.lo);
  return sizes;
}

/// A size of each other symbol, and the sizes around it that take it for theirs.
struct Line {
  SizeRanges at, box;
};

/// The lines of a range: sizes of the symbols other than `main`, the fewer the more symbols.
std::vector<Line> LinesOf(const SizeRanges& ranges, const std::string& main) {
  double factor = kGridFactor;
  std::vector<Line> lines;
  do {
    lines = {Line{}};
    for (const auto& [symbol, range] : ranges) {
      if (symbol == main) continue;
      const std::vector<int64_t> grid = GridOf(range, factor);
      std::vector<Line> longer;
      for (const Line& line : lines) {
        int64_t begin = range.lo;
        for (size_t i = 0; i < grid.size(); ++i) {
          const int64_t end = i + 1 == grid.size() ? range.hi : MiddleOf(grid[i], grid[i + 1]);
          Line& next = longer.emplace_back(line);
          next.at[symbol] = {grid[i], grid[i]};
          next.box[symbol] = {begin, end};
          begin = end + 1;
        }
      }
      lines = std::move(longer);
    }
    factor *= kGridFactor;
  } while (lines.size() > kMostLines && factor < kGreatestSize);
  return lines;
}

class RangeTuner {
 public:
  RangeTuner(const std::shared_ptr<SessionState>& state, const Graph& symbolic,
             const SizeRanges& ranges)
      : state_(state),
        symbolic_(symbolic),
        ranges_(ranges),
        main_(MainSymbolOf(ranges)),
        start_s_(Seconds()) {}

  absl::StatusOr<TunedRange> Run() {
    ASSIGN_OR_RETURN(machine_, state_->rank.exchange().Broadcast(MachineDigest()));
    const std::vector<Line> lines = LinesOf(ranges_, main_);
    const std::vector<int64_t> grid = GridOf(ranges_.at(main_), kGridFactor);
    for (const Line& line : lines) RETURN_IF_ERROR(RunLine(line, grid, &line == &lines.front()));
    return TunedRange{main_, std::move(buckets_), std::move(points_), decided_};
  }

 private:
  absl::Status RunLine(const Line& line, const std::vector<int64_t>& grid, bool first) {
    std::map<int64_t, Tuned> tuned;
    if (first) {
      const auto last = static_cast<double>(grid.size() - 1);
      std::set<int64_t> full;
      for (double share :
           grid.size() < kWideGrid ? std::vector<double>{0.5} : std::vector<double>{0.75, 0.25})
        full.insert(grid[std::lround(share * last)]);
      for (int64_t size : full) {
        const double budget_s =
            kShareInFull * state_->options.budget_s / static_cast<double>(full.size());
        ASSIGN_OR_RETURN(Tuned point, TuneAt(line, size, std::nullopt, budget_s));
        if (point.decided) tuned[size] = std::move(point);
      }
    }
    // From the sizes that are tuned outwards, so that each has a neighbour. A size at which there
    // was no time to compare the neighbours' variants says nothing of them.
    std::set<int64_t> left(grid.begin(), grid.end());
    for (const auto& [size, point] : tuned) left.erase(size);
    while (!left.empty()) {
      ASSIGN_OR_RETURN(const bool is_over, IsOver());
      if (is_over) {
        Say(absl::StrCat("the budget has ended before ", left.size(), " of ", grid.size(),
                         " sizes were compared: they run what is the fastest at the next ones"));
        break;
      }
      const int64_t size = NextOf(left, grid, tuned);
      left.erase(size);
      ASSIGN_OR_RETURN(Tuned point,
                       TuneAt(line, size, StartOf(tuned, size, kPromising), BudgetOfPoint()));
      if (point.decided) {
        tuned[size] = std::move(point);
        continue;
      }
      Say(absl::StrCat("sizes ", Words(point.sizes),
                       ": the budget has ended; they run what is "
                       "the fastest at the next ones"));
    }
    if (tuned.empty() && !buckets_.empty()) {
      RepeatLine(line);
      return absl::OkStatus();
    }
    if (tuned.empty()) {
      decided_ = false;
      ASSIGN_OR_RETURN(tuned[grid.front()],
                       TuneAt(line, grid.front(), std::nullopt, kLeastBudget_s));
    }
    for (const auto& [size, point] : tuned) {
      points_.push_back({point.sizes, point.record});
      lines_before_.push_back(point);
    }
    line_begin_ = buckets_.size();
    return MakeBuckets(line, tuned);
  }

  /// The line has the variants of the one before, of which nothing is known to be right here.
  void RepeatLine(const Line& line) {
    const std::vector<SizeBucket> before(buckets_.begin() + static_cast<int64_t>(line_begin_),
                                         buckets_.end());
    line_begin_ = buckets_.size();
    for (SizeBucket bucket : before) {
      const SizeRange main = bucket.box.at(main_);
      bucket.box = line.box;
      bucket.box[main_] = main;
      bucket.code.clear();
      buckets_.push_back(std::move(bucket));
    }
  }

  /// The size that is left and nearest to a tuned one.
  static int64_t NextOf(const std::set<int64_t>& left, const std::vector<int64_t>& grid,
                        const std::map<int64_t, Tuned>& tuned) {
    if (tuned.empty()) return *std::next(left.begin(), static_cast<int64_t>(left.size() / 2));
    int64_t next = -1;
    size_t least = grid.size();
    for (size_t i = 0; i < grid.size(); ++i) {
      if (!left.contains(grid[i])) continue;
      for (size_t k = 0; k < grid.size(); ++k) {
        const size_t apart = k < i ? i - k : k - i;
        if (!tuned.contains(grid[k]) || apart >= least) continue;
        least = apart;
        next = grid[i];
      }
    }
    return next;
  }

  /// Collective. Whether the budget has ended, by rank 0's clock.
  absl::StatusOr<bool> IsOver() const {
    ASSIGN_OR_RETURN(const int over,
                     FromRank0(state_->rank.exchange(),
                               Seconds() - start_s_ >= state_->options.budget_s ? 1 : 0));
    return over != 0;
  }

  /// A ceiling: with few variants, a size mostly takes less.
  double BudgetOfPoint() const {
    const double rest_s = state_->options.budget_s - (Seconds() - start_s_);
    return std::max(rest_s / 2, kLeastBudget_s);
  }

  void Say(const std::string& text) const {
    if (state_->rank.rank() == 0 && state_->options.progress) state_->options.progress(text);
  }

  /// The leaders of the tuned sizes next to this one, those of the nearer lines before, too.
  Start StartOf(const std::map<int64_t, Tuned>& tuned, int64_t size, int promising) const {
    Start start{.variants = {}, .promising = promising, .samples = SamplesAt(tuned, size)};
    const auto above = tuned.upper_bound(size);
    if (above != tuned.end()) AddLeaders(above->second, start);
    if (above != tuned.begin()) AddLeaders(std::prev(above)->second, start);
    for (const Tuned& before : lines_before_) {
      if (before.size == size) AddLeaders(before, start);
    }
    return start;
  }

  static int SamplesAt(const std::map<int64_t, Tuned>& tuned, int64_t size) {
    double us = 0;
    for (const auto& [at, point] : tuned) {
      const double scale = static_cast<double>(size) / static_cast<double>(at);
      us = point.record.best.timing.median_us * std::max(scale, 1.0);
      if (at >= size) break;
    }
    return us < kShortStepUs ? kSamplesOfShort : kSamples;
  }

  void AddLeaders(const Tuned& tuned, Start& start) const {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, us] : tuned.us) order.emplace_back(us, name);
    absl::c_sort(order);
    for (size_t i = 0; i < order.size() && i < kMostLeaders; ++i) {
      if (order[i].first > kLeading * order[0].first) break;
      const VariantResult& variant = variants_.at(order[i].second);
      const bool has = absl::c_any_of(
          start.variants, [&](const VariantResult& of) { return NameOf(of) == order[i].second; });
      if (!has) start.variants.push_back(variant);
    }
  }

  /// Collective. The times of rank 0, which decide.
  absl::Status ShareTimes(const LoadedProgram& loaded, absl::Span<const VariantResult> start,
                          Tuned& tuned) {
    Packer mine;
    std::vector<VariantResult> timed, known = loaded.compiled->variants;
    if (known.empty() && state_->rank.rank() == 0)
      known = state_->cache->Variants(loaded.record.key);
    bool decided = true;
    for (const VariantResult& v : known) {
      const bool fails = FailsForGood(v.verdict) || MayPass(v.verdict);
      if (v.timing.samples > 0 && !fails) timed.push_back(v);
      const bool wanted =
          absl::c_any_of(start, [&](const VariantResult& of) { return SameVariant(of, v); });
      decided = decided && (!wanted || fails || v.timing.samples > 0);
    }
    decided = decided && (timed.size() > 1 || known.size() <= 1);
    if (timed.empty()) timed = {loaded.record.best, loaded.record.baseline};
    mine.Int(decided ? 1 : 0).Int(static_cast<int64_t>(timed.size()));
    for (const VariantResult& v : timed)
      mine.Text(v.trace).Text(Text(v.config)).Text(v.schedule).Real(v.timing.median_us);
    ASSIGN_OR_RETURN(const std::string all, state_->rank.exchange().Broadcast(mine.bytes()));
    Unpacker in(all);
    tuned.decided = in.Int() != 0;
    for (int64_t left = in.Int(); left > 0; --left) {
      VariantResult variant;
      variant.trace = in.Text();
      ASSIGN_OR_RETURN(variant.config, ParseConfig(in.Text()));
      variant.schedule = in.Text();
      const double us = in.Real();
      const std::string name = NameOf(variant);
      variants_.emplace(name, std::move(variant));
      if (us > 0) tuned.us[name] = us;
    }
    return in.Done();
  }

  absl::StatusOr<Tuned> TuneAt(const Line& line, int64_t size, std::optional<Start> start,
                               double budget_s) {
    SizeRanges box = line.at;
    box[main_] = {size, size};
    Tuned tuned{.size = size, .sizes = SizesOf(box)};
    Say(absl::StrCat("sizes ", Words(tuned.sizes), ": ",
                     start.has_value() ? "from neighbouring sizes" : "from all variants"));
    const std::vector<VariantResult> starts =
        start.has_value() ? start->variants : std::vector<VariantResult>();
    ASSIGN_OR_RETURN(Graph bound, BindSizes(symbolic_, tuned.sizes));
    ASSIGN_OR_RETURN(const Schedule canonical, InitialSchedule(bound));
    ASSIGN_OR_RETURN(const LoadedProgram loaded,
                     FindOrTune(state_, canonical.graph(), budget_s,
                                {.typical_rows = state_->options.typical_rows,
                                 .is_part = true,
                                 .start = std::move(start)}));
    tuned.record = loaded.record;
    tuned.code =
        FamilyCode(loaded.record.best.trace, loaded.record.best.config, *loaded.compiled->lowered);
    RETURN_IF_ERROR(ShareTimes(loaded, starts, tuned));
    return tuned;
  }

  /// Chooses among the winners, which were verified at their sizes, and adds the line's buckets.
  absl::Status MakeBuckets(const Line& line, const std::map<int64_t, Tuned>& tuned) {
    std::vector<const Tuned*> points;
    std::vector<std::string> winners;
    for (const auto& [size, point] : tuned) {
      points.push_back(&point);
      const std::string name = NameOf(point.record.best);
      if (!absl::c_linear_search(winners, name)) winners.push_back(name);
    }
    std::vector<std::vector<double>> us;
    for (const Tuned* point : points) {
      std::vector<double>& times = us.emplace_back();
      for (const std::string& winner : winners) {
        const auto at = point->us.find(winner);
        times.push_back(at == point->us.end() ? 0 : at->second);
      }
      // A winner of an earlier run may have no time.
      if (absl::c_all_of(times, [](double time) { return time <= 0; })) {
        times[absl::c_find(winners, NameOf(point->record.best)) - winners.begin()] =
            std::max(point->record.best.timing.median_us, 1e-6);
      }
    }
    ASSIGN_OR_RETURN(const std::vector<int> chosen, ConfirmedChanges(line, points, winners, us));
    Changeover begin{.at = ranges_.at(main_).lo, .bracket = 1};
    for (size_t from = 0, to = 0; from < points.size(); from = to + 1) {
      to = from;
      while (to + 1 < points.size() && chosen[to + 1] == chosen[from]) ++to;
      Changeover end{.at = ranges_.at(main_).hi + 1, .bracket = 1};
      if (to + 1 < points.size()) {
        ASSIGN_OR_RETURN(end, CrossoverOf(line, *points[to], *points[to + 1], winners[chosen[to]],
                                          winners[chosen[to + 1]]));
      }
      RETURN_IF_ERROR(
          AddBucket(line, begin, end, points, from, to, winners[chosen[from]], us, chosen[from]));
      begin = end;
    }
    return absl::OkStatus();
  }

  /// A variant for each point. Each change is timed once more, by rounds of the two variants alone
  /// at the point from which on the second one is chosen: what few samples among many variants have
  /// shown is confirmed, or taken back.
  absl::StatusOr<std::vector<int>> ConfirmedChanges(const Line& line,
                                                    const std::vector<const Tuned*>& points,
                                                    const std::vector<std::string>& winners,
                                                    std::vector<std::vector<double>>& us) {
    std::set<std::pair<size_t, std::pair<int, int>>> confirmed;
    while (true) {
      std::vector<int> chosen = FewestChanges(us, kTie);
      size_t at = 1;
      const auto change = [&] { return std::pair(at, std::pair(chosen[at - 1], chosen[at])); };
      while (at < chosen.size() && (chosen[at] == chosen[at - 1] || confirmed.contains(change())))
        ++at;
      if (at >= chosen.size()) return chosen;
      confirmed.insert(change());
      const int low = chosen[at - 1], high = chosen[at];
      if (us[at][low] <= 0) continue;  // it does not run there
      ASSIGN_OR_RETURN(const double ratio,
                       RatioAt(line, points[at]->size, winners[low], winners[high]));
      us[at][low] = us[at][high] * (ratio < kWorthAChange ? 1 : ratio);
    }
  }

  /// The lower variant's time over the upper one's; 1 if the budget has ended.
  absl::StatusOr<double> RatioAt(const Line& line, int64_t size, const std::string& lower,
                                 const std::string& upper) {
    ASSIGN_OR_RETURN(const bool is_over, IsOver());
    if (is_over) return 1.0;
    Start both{.variants = {variants_.at(lower), variants_.at(upper)},
               .promising = 0,
               .samples = 2 * kSamplesOfShort,
               .anew = true};
    ASSIGN_OR_RETURN(const Tuned tuned, TuneAt(line, size, both, BudgetOfPoint()));
    points_.push_back({tuned.sizes, tuned.record});
    const auto low = tuned.us.find(lower), high = tuned.us.find(upper);
    if (!tuned.decided) return 1.0;
    if (low == tuned.us.end()) return 2.0;  // it does not run at this size
    if (high == tuned.us.end()) return 0.5;
    return low->second / high->second;
  }

  absl::StatusOr<Changeover> CrossoverOf(const Line& line, const Tuned& below, const Tuned& above,
                                         const std::string& lower, const std::string& upper) {
    return FindCrossover(below.size, above.size,
                         [&](int64_t size) { return RatioAt(line, size, lower, upper); });
  }

  absl::Status AddBucket(const Line& line, const Changeover& begin, const Changeover& end,
                         const std::vector<const Tuned*>& points, size_t from, size_t to,
                         const std::string& winner, const std::vector<std::vector<double>>& us,
                         int chosen) {
    SizeBucket bucket{.box = line.box};
    bucket.box[main_] = {begin.at, end.at - 1};
    bucket.trace = variants_.at(winner).trace;
    bucket.config = variants_.at(winner).config;
    bucket.schedule = variants_.at(winner).schedule;
    bucket.bracket = begin.bracket;
    const auto end_at = [&](size_t at) {
      const Tuned& point = *points[at];
      const auto plain = point.us.find(NameOf(point.record.baseline));
      const double own = us[at][chosen];
      return SizeBucket::End{point.size, own, plain == point.us.end() ? own : plain->second};
    };
    bucket.first = end_at(from);
    bucket.last = end_at(to);
    bucket.machine = machine_;
    for (const Tuned* point : points) {
      if (NameOf(point->record.best) != winner) continue;
      bucket.key = point->record.key;
      if (!absl::c_linear_search(bucket.code, point->code)) bucket.code.push_back(point->code);
      if (!point->record.trust.empty()) bucket.checks = point->record.trust[0].checks;
    }
    RETURN_IF_ERROR(Validate(bucket));
    buckets_.push_back(std::move(bucket));
    return absl::OkStatus();
  }

  const std::shared_ptr<SessionState> state_;
  const Graph& symbolic_;
  const SizeRanges& ranges_;
  const std::string main_;
  const double start_s_;
  bool decided_ = true;
  std::string machine_;
  std::map<std::string, VariantResult> variants_;  // by name: trace, config, words
  std::vector<Tuned> lines_before_;
  std::vector<SizeBucket> buckets_;
  size_t line_begin_ = 0;  // the first bucket of the latest line
  std::vector<TunedSizes::Point> points_;
};

}  // namespace

absl::StatusOr<TunedRange> TuneRange(const std::shared_ptr<SessionState>& state,
                                     const Graph& symbolic, const SizeRanges& ranges) {
  return RangeTuner(state, symbolic, ranges).Run();
}

}  // namespace coconet
