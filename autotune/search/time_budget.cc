#include "autotune/search/time_budget.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<std::vector<int>> FromRank0(Exchange& exchange, const std::vector<int>& mine) {
  Packer out;
  out.Int(static_cast<int64_t>(mine.size()));
  for (int number : mine) out.Int(number);
  ASSIGN_OR_RETURN(const std::string said, exchange.Broadcast(out.bytes()));
  Unpacker in(said);
  std::vector<int> numbers;
  for (int64_t left = in.Int(); left > 0; --left) numbers.push_back(static_cast<int>(in.Int()));
  RETURN_IF_ERROR(in.Done());
  return numbers;
}

absl::StatusOr<int> FromRank0(Exchange& exchange, int mine) {
  ASSIGN_OR_RETURN(const std::vector<int> numbers, FromRank0(exchange, std::vector<int>{mine}));
  return numbers[0];
}

double TimeBudget::LeftSeconds(double share) const {
  if (!options_.seconds) return std::numeric_limits<double>::infinity();
  return share * std::min(options_.budget_s, worth_s_) - (options_.seconds() - options_.start_s);
}

TimeBudget::Stop TimeBudget::Asked() const {
  if (options_.interrupted && options_.interrupted()) return Stop::kInterrupted;
  if (!has_result_ || LeftSeconds() >= 0) return Stop::kNo;
  return worth_s_ < options_.budget_s ? Stop::kWorth : Stop::kBudget;
}

void TimeBudget::EndIn(double seconds) {
  worth_is_spent_ = worth_is_spent_ || stop_ == Stop::kWorth;
  if (stop_ == Stop::kWorth) stop_ = Stop::kNo;
  if (options_.seconds) worth_s_ = options_.seconds() - options_.start_s + seconds;
}

absl::StatusOr<bool> TimeBudget::GoOn() {
  if (stop_ != Stop::kNo) return false;
  ASSIGN_OR_RETURN(const int asked, FromRank0(exchange_, static_cast<int>(Asked())));
  stop_ = static_cast<Stop>(asked);
  return stop_ == Stop::kNo;
}

std::string TimeBudget::Reason() const {
  if (stop_ == Stop::kWorth || (stop_ == Stop::kNo && worth_is_spent_))
    return "it would take longer than it can save";
  return stop_ == Stop::kInterrupted ? "interrupted"
                                     : absl::StrFormat("budget of %.4g s ended", options_.budget_s);
}

}  // namespace coconet
