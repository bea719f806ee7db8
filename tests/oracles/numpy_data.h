#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "tests/harness/test_data.h"

namespace coconet {

/// What programs that are compared with NumPy are given.
enum class NumpyDataKind : uint8_t {
  kNatural,  // normal numbers of both signs, over many orders of magnitude, and zeros
  kSpecial,  // among these NaN, infinities, zeros of both signs, subnormals, the greatest numbers:
             // one in 300 in the first step, so that sums over all elements of a result that few of
             // them reach stay numbers, and one in 8 in later ones
  kExtreme,  // the same without NaN and infinities: many subnormals, few numbers near overflow
};
inline constexpr NumpyDataKind kAllDataKinds[] = {NumpyDataKind::kNatural, NumpyDataKind::kSpecial,
                                                  NumpyDataKind::kExtreme};
absl::string_view Name(NumpyDataKind kind);

/// Scalars of a step have values that fit their names, whatever the kind: `lr` in (0, 0.1], `step`
/// from 1, `scale` 1024, `good` 1999, `seed` any. So do `v`, second moments, which are not
/// negative, and `index`, from -3 to 40.
StepData DataFor(NumpyDataKind kind, uint64_t seed);

}  // namespace coconet
