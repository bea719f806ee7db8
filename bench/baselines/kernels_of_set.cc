// Compiled once per instruction set; COCONET_KERNELS names the table to define. Loops work on
// copies of their steps, which no store through a pointer can change.

#include <stdint.h>

#include "bench/baselines/epilogue_loops.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

// Adam and LAMB.

/// Values of type T: a vector, or one lane for the tail.
template <class T>
struct Moments {
  T m, v;
};
template <class T>
inline Moments<T> NewMoments(const AdamStep& s, T sum, T m, T v) {
  const T g = sum * s.inverse_ranks;
  return {m * s.b1 + g * s.one_minus_b1, v * s.b2 + g * g * s.one_minus_b2};
}

/// The step's direction, from updated m and v.
template <class T>
inline T Direction(const AdamStep& s, T m, T v) {
  return m * s.c1 / (Sqrt(v * s.c2) + s.eps);
}
template <class T>
inline T Direction(const LambStep& s, T w, T m, T v) {
  return Direction(s.adam, m, v) + w * s.decay;
}

/// Updates w, m and v at i; returns the new w.
template <class T, bool kStreaming, class Sum>
inline T AdamAt(int64_t i, const AdamStep& s, const Sum* sum, float* w, float* m, float* v) {
  const Moments<T> to = NewMoments(s, LoadWide<T>(sum + i), Load<T>(m + i), Load<T>(v + i));
  const T weights = Load<T>(w + i) - Direction(s, to.m, to.v);
  StoreBy<kStreaming>(w + i, weights);
  StoreBy<kStreaming>(m + i, to.m);
  StoreBy<kStreaming>(v + i, to.v);
  return weights;
}

template <bool kStreaming>
void Adam(const AdamStep& step, const float* sum, float* p, float* m, float* v, int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) { AdamAt<T, kStreaming>(i, s, sum, p, m, v); });
  if constexpr (kStreaming) StreamingFence();
}

/// Sum: float, or uint16_t of f16.
template <class Sum>
void AdamMixed(const AdamStep& step, const Sum* sum, uint16_t* p, float* w, float* m, float* v,
               int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) {
    Store(p + i, Narrow(AdamAt<T, false>(i, s, sum, w, m, v)));
  });
}

inline double SumOf(Lanes x) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}
inline double SumOf(float x) { return x; }

/// Updates the moments and returns the squares of the norms; with kStore the direction replaces the
/// gradient. Squares are summed in f32 over a piece, and in f64 over pieces.
template <bool kStore>
LambSquares LambMoments(const LambStep& step, float* sum, const float* p, float* m, float* v,
                        int64_t n) {
  constexpr int64_t kPiece = 4096;
  LambSquares squares = {0, 0};
  const auto update = [=, s = step]<class T>(int64_t i, T& weights, T& direction) {
    const T w = Load<T>(p + i);
    const Moments<T> to = NewMoments(s.adam, Load<T>(sum + i), Load<T>(m + i), Load<T>(v + i));
    const T r = Direction(s, w, to.m, to.v);
    weights += w * w;
    direction += r * r;
    Store(m + i, to.m);
    Store(v + i, to.v);
    if constexpr (kStore) Store(sum + i, r);
  };
  const auto add = [&]<class T>(int64_t begin, int64_t end, int64_t lanes, T weights, T direction) {
    for (int64_t i = begin; i < end; i += lanes) update(i, weights, direction);
    squares.weights += SumOf(weights);
    squares.direction += SumOf(direction);
  };
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kPiece)
    add(i, whole - i < kPiece ? whole : i + kPiece, kLanes, Lanes{}, Lanes{});
  add(whole, n, 1, 0.0f, 0.0f);
  return squares;
}

/// p -= scale * direction, which is `stored` or recomputed from the moments.
template <bool kStored, bool kStreaming>
void LambApply(const LambStep& step, float scale, const float* stored, float* p, const float* m,
               const float* v, int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) {
    const T w = Load<T>(p + i);
    T r;
    if constexpr (kStored)
      r = Load<T>(stored + i);
    else
      r = Direction(s, w, Load<T>(m + i), Load<T>(v + i));
    StoreBy<kStreaming>(p + i, w - r * scale);
  });
  if constexpr (kStreaming) StreamingFence();
}

/// Copies past the caches; `to` must be aligned to a vector.
void CopyStreaming(const float* from, float* to, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) { StoreStreaming(to + i, Load<T>(from + i)); });
  StreamingFence();
}

void WidenAll(const uint16_t* in, float* out, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) { Store(out + i, LoadWide<T>(in + i)); });
}

void AddHalf(const uint16_t* in, uint16_t* inout, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) {
    Store(inout + i, Narrow(LoadWide<T>(in + i) + LoadWide<T>(inout + i)));
  });
}

// Sums of rows by index as a careful user writes them.

inline Lanes RowLanes(const float* from) { return Load<Lanes>(from); }
inline Lanes RowLanes(const uint16_t* from) {  // bf16
  typedef uint16_t Narrow __attribute__((vector_size(2 * kLanes)));
  typedef uint32_t Wide __attribute__((vector_size(4 * kLanes)));
  return (Lanes)(__builtin_convertvector(Load<Narrow>(from), Wide) << 16);
}

