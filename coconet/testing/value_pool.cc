#include "coconet/testing/value_pool.h"

#include <algorithm>
#include <cmath>

namespace coconet {

DType ValuePool::AnyDType() {
  static constexpr DType kUsual[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
  if (!options_.all_dtypes) return DType::kF32;
  static constexpr int kPercentUsual[] = {0, 100, 80};  // by kind
  return Chance(kPercentUsual[static_cast<size_t>(options_.kind)]) ? Pick(kUsual)
                                                                   : Pick(kAllDTypes);
}

Drafted ValuePool::Keep(Drafted v) {
  if (!v.there()) return v;
  const DType dtype = draft_.type(v).dtype;
  if (options_.kind == ProgramKind::kSymbolic) {
    v.bound = 0;
  } else if (v.bound > 8 && IsFloat(dtype)) {
    v = draft_.Times(v, std::exp2(-std::ceil(std::log2(v.bound / 4))));
  } else if (IsInteger(dtype) && (!IsSigned(dtype) || SizeOf(dtype) < sizeof(int32_t))) {
    v.bound = std::max(MaxFinite(dtype), -MinFinite(dtype));  // it may have wrapped
  }
  values_.push_back(v);
  return v;
}

Drafted ValuePool::Young(const Condition& condition) {
  std::vector<Drafted> met;
  for (const Drafted& v : values_) {
    if (condition(draft_.type(v))) met.push_back(v);
  }
  if (met.empty()) return {};
  const int64_t all = static_cast<int64_t>(met.size()), young = std::min<int64_t>(all, 5);
  return met[Chance(60) ? all - 1 - Below(young) : Below(all)];
}

Drafted ValuePool::AnyOf(const Condition& condition) {
  return Young([&](const TensorType& type) {
    return condition(type) &&
           (options_.kind != ProgramKind::kStep || type.layout != Layout::Local());
  });
}

Drafted ValuePool::Any() {
  return AnyOf([](const TensorType&) { return true; });
}

Drafted ValuePool::AnyTensor() {
  return AnyOf([](const TensorType& type) { return !type.shape.empty(); });
}

Drafted ValuePool::AnyWhole() {
  return AnyOf([](const TensorType& type) { return !type.layout.sliced() && !type.shape.empty(); });
}

Drafted ValuePool::AnyLocal() {
  return Young([](const TensorType& type) {
    return type.layout == Layout::Local() && type.dtype != DType::kBool;
  });
}

Drafted ValuePool::Numbers(Drafted v) {
  return v.there() && draft_.type(v).dtype == DType::kBool ? draft_.Cast(DType::kF32, v) : v;
}

Drafted ValuePool::Floats(Drafted v) {
  return v.there() && !IsFloat(draft_.type(v).dtype) ? draft_.Cast(DType::kF32, v) : v;
}

}  // namespace coconet
