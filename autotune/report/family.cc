#include "autotune/report/family.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/report/key_fields.h"
#include "autotune/session/explanation.h"

namespace coconet {
namespace {

/// A straight line between two sizes, of logarithms.
struct Line {
  std::string schedule;
  double begin = 0, end = 0;  // log of the time
  double At(double share) const { return begin + share * (end - begin); }
};

const std::string& FastestOf(const FamilySize& size) {
  return absl::c_min_element(size.by_schedule,
                             [](const auto& a, const auto& b) {
                               return a.second.timing.median_us < b.second.timing.median_us;
                             })
      ->first;
}

bool AreApart(const FamilySize& size, const std::string& a, const std::string& b) {
  const auto x = size.by_schedule.find(a), y = size.by_schedule.find(b);
  if (x == size.by_schedule.end() || y == size.by_schedule.end()) return false;
  const Timing &s = x->second.timing, &t = y->second.timing;
  return s.high_us < t.low_us || t.high_us < s.low_us;
}

/// The crossovers between two neighbouring sizes.
void AddBetween(const FamilySize& below, const FamilySize& above, std::vector<Crossover>& found) {
  std::vector<Line> lines;
  for (const auto& [schedule, point] : below.by_schedule) {
    const auto there = above.by_schedule.find(schedule);
    if (there != above.by_schedule.end())
      lines.push_back(
          {schedule, std::log(point.timing.median_us), std::log(there->second.timing.median_us)});
  }
  std::string at = FastestOf(below);
  const std::string last = FastestOf(above);
  const auto add = [&](const std::string& to, double size, double us) {
    found.push_back({at, to, below.size, above.size, size, us,
                     AreApart(below, at, to) && AreApart(above, at, to)});
    at = to;
  };
  double share = 0;  // of the way from `below` to `above`
  while (at != last) {
    const auto line = absl::c_find_if(lines, [&](const Line& of) { return of.schedule == at; });
    // Two that end at the same time are both the fastest.
    if (line != lines.end() && line->end <= std::log(above.by_schedule.at(last).timing.median_us))
      return;
    const Line* next = nullptr;
    double next_share = 0;
    for (const Line& other : lines) {
      if (line == lines.end()) break;
      // The slope decides: only a line that falls behind less can pass below.
      const double gains = (line->end - line->begin) - (other.end - other.begin);
      if (!(gains > 0)) continue;
      const double meets = (other.begin - line->begin) / gains;
      if (meets < share || meets > 1) continue;
      if (next == nullptr || meets < next_share) {
        next = &other;
        next_share = meets;
      }
    }
    if (next == nullptr) {
      add(last, 0, 0);
      return;
    }
    share = next_share;
    const double size =
        std::exp(std::log(below.size) + share * (std::log(above.size) - std::log(below.size)));
    add(next->schedule, size, std::exp(next->At(share)));
  }
}

FamilySize SizeOf(const ReportRecord& of) {
  FamilySize size{.record = &of, .best = of.record.best.schedule};
  for (const VariantResult& v : of.variants) {
    if (v.timing.samples == 0 || !(v.timing.median_us > 0)) continue;
    SizePoint& point = size.by_schedule[v.schedule];
    if (point.timing.samples == 0 || v.timing.median_us < point.timing.median_us)
      point = {v.timing, absl::StrCat(v.protocol, " ", Text(v.config))};
  }
  return size;
}

/// Sets sizes to the one extent that differs, or else to the number of elements of all tensors.
void SetSizes(SizeFamily& family) {
  std::vector<std::vector<int64_t>> extents;
  for (const FamilySize& size : family.sizes)
    extents.push_back(ExtentsOf(KeyOf(size.record->record.key_text)));
  std::set<std::vector<int64_t>> varying;  // by place: the extents of all records
  for (size_t place = 0; place < extents[0].size(); ++place) {
    std::vector<int64_t> across;
    for (const std::vector<int64_t>& of : extents) across.push_back(of[place]);
    if (std::set<int64_t>(across.begin(), across.end()).size() > 1) varying.insert(across);
  }
  family.size_is = varying.size() == 1 ? "extent that differs, in elements"
                                       : "elements of all inputs and states";
  for (size_t i = 0; i < family.sizes.size(); ++i) {
    family.sizes[i].size = varying.size() == 1
                               ? static_cast<double>((*varying.begin())[i])
                               : ElementsOf(KeyOf(family.sizes[i].record->record.key_text));
  }
  absl::c_stable_sort(family.sizes,
                      [](const FamilySize& a, const FamilySize& b) { return a.size < b.size; });
  const auto same =
      std::unique(family.sizes.begin(), family.sizes.end(),
                  [](const FamilySize& a, const FamilySize& b) { return a.size == b.size; });
  family.sizes.erase(same, family.sizes.end());
}

void SetLimits(SizeFamily& family) {
  for (const FamilySize& size : family.sizes) {
    const TuningRecord& r = size.record->record;
    if (r.best.timing.median_us > 0 && !IsOnSimulatedGpus(r))
      family.best_bytes_per_us =
          std::max(family.best_bytes_per_us,
                   static_cast<double>(r.necessary_bytes) / r.best.timing.median_us);
  }
  if (family.best_bytes_per_us == 0) return;
  for (FamilySize& size : family.sizes)
    size.limit_us =
        static_cast<double>(size.record->record.necessary_bytes) / family.best_bytes_per_us;
}

}  // namespace

std::vector<Crossover> CrossoversOf(absl::Span<const FamilySize> sizes) {
  std::vector<Crossover> found;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) AddBetween(sizes[i], sizes[i + 1], found);
  return found;
}

