#include "coconet/testing/value_pool.h"

#include <algorithm>
#include <cmath>

namespace coconet {

bool ValuePool::Keep(Drafted v) {
  if (v.there() && v.bound > 8 && IsFloat(draft_.type(v).dtype)) {
    v = draft_.Times(v, std::exp2(-std::ceil(std::log2(v.bound / 4))));
  }
  if (v.there() && draft_.type(v).dtype == DType::kU8) v.bound = 255;
  if (v.there()) values_.push_back(v);
  return v.there();
}

Drafted ValuePool::Any() {
  const int64_t all = static_cast<int64_t>(values_.size()), young = std::min<int64_t>(all, 5);
  return values_[Chance(60) ? all - 1 - Below(young) : Below(all)];
}

Drafted ValuePool::AnyTensor() {
  return AnyOf([](const TensorType& type) { return !type.shape.empty(); });
}

Drafted ValuePool::AnyLocal() {
  return AnyOf([](const TensorType& type) {
    return type.layout == Layout::Local() && type.dtype != DType::kBool;
  });
}

Drafted ValuePool::AnyWhole() {
  return AnyOf([](const TensorType& type) { return !type.layout.sliced() && !type.shape.empty(); });
}

Drafted ValuePool::Numbers(Drafted v) {
  return v.there() && draft_.type(v).dtype == DType::kBool ? draft_.Cast(DType::kF32, v) : v;
}

Drafted ValuePool::Floats(Drafted v) {
  return v.there() && !IsFloat(draft_.type(v).dtype) ? draft_.Cast(DType::kF32, v) : v;
}

}  // namespace coconet
