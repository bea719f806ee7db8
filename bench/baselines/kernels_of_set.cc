// Compiled once per instruction set; COCONET_KERNELS names the table to define.

#include "bench/baselines/epilogue_loops.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"
#include "bench/baselines/optimizer_loops.h"
#include "bench/baselines/pooling_loops.h"

namespace coconet::bench {
namespace {

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
