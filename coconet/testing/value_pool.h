#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "coconet/testing/draft.h"

namespace coconet {

/// Draws at random, among choices and among the values of a draft that were kept. A pure function
/// of the seed and the calls.
class ValuePool {
 protected:
  ValuePool(uint64_t seed, std::string name) : draft_(std::move(name)), random_(seed) {}

  // Not the standard's distributions: those differ between libraries.
  int Below(int64_t limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class C>
  auto Pick(const C& choices) {
    return std::data(choices)[Below(static_cast<int64_t>(std::size(choices)))];
  }
  template <class T>
  T Pick(std::initializer_list<T> choices) {
    return choices.begin()[Below(static_cast<int64_t>(choices.size()))];
  }

  const std::vector<Drafted>& values() const { return values_; }
  /// Keeps the value for later operations, scaled down where it may have grown; whether it is
  /// there.
  bool Keep(Drafted v);

  /// Prefers young values, so that chains get long. Requires a value.
  Drafted Any();
  /// One of which the condition holds, if a few draws find it.
  template <class Condition>
  Drafted AnyOf(Condition condition) {
    for (int i = 0; i < 8; ++i) {
      const Drafted v = Any();
      if (condition(draft_.type(v))) return v;
    }
    return {};
  }
  Drafted AnyTensor();  // that is no scalar
  Drafted AnyLocal();   // of numbers
  Drafted AnyWhole();   // tensor that is not sliced
  /// Cast where it is a bool, or no float.
  Drafted Numbers(Drafted v);
  Drafted Floats(Drafted v);

  Draft draft_;

 private:
  std::mt19937_64 random_;
  std::vector<Drafted> values_;
};

}  // namespace coconet
