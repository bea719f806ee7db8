#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Sends rank 0's numbers to all ranks. Collective. For decisions by rank 0's clock or its
/// floating-point library, whose last digits differ between processors.
absl::StatusOr<std::vector<int>> FromRank0(Exchange& exchange, const std::vector<int>& mine);
/// The same for one number.
absl::StatusOr<int> FromRank0(Exchange& exchange, int mine);

/// Ends tuning after its time, or when the user interrupts. The clock is rank 0's.
class TimeBudget {
 public:
  enum class Stop : uint8_t { kNo, kBudget, kWorth, kInterrupted };

  struct Options {
    double budget_s = 60;
    double start_s = 0;                 // on the clock `seconds`
    std::function<double()> seconds;    // a monotonic clock; set on rank 0 only
    std::function<bool()> interrupted;  // set on rank 0 only; may be empty
  };
  TimeBudget(Options options, Exchange& exchange)
      : options_(std::move(options)), exchange_(exchange) {}

  /// Called once a variant was measured. Before, only an interrupt stops.
  void HasResult() { has_result_ = true; }

  /// Ends tuning so many seconds after its start, where the budget does not end it before.
  void SetWorth(double seconds) { worth_s_ = seconds; }
  /// Ends tuning so many seconds from now instead, where the budget does not end it before.
  void EndIn(double seconds);
  /// Whether tuning went on by EndIn after it had taken as long as it is worth.
  bool worth_is_spent() const { return worth_is_spent_; }

  /// On rank 0 (elsewhere as if no time had passed):
  double Now() const { return options_.seconds ? options_.seconds() : 0; }
  double LeftSeconds(double share = 1) const;  // of that share of the budget
  Stop Asked() const;

  /// Collective. False once the time is over or the user interrupted; then it stays false.
  absl::StatusOr<bool> GoOn();
  /// Notes, on all ranks, that the user interrupted.
  void Interrupt() { stop_ = Stop::kInterrupted; }

  Stop stop() const { return stop_; }
  std::string Reason() const;  // "interrupted", "budget of 60 s ended"

 private:
  const Options options_;
  Exchange& exchange_;
  double worth_s_ = std::numeric_limits<double>::infinity();
  bool worth_is_spent_ = false;
  bool has_result_ = false;
  Stop stop_ = Stop::kNo;
};

}  // namespace coconet
