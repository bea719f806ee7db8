#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace coconet {

/// What exploring may cost: in any `window` calls in a row, at most `allowance` more than the
/// incumbent's calls take, in steps of the incumbent. A call is reserved with the most that it may
/// take; once it has run, what it took replaces that, also if it is more. Calls are begun only
/// where Place admits them, so the bound holds as long as no call takes more than was reserved; a
/// call that does defers all others until it has left the window.
class ExcessAccount {
 public:
  ExcessAccount(int window, double allowance) : window_(window), allowance_(allowance) {}

  static constexpr int64_t kNever = -1;
  /// The first call from `from` on at which calls in a row may begin that take at most so much
  /// more; kNever if they are too much even for an empty window. `from` is behind all calls that
  /// are reserved.
  int64_t Place(int64_t from, absl::Span<const double> most) const;
  void Reserve(int64_t call, double most) { entries_.push_back({call, most}); }
  /// What a reserved call took.
  void Charge(int64_t call, double excess);
  /// Forgets calls that are outside of every window with `call` or a later one.
  void Forget(int64_t call);
  /// Measures in other steps, of which one that was counted before has `factor`.
  void Scale(double factor);

  double allowance() const { return allowance_; }

 private:
  struct Entry {
    int64_t call = 0;
    double excess = 0;  // the most, or what was measured
  };

  const int64_t window_;
  const double allowance_;
  std::vector<Entry> entries_;  // ascending
};

}  // namespace coconet
