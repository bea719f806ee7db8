#include "runtime/node/loops/halves.h"

namespace coconet {
namespace {

template <class Half>
CC_IN_BODY void WidenAs(float* out, const void* in, int64_t count) {
  const Half* half = static_cast<const Half*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = WidenHalf(half[i]);
}
template <class Half>
CC_IN_BODY void NarrowAs(void* out, const float* in, int64_t count) {
  Half* half = static_cast<Half*>(out);
  for (int64_t i = 0; i < count; ++i) half[i] = NarrowHalf<Half>(in[i]);
}
// The clones are local: callers see plain functions.
CC_FOR_EACH_CPU void Widen(DType dtype, float* out, const void* in, int64_t count) {
  return dtype == DType::kF16 ? WidenAs<F16>(out, in, count) : WidenAs<BF16>(out, in, count);
}
CC_FOR_EACH_CPU void Narrow(DType dtype, void* out, const float* in, int64_t count) {
  return dtype == DType::kF16 ? NarrowAs<F16>(out, in, count) : NarrowAs<BF16>(out, in, count);
}

}  // namespace

void WidenHalves(DType dtype, float* out, const void* in, int64_t count) {
  Widen(dtype, out, in, count);
}

void NarrowHalves(DType dtype, void* out, const float* in, int64_t count) {
  Narrow(dtype, out, in, count);
}

}  // namespace coconet
