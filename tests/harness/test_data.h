#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "coconet/base/dtype.h"

namespace coconet {

/// The value of an element of an input, or of a state before the first step: a pure function of its
/// arguments, representable in `dtype`. Floats lie in [-1, 1]; those of `lr` in [0, 1] and of `v`,
/// second moments, in [1/16, 1]; `step` counts from 1; `wild`, an i32, is what no index, offset or
/// count should be, every other time. In one step of four, one element in 24 of
/// the others is special: NaN, infinite, zero or the least subnormal number, of either sign.
Number TestValue(uint64_t seed, const std::string& name, DType dtype, int step, int rank,
                 int64_t index);

/// Whether TestValue has special values in this step.
bool HasSpecialValues(uint64_t seed, int step);

/// Where a test's inputs and first states come from: a pure function like TestValue, of one seed.
/// The value must be representable in `dtype`.
using StepData =
    std::function<Number(const std::string& name, DType dtype, int step, int rank, int64_t index)>;
/// TestValue.
StepData UsualData(uint64_t seed);

/// COCONET_SEED, else one that differs from run to run.
uint64_t FreshSeed();

/// A pure function of its arguments, spread over all 64 bits.
uint64_t Mix(uint64_t a, uint64_t b);

}  // namespace coconet
