#ifndef COCONET_TESTS_GOLDEN_TEXTS_H_
#define COCONET_TESTS_GOLDEN_TEXTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace coconet {

/// A program on its way: program → schedules → plan → kernel source.
struct GoldenText {
  std::string file;  // under tests/goldens
  std::string text;
};

/// All of them, made by the library as it is now.
absl::StatusOr<std::vector<GoldenText>> MakeGoldenTexts();

}  // namespace coconet

#endif  // COCONET_TESTS_GOLDEN_TEXTS_H_
