#include "tests/oracles/numpy_data.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Random numbers of one element.
class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint64_t Word() { return Mix(seed_, ++drawn_); }
  bool OneIn(uint64_t count) { return Word() % count == 0; }
  double Uniform() {
    return std::ldexp(static_cast<double>(Word() >> 11) + 0.5, -53);
  }  // in (0, 1)
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * M_PI * Uniform());  // Box-Muller
  }
  double Signed(double value) { return OneIn(2) ? -value : value; }
  template <class T, size_t N>
  T Of(const T (&values)[N]) {
    return values[Word() % N];
  }

 private:
  uint64_t seed_;
  uint64_t drawn_ = 0;
};

double Natural(DType dtype, Draws& draws) {
  if (dtype == DType::kBool) return draws.OneIn(2);
  if (!IsFloat(dtype)) {
    return std::floor(
        draws.Between(std::max(MinFinite(dtype), -1000.0), std::min(MaxFinite(dtype) + 1, 1000.0)));
  }
  if (draws.OneIn(16)) return 0;
  const double spread = dtype == DType::kF16 ? 3 : 6;  // of exponents; squares stay finite in f16
  return draws.Normal() * std::exp2(draws.Between(-spread, spread));
}

double Tiny(DType dtype, Draws& draws) {
  const double least = MinSubnormal(dtype), normal = least / (2 * UnitRoundoff(dtype));
  const double some = std::ceil(draws.Between(0, normal / least)) * least;
  return draws.Signed(draws.Of({0.0, least, some, normal - least, normal, 3 * normal}));
}

/// Large enough for sums or squares to overflow, however they are rounded: not just as large.
double Huge(DType dtype, Draws& draws) {
  const double most = MaxFinite(dtype), root = std::sqrt(most);
  return draws.Of({0.875 * most, most * draws.Uniform(), root / 8, root * 5});
}

/// `sign`: of huge numbers, one for a tensor, so that sums of few are decided in any order.
Number Special(DType dtype, double sign, Draws& draws) {
  if (!IsFloat(dtype)) {
    const Number any = Wrapped(dtype, draws.Word());
    return draws.Of<Number>({0, 1, Stored(dtype, -1), Least(dtype), Greatest(dtype), any});
  }
  const double most = MaxFinite(dtype);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double tiny = Tiny(dtype, draws);
  const double huge = sign * (draws.OneIn(4) ? most : Huge(dtype, draws));
  return draws.Of({std::nan(""), kInf, -kInf, 0.0, -0.0, tiny, tiny, huge});
}

Number Value(NumpyDataKind kind, DType dtype, int step, double sign, Draws& draws) {
  switch (kind) {
    case NumpyDataKind::kNatural:
      return Natural(dtype, draws);
    case NumpyDataKind::kSpecial:
      return draws.OneIn(step == 0 ? 300 : 8) ? Special(dtype, sign, draws) : Natural(dtype, draws);
    case NumpyDataKind::kExtreme:
      if (!IsFloat(dtype))
        return draws.OneIn(4) ? Special(dtype, sign, draws) : Natural(dtype, draws);
      if (draws.OneIn(step == 0 ? 1000 : 200)) return sign * Huge(dtype, draws);
      return draws.OneIn(4) ? Tiny(dtype, draws) : Natural(dtype, draws);
  }
  CC_CHECK(false);
}

}  // namespace

absl::string_view Name(NumpyDataKind kind) {
  switch (kind) {
    case NumpyDataKind::kNatural:
      return "natural";
    case NumpyDataKind::kSpecial:
      return "special";
    case NumpyDataKind::kExtreme:
      return "extreme";
  }
  CC_CHECK(false);
}

StepData DataFor(NumpyDataKind kind, uint64_t seed) {
  return [=](const std::string& name, DType dtype, int step, int rank, int64_t index) -> Number {
    uint64_t mixed = Mix(seed, static_cast<uint64_t>(kind));
    for (char c : name) mixed = Mix(mixed, static_cast<unsigned char>(c));
    mixed = Mix(mixed, static_cast<uint64_t>(step));
    const double sign = Draws(mixed).Signed(1);
    Draws draws(Mix(Mix(mixed, static_cast<uint64_t>(rank)), static_cast<uint64_t>(index)));
    const std::string base = name.substr(0, name.find('.'));  // of tensors of a list, too
    if (base == "step") return step + 1;
    if (base == "scale") return 1024;
    if (base == "good") return 1999;
    if (base == "lr") return Stored(dtype, 0.1 * draws.Uniform());
    if (base == "seed") return std::floor(draws.Between(-0x1p40, 0x1p40));
    if (base == "index") return std::floor(draws.Between(-3, 41));
    if (base == "token" || base == "count") return std::floor(draws.Between(-2, 12));
    const Number value = Value(kind, dtype, step, sign, draws);
    return Stored(dtype, base == "v" ? std::fabs(value.real()) : value);
  };
}

}  // namespace coconet
