// Compiled once per instruction set; COCONET_KERNELS names the table to define.
#include "bench/baselines/decode_loops.h"
#include "bench/baselines/epilogue_loops.h"
#include "bench/baselines/instruction_sets.h"
#include "bench/baselines/lamb_loops.h"
#include "bench/baselines/lanes.h"
#include "bench/baselines/pooling_loops.h"
#include "bench/baselines/stream_loops.h"

namespace coconet::bench {
namespace {

/// Values of type T (a vector, or one lane for the tail) after the step.
template <class T>
struct Updated {
  T w, m, v;
};
template <class T>
inline Updated<T> Step(const AdamStep& s, T sum, T w, T m, T v) {
  const T g = sum * s.inverse_ranks;
  m = m * s.b1 + g * s.one_minus_b1;
  v = v * s.b2 + g * g * s.one_minus_b2;
  w = w - m * s.c1 / (Sqrt(v * s.c2) + s.eps);
  return {w, m, v};
}

template <bool kStreaming>
void Adam(const AdamStep& step, const float* sum, float* p, float* m, float* v, int64_t n) {
  const AdamStep s = step;  // a copy: stores through pointers cannot change it
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Updated<Lanes> to =
        Step(s, Load<Lanes>(sum + i), Load<Lanes>(p + i), Load<Lanes>(m + i), Load<Lanes>(v + i));
    if constexpr (kStreaming) {
      StoreStreaming(p + i, to.w);
      StoreStreaming(m + i, to.m);
      StoreStreaming(v + i, to.v);
    } else {
      Store(p + i, to.w);
      Store(m + i, to.m);
      Store(v + i, to.v);
    }
  }
  for (; i < n; ++i) {
    const Updated<float> to = Step(s, sum[i], p[i], m[i], v[i]);
    p[i] = to.w;
    m[i] = to.m;
    v[i] = to.v;
  }
  if constexpr (kStreaming) StreamingFence();
}

inline float Wide(float x) { return x; }
inline Lanes Wide(Lanes x) { return x; }
inline float Wide(_Float16 x) { return Widen(x); }
inline Lanes Wide(Halves x) { return Widen(x); }

/// SumVector: vector of the sum's element type, kLanes long.
template <class Sum, class SumVector>
void AdamMixed(const AdamStep& step, const Sum* sum, _Float16* p, float* w, float* m, float* v,
               int64_t n) {
  const AdamStep s = step;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Updated<Lanes> to = Step(s, Wide(Load<SumVector>(sum + i)), Load<Lanes>(w + i),
                                   Load<Lanes>(m + i), Load<Lanes>(v + i));
    Store(w + i, to.w);
    Store(m + i, to.m);
    Store(v + i, to.v);
    Store(p + i, Narrow(to.w));
  }
  for (; i < n; ++i) {
    const Updated<float> to = Step(s, Wide(sum[i]), w[i], m[i], v[i]);
    w[i] = to.w;
    m[i] = to.m;
    v[i] = to.v;
    p[i] = Narrow(to.w);
  }
}

// kernels.h has no _Float16, because not every compiler that includes it knows the type.
const _Float16* Bits(const uint16_t* p) { return reinterpret_cast<const _Float16*>(p); }
_Float16* Bits(uint16_t* p) { return reinterpret_cast<_Float16*>(p); }

void AdamFromF32(const AdamStep& s, const float* sum, uint16_t* p, float* w, float* m, float* v,
                 int64_t n) {
  AdamMixed<float, Lanes>(s, sum, Bits(p), w, m, v, n);
}
void AdamFromF16(const AdamStep& s, const uint16_t* sum, uint16_t* p, float* w, float* m, float* v,
                 int64_t n) {
  AdamMixed<_Float16, Halves>(s, Bits(sum), Bits(p), w, m, v, n);
}

void WidenAll(const uint16_t* in, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, Widen(Load<Halves>(in + i)));
  for (; i < n; ++i) out[i] = Widen(Bits(in)[i]);
}

void AddHalf(const uint16_t* in, uint16_t* inout, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(inout + i, Narrow(Widen(Load<Halves>(in + i)) + Widen(Load<Halves>(inout + i))));
  }
  for (; i < n; ++i) Bits(inout)[i] = Narrow(Widen(Bits(in)[i]) + Widen(Bits(inout)[i]));
}

enum class Stores { kPlain, kStreamingWeights, kStreaming, kFresh };

template <bool kStream, class T>
inline void StoreBy(void* to, T value) {
  if constexpr (kStream)
    StoreStreaming(to, value);
  else
    Store(to, value);
}

