#ifndef COCONET_TESTS_GOLDEN_TEXTS_H_
#define COCONET_TESTS_GOLDEN_TEXTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace coconet {

/// A committed file that the library makes.
struct GoldenText {
  std::string file;  // in the checkout
  std::string text;
};

/// Programs on their way, program, schedules, plan, kernel source (tests/goldens), and every
/// workload as a program in the text form (coconet/programs), made by the library as it is now.
absl::StatusOr<std::vector<GoldenText>> MakeGoldenTexts();

}  // namespace coconet

#endif  // COCONET_TESTS_GOLDEN_TEXTS_H_
