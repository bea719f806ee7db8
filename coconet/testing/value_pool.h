#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "coconet/testing/draft.h"
#include "coconet/testing/random_program.h"

namespace coconet {

/// Draws at random, among choices and among the values of a draft that were kept. A pure function
/// of the seed, the options and the calls.
class ValuePool {
 protected:
  ValuePool(uint64_t seed, std::string name, const RandomProgramOptions& options)
      : options_(options), draft_(std::move(name)), random_(seed) {}

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
  DType AnyDType();

  const std::vector<Drafted>& values() const { return values_; }
  /// Keeps the value for later operations, if it is there; scaled down if it may have grown, but
  /// not in symbolic programs, which have no bounds. Returns what is kept.
  Drafted Keep(Drafted v);

  // All of these prefer young values, so that chains get long. In a step only AnyLocal draws a
  // local value: all others are computed from reduced ones.

  using Condition = std::function<bool(const TensorType&)>;
  /// Absent if no value meets the condition.
  Drafted AnyOf(const Condition& condition);
  Drafted Any();
  Drafted AnyTensor();  // that is no scalar
  Drafted AnyWhole();   // tensor that is not sliced
  Drafted AnyLocal();   // of numbers

  /// Cast to f32 unless the value has numbers, or floats.
  Drafted Numbers(Drafted v);
  Drafted Floats(Drafted v);

  const RandomProgramOptions options_;
  ProgramDraft draft_;

 private:
  Drafted Young(const Condition& condition);

  std::mt19937_64 random_;
  std::vector<Drafted> values_;
};

}  // namespace coconet