/// Element: vector of the type of gradients and weights.
template <Stores kStores, int kRanks, class Element, int kWeights>
void Move(const LimitStreams& streams, int64_t n) {
  constexpr bool kToWeights = kStores != Stores::kPlain;
  constexpr bool kToStates = kStores == Stores::kStreaming || kStores == Stores::kFresh;
  constexpr int64_t kBytes = sizeof(Element) / kLanes;
  const LimitStreams s = streams;
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    Lanes sum = {};
    for (int r = 0; r < kRanks; ++r)
      sum += Wide(Load<Element>(static_cast<const char*>(s.gradients[r]) + i * kBytes));
    Lanes state[LimitStreams::kStates];
    for (int k = 0; k < LimitStreams::kStates; ++k) {
      state[k] = Load<Lanes>(s.states[k] + i) + sum * s.zero;
      StoreBy<kToStates>((kStores == Stores::kFresh ? s.fresh : s.states)[k] + i, state[k]);
    }
    for (int r = 0; r < kWeights; ++r) {
      char* to = static_cast<char*>(s.weights[r]) + i * kBytes;
      if constexpr (kBytes == 2)
        StoreBy<kToWeights>(to, Narrow(state[2]));
      else
        StoreBy<kToWeights>(to, state[2]);
    }
  }
  StreamingFence();
}

/// The two passes of LAMB. The first does not store states[2], the weights.
template <Stores kStores, int kRanks>
void MoveTwice(const LimitStreams& streams, int64_t n) {
  constexpr bool kToWeights = kStores != Stores::kPlain, kToStates = kStores == Stores::kStreaming;
  const LimitStreams s = streams;
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    Lanes sum = Load<Lanes>(s.states[2] + i);
    for (int r = 0; r < kRanks; ++r)
      sum += Load<Lanes>(static_cast<const float*>(s.gradients[r]) + i);
    for (int k = 0; k < 2; ++k)
      StoreBy<kToStates>(s.states[k] + i, Load<Lanes>(s.states[k] + i) + sum * s.zero);
  }
  StreamingFence();
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    const Lanes w = Load<Lanes>(s.states[2] + i) +
                    (Load<Lanes>(s.states[0] + i) + Load<Lanes>(s.states[1] + i)) * s.zero;
    StoreBy<kToStates>(s.states[2] + i, w);
    for (int r = 0; r + 1 < kRanks; ++r)
      StoreBy<kToWeights>(static_cast<float*>(s.weights[r]) + i, w);
  }
  StreamingFence();
}

template <Stores kStores, int kRanks>
void MoveAs(const LimitStreams& s, int64_t n) {
  if (s.twice)
    MoveTwice<kStores, kRanks>(s, n);
  else if (s.mixed)
    Move<kStores, kRanks, Halves, kRanks>(s, n);
  else
    Move<kStores, kRanks, Lanes, kRanks - 1>(s, n);
}

template <Stores kStores>
void Limit(const LimitStreams& s, int64_t n) {
  if (s.ranks == 1) MoveAs<kStores, 1>(s, n);
  if (s.ranks == 2) MoveAs<kStores, 2>(s, n);
  if (s.ranks == 4) MoveAs<kStores, 4>(s, n);
  if (s.ranks == 8) MoveAs<kStores, 8>(s, n);
}

}  // namespace

#define COCONET_STRING_INNER(x) #x
#define COCONET_STRING(x) COCONET_STRING_INNER(x)

const Kernels COCONET_KERNELS = {
    .instruction_set = COCONET_STRING(COCONET_KERNELS),
    .adam = Adam<false>,
    .adam_streaming = Adam<true>,
    .adam_mixed = AdamFromF32,
    .adam_half = AdamFromF16,
    .widen = WidenAll,
    .lamb_moments = LambMoments<false>,
    .lamb_moments_store = LambMoments<true>,
    .lamb_apply = LambApply<false, false>,
    .lamb_apply_streaming = LambApply<false, true>,
    .lamb_apply_stored = LambApply<true, false>,
    .lamb_apply_stored_streaming = LambApply<true, true>,
    .copy_streaming = CopyStreaming,
    .add_half = AddHalf,
    .epilogue_f32 = Epilogue<float, float>,
    .epilogue_bf16 = Epilogue<uint16_t, uint16_t>,
    .epilogue_bf16_from_f32 = Epilogue<float, uint16_t>,
    .pool_f32 = Pool<float>,
    .pool_bf16 = Pool<uint16_t>,
    .norm_f32 = Norm<float, float>,
    .norm_bf16 = Norm<uint16_t, uint16_t>,
    .norm_bf16_from_f32 = Norm<float, uint16_t>,
    .multiply_adds = MultiplyAdds,
    .add_bf16 = AddBf16,
    .limit_plain = Limit<Stores::kPlain>,
    .limit_streaming_weights = Limit<Stores::kStreamingWeights>,
    .limit_streaming = Limit<Stores::kStreaming>,
    .limit_fresh = Limit<Stores::kFresh>,
    .stream_plain = Stream<false>,
    .stream_streaming = Stream<true>,
};

}  // namespace coconet::bench
