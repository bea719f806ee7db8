#include "tests/harness/test_data.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "coconet/base/env.h"

namespace coconet {
namespace {

/// The least second moment. If a moment may be 0, the error of a gradient summed in 16 bits has no
/// bound from its root on, and through a norm that would hide the whole tensor.
constexpr double kLeastMoment = 1.0 / 16;

/// In one step of kSpecialSteps, which the seed picks, one element in kSpecialElements is special.
constexpr uint64_t kSpecialSteps = 4, kSpecialElements = 24;

/// A number at an end of the type, a zero, an infinity or NaN. Floats have either sign.
double SpecialValue(DType dtype, uint64_t random) {
  if (!IsFloat(dtype)) return 0;
  const double kinds[] = {std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity(), 0, MinSubnormal(dtype)};
  return std::copysign(kinds[random / 2 % std::size(kinds)], random % 2 == 0 ? 1 : -1);
}

/// An i32 that no index, offset or count should be, or a small one.
double WildInteger(uint64_t random) {
  constexpr double kGreatest = std::numeric_limits<int32_t>::max();
  const double kinds[] = {-kGreatest - 1, kGreatest, kGreatest - 1, -1e9, 1e9, -1, 1 << 16, 100};
  const uint64_t kind = random % (2 * std::size(kinds));
  return kind < std::size(kinds) ? kinds[kind] : static_cast<double>(random / 64 % 8);
}

}  // namespace

uint64_t Mix(uint64_t a, uint64_t b) {  // splitmix64
  uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool HasSpecialValues(uint64_t seed, int step) {
  return Mix(seed, static_cast<uint64_t>(step)) % kSpecialSteps == 0;
}

Number TestValue(uint64_t seed, const std::string& name, DType dtype, int step, int rank,
                 int64_t index) {
  const std::string base = name.substr(0, name.find('.'));  // of tensors of a list, too
  if (base == "step") return step + 1;
  const bool may_be_special =
      Mix(seed, static_cast<uint64_t>(step)) % kSpecialSteps == 0 && base != "v" && base != "lr";
  for (char c : name) seed = Mix(seed, static_cast<unsigned char>(c));
  const uint64_t bits =
      Mix(Mix(Mix(seed, static_cast<uint64_t>(step)), static_cast<uint64_t>(rank)),
          static_cast<uint64_t>(index));
  if (base == "wild") return WildInteger(bits);
  double value = std::ldexp(static_cast<double>(bits >> 11), -52) - 1;
  if (base == "v" || base == "lr" || (IsInteger(dtype) && !IsSigned(dtype)))
    value = std::fabs(value);
  if (base == "v") value = kLeastMoment + (1 - kLeastMoment) * value;
  if (dtype == DType::kBool)
    value = value < 0;
  else if (!IsFloat(dtype))
    value *= 9;
  if (const uint64_t draw = Mix(bits, seed); may_be_special && draw % kSpecialElements == 0)
    value = SpecialValue(dtype, draw / kSpecialElements);
  return Stored(dtype, value);
}

StepData UsualData(uint64_t seed) {
  return [seed](const std::string& name, DType dtype, int step, int rank, int64_t index) {
    return TestValue(seed, name, dtype, step, rank, index);
  };
}

uint64_t FreshSeed() {
  static const uint64_t seed = GetEnv().seed.value_or(std::random_device()());
  return seed;
}

}  // namespace coconet