std::vector<std::string> SizeFamily::Schedules() const {
  struct Rank {
    int wins = 0;
    double nearest = 0;  // the time over the fastest
  };
  std::map<std::string, Rank> ranks;
  for (const FamilySize& size : sizes) {
    const std::string& fastest = FastestOf(size);
    const double us = size.by_schedule.at(fastest).timing.median_us;
    for (const auto& [schedule, point] : size.by_schedule) {
      Rank& rank = ranks[schedule];
      rank.wins += schedule == fastest;
      const double ratio = point.timing.median_us / us;
      rank.nearest = rank.nearest == 0 ? ratio : std::min(rank.nearest, ratio);
    }
  }
  std::vector<std::string> order;
  for (const auto& [schedule, rank] : ranks) order.push_back(schedule);
  absl::c_stable_sort(order, [&](const std::string& a, const std::string& b) {
    return std::tuple(-ranks[a].wins, ranks[a].nearest) <
           std::tuple(-ranks[b].wins, ranks[b].nearest);
  });
  return order;
}

std::vector<SizeFamily> FamiliesOf(absl::Span<const ReportRecord> records) {
  std::map<std::string, SizeFamily> by_key;
  std::vector<std::string> order;  // as the newest record of each comes
  for (const ReportRecord& of : records) {
    FamilySize size = SizeOf(of);
    if (size.by_schedule.empty()) continue;
    const std::string key = FamilyKey(of.record.key_text);
    const auto [at, is_new] = by_key.try_emplace(key);
    if (is_new) order.push_back(key);
    at->second.sizes.push_back(std::move(size));
  }
  std::vector<SizeFamily> families;
  for (const std::string& key : order) {
    SizeFamily& family = by_key[key];
    SetSizes(family);
    if (family.sizes.size() < 2) continue;
    SetLimits(family);
    family.crossovers = CrossoversOf(family.sizes);
    const TuningRecord& newest = family.sizes[0].record->record;
    const std::string ranks = KeyOf(newest.key_text).Field("ranks");
    family.title =
        absl::StrCat(ProgramOfKey(newest.key_text), ", ", ranks, ranks == "1" ? " rank" : " ranks");
    families.push_back(std::move(family));
  }
  return families;
}

}  // namespace coconet