/// kVectors vectors of each bag's columns from `column` on, in registers. The row 16 look-ups ahead
/// is prefetched, as in FBGEMM (GenerateEmbeddingSpMDM).
template <int kVectors, class T>
void PoolColumns(const PoolLoop& p, int64_t column) {
  constexpr int64_t kAhead = 16, kLine = 64;
  const T* const table = static_cast<const T*>(p.table) + column;
  const int64_t lookups = p.bags * p.length;
  for (int64_t bag = 0; bag < p.bags; ++bag) {
    Lanes sums[kVectors] = {};
    for (int64_t k = bag * p.length; k < (bag + 1) * p.length; ++k) {
      const T* const next = table + p.indices[k + kAhead < lookups ? k + kAhead : k] * p.columns;
      for (int64_t byte = 0; byte < kVectors * kLanes * int64_t{sizeof(T)}; byte += kLine)
        __builtin_prefetch(reinterpret_cast<const char*>(next) + byte);
      const T* const row = table + p.indices[k] * p.columns;
      for (int v = 0; v < kVectors; ++v) sums[v] += RowLanes(row + v * kLanes);
    }
    for (int v = 0; v < kVectors; ++v)
      Store(p.out + bag * p.out_stride + column + v * kLanes, sums[v]);
  }
}

template <class T>
void Pool(const PoolLoop& p) {
  int64_t column = 0;
  for (; column + 8 * kLanes <= p.columns; column += 8 * kLanes) PoolColumns<8, T>(p, column);
  for (; column + kLanes <= p.columns; column += kLanes) PoolColumns<1, T>(p, column);
  const T* const table = static_cast<const T*>(p.table);
  for (; column < p.columns; ++column) {
    for (int64_t bag = 0; bag < p.bags; ++bag) {
      float sum = 0;
      for (int64_t k = bag * p.length; k < (bag + 1) * p.length; ++k)
        sum += ElementOf(table, p.indices[k] * p.columns + column);
      p.out[bag * p.out_stride + column] = sum;
    }
  }
}

// The memory's limit.

enum class Stores { kPlain, kStreamingWeights, kStreaming, kFresh };

/// Element: of gradients and weights, float or uint16_t of f16.
template <Stores kStores, int kRanks, class Element, int kWeights>
void Move(const LimitStreams& streams, int64_t n) {
  constexpr bool kToWeights = kStores != Stores::kPlain;
  constexpr bool kToStates = kStores == Stores::kStreaming || kStores == Stores::kFresh;
  const LimitStreams s = streams;
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    Lanes sum = {};
    for (int r = 0; r < kRanks; ++r)
      sum += LoadWide<Lanes>(static_cast<const Element*>(s.gradients[r]) + i);
    Lanes state[LimitStreams::kStates];
    for (int k = 0; k < LimitStreams::kStates; ++k) {
      state[k] = Load<Lanes>(s.states[k] + i) + sum * s.zero;
      StoreBy<kToStates>((kStores == Stores::kFresh ? s.fresh : s.states)[k] + i, state[k]);
    }
    for (int r = 0; r < kWeights; ++r) {
      Element* const to = static_cast<Element*>(s.weights[r]) + i;
      if constexpr (sizeof(Element) == 2)
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
    Move<kStores, kRanks, uint16_t, kRanks>(s, n);
  else
    Move<kStores, kRanks, float, kRanks - 1>(s, n);
}

template <Stores kStores>
void Limit(const LimitStreams& s, int64_t n) {
  if (s.ranks == 1) MoveAs<kStores, 1>(s, n);
  if (s.ranks == 2) MoveAs<kStores, 2>(s, n);
  if (s.ranks == 4) MoveAs<kStores, 4>(s, n);
  if (s.ranks == 8) MoveAs<kStores, 8>(s, n);
}

// The plainest loops over as many streams as a kernel loads and stores.

/// Stores the sum of what it loads. Two vectors a turn, so that additions do not wait for each
/// other if nothing is stored.
template <bool kStream, int kLoads, int kStores>
float StreamOf(const PlainStream& streams, int64_t n) {
  const PlainStream s = streams;
  Lanes total[2] = {};
  for (int64_t i = 0; i + 2 * kLanes <= n; i += 2 * kLanes) {
    for (int half = 0; half < 2; ++half) {
      Lanes sum = Load<Lanes>(s.from[0] + i + half * kLanes);
      for (int k = 1; k < kLoads; ++k) sum += Load<Lanes>(s.from[k] + i + half * kLanes);
      for (int k = 0; k < kStores; ++k) StoreBy<kStream>(s.to[k] + i + half * kLanes, sum);
      if constexpr (kStores == 0) total[half] += sum;
    }
  }
  if constexpr (kStream) StreamingFence();
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += total[0][i] + total[1][i];
  return sum;
}

template <bool kStream>
float Stream(const PlainStream& s, int64_t n) {
  if (s.stores == 0) return StreamOf<kStream, 1, 0>(s, n);
  if (s.loads == 1) return StreamOf<kStream, 1, 1>(s, n);
  return StreamOf<kStream, 4, 3>(s, n);
}

}  // namespace

#define COCONET_STRING_INNER(x) #x
#define COCONET_STRING(x) COCONET_STRING_INNER(x)

const Kernels COCONET_KERNELS = {
    .instruction_set = COCONET_STRING(COCONET_KERNELS),
    .adam = Adam<false>,
    .adam_streaming = Adam<true>,
    .adam_mixed = AdamMixed<float>,
    .adam_half = AdamMixed<uint16_t>,
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
