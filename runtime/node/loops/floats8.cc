#include "runtime/node/loops/floats8.h"

namespace coconet {
namespace {

template <class Float8>
CC_IN_BODY void WidenAs(float* out, const void* in, int64_t count) {
  const Float8* from = static_cast<const Float8*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = WidenFloat8(from[i]);
}
// The clones are local: callers see a plain function.
CC_FOR_EACH_CPU void Widen(DType dtype, float* out, const void* in, int64_t count) {
  return dtype == DType::kF8E4M3 ? WidenAs<F8E4M3>(out, in, count)
                                 : WidenAs<F8E5M2>(out, in, count);
}

}  // namespace

void WidenFloats8(DType dtype, float* out, const void* in, int64_t count) {
  Widen(dtype, out, in, count);
}

}  // namespace coconet
