#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "autotune/search/tuning.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr size_t kBatch = 8;  // variants tried between two forecasts
/// Other numbers rarely make a schedule faster by more than this factor.
constexpr double kWorthRefining = 1.6;

}  // namespace

std::vector<int> Tuning::Scouts() const {
  std::set<int> groups;
  for (int v : tried_) groups.insert(entrants_[v].group);
  std::vector<int> scouts;
  for (int v = 0; v < size(); ++v) {
    if (Open(v) && groups.insert(entrants_[v].group).second) scouts.push_back(v);
  }
  return scouts;
}

double Tuning::Quickest(int v) const {
  const Timing timing = race_.timing(v);
  return timing.samples > 0 ? timing.low_us : step_us_[v];
}

std::vector<int> Tuning::Followers() {
  const int fastest = race_.Fastest();
  std::map<int, int> scouts;
  for (int v : tried_) scouts.emplace(entrants_[v].group, v);
  std::vector<int> followers;
  for (int v = 0; v < size(); ++v) {
    if (!Open(v)) continue;
    const auto at = scouts.find(entrants_[v].group);
    const VariantResult* scout = at == scouts.end() ? nullptr : &result(at->second);
    const bool ran = scout != nullptr && fastest >= 0 && !IsFailure(scout->verdict);
    // By the minimum: one slow sample must not rule out a group.
    const double ratio = ran ? Quickest(at->second) / race_.timing(fastest).median_us : 0;
    if (!options_.tries_all && ran && ratio > kWorthRefining) {
      result(v).verdict = Verdict::kPruned;
      result(v).reason = absl::StrFormat("schedule %.1fx slower, plain numbers", ratio);
    } else {
      followers.push_back(v);
    }
  }
  return followers;
}

bool Tuning::AnyOpen() const {
  for (int v = 0; v < size(); ++v) {
    if (Open(v)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<int>> Tuning::FromRank0(const std::vector<int>& mine) {
  Packer out;
  out.Int(static_cast<int64_t>(mine.size()));
  for (int number : mine) out.Int(number);
  ASSIGN_OR_RETURN(const std::string said, exchange_.Broadcast(out.bytes()));
  Unpacker in(said);
  std::vector<int> numbers;
  for (int64_t left = in.Int(); left > 0; --left) numbers.push_back(static_cast<int>(in.Int()));
  RETURN_IF_ERROR(in.Done());
  return numbers;
}

absl::Status Tuning::Explore(Of which, double share) {
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<int> batch,
                     NextBatch(which == Of::kScouts ? Scouts() : Followers(), share));
    if (batch.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(Try(batch));
  }
}

absl::StatusOr<std::vector<int>> Tuning::NextBatch(const std::vector<int>& open, double share) {
  open_ = open.size();
  const bool spent =
      options_.seconds && options_.seconds() - options_.start_s > share * options_.budget_s;
  std::vector<int> chosen;
  if (stop_ == Stop::kNo && !(spent && race_.Fastest() >= 0))
    chosen = forecast_.MostPromising(open, kBatch);
  return FromRank0(chosen);
}

absl::Status Tuning::Thin(int rounds, double share) {
  std::vector<double> round_us;  // per running variant: time of one sample
  for (int v = 0; v < size(); ++v) {
    if (race_.running(v)) round_us.push_back(std::max(step_us_[v], kSampleUs));
  }
  std::sort(round_us.begin(), round_us.end());
  const double left_us =
      options_.seconds ? 1e6 * (share * options_.budget_s - (options_.seconds() - options_.start_s))
                       : std::numeric_limits<double>::infinity();
  size_t keep = 0;
  for (double sum = 0; keep < round_us.size(); ++keep) {
    sum += round_us[keep] * std::max(rounds, 1);
    if (sum > left_us && static_cast<int>(keep) >= options_.race.finalists) break;
  }
  ASSIGN_OR_RETURN(const std::vector<int> most, FromRank0({static_cast<int>(keep)}));
  Prune(race_.KeepQuickest(most[0]));
  return absl::OkStatus();
}

}  // namespace coconet
