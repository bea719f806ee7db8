#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// A committed file that the library makes.
struct GoldenText {
  std::string file;  // in the checkout
  std::string text;
};

/// Programs with their schedules, plans and kernel sources (tests/goldens), and every workload in
/// the text form, of f32 (coconet/programs) and of bf16 (tests/goldens), and Python's elementwise
/// functions, as the library makes them now.
absl::StatusOr<std::vector<GoldenText>> MakeGoldenTexts();

/// All workloads of one type in the text form.
absl::StatusOr<std::string> WorkloadsText(DType dtype);

}  // namespace coconet
