#include "bench/baselines/kernels.h"

#include <cmath>
#include <vector>

#include "coconet/base/dtype.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

constexpr int kN = 133;  // several vectors of every width, and a tail
constexpr AdamStep kStep = {.inverse_ranks = 0.5f,
                            .b1 = 0.9f,
                            .one_minus_b1 = 0.1f,
                            .b2 = 0.999f,
                            .one_minus_b2 = 0.001f,
                            .c1 = 0.01f,
                            .c2 = 1000,
                            .eps = 1e-8f};

float Gradient(int i) { return 0.25f * static_cast<float>(i % 17 - 8); }

struct State {
  double w, m, v;
};
State After(const AdamStep& s, double sum, State x) {
  const double g = sum * s.inverse_ranks;
  x.m = x.m * s.b1 + g * s.one_minus_b1;
  x.v = x.v * s.b2 + g * g * s.one_minus_b2;
  x.w -= x.m * s.c1 / (std::sqrt(x.v * s.c2) + s.eps);
  return x;
}

/// 64-byte aligned, as the kernels require.
template <class T>
struct Aligned {
  alignas(64) T data[kN + 64 / sizeof(T)] = {};
};

class KernelsTest : public testing::TestWithParam<const Kernels*> {};

TEST_P(KernelsTest, StepAsAdamDoes) {
  for (const Kernels::Adam adam : {GetParam()->adam, GetParam()->adam_streaming}) {
    Aligned<float> g, w, m, v;
    for (int i = 0; i < kN; ++i) {
      g.data[i] = Gradient(i);
      w.data[i] = 1;
    }
    for (int step = 0; step < 2; ++step) adam(kStep, g.data, w.data, m.data, v.data, kN);
    for (int i = 0; i < kN; ++i) {
      const State want = After(kStep, Gradient(i), After(kStep, Gradient(i), {1, 0, 0}));
      EXPECT_NEAR(w.data[i], want.w, 1e-6) << i;
      EXPECT_NEAR(m.data[i], want.m, 1e-6) << i;
      EXPECT_NEAR(v.data[i], want.v, 1e-6) << i;
    }
    EXPECT_EQ(w.data[kN], 0);
  }
}

TEST_P(KernelsTest, StepAsLambDoes) {
  const LambStep step = {.adam = kStep, .decay = 0.25f};
  constexpr float kScale = 0.125f;
  const Kernels& k = *GetParam();
  const struct {
    Kernels::LambMoments moments;
    Kernels::LambApply apply;
  } forms[] = {{k.lamb_moments, k.lamb_apply},
               {k.lamb_moments, k.lamb_apply_streaming},
               {k.lamb_moments_store, k.lamb_apply_stored},
               {k.lamb_moments_store, k.lamb_apply_stored_streaming}};
  for (const auto& form : forms) {
    Aligned<float> g, w, m, v;
    for (int i = 0; i < kN; ++i) {
      g.data[i] = Gradient(i);
      w.data[i] = 1 + static_cast<float>(i % 5);
    }
    const LambSquares squares = form.moments(step, g.data, w.data, m.data, v.data, kN);
    form.apply(step, kScale, g.data, w.data, m.data, v.data, kN);
    double weights = 0, direction = 0;
    for (int i = 0; i < kN; ++i) {
      const double before = 1 + i % 5;
      const State adam = After(kStep, Gradient(i), {0, 0, 0});  // weight 0: minus Adam's update
      const double r = 0.25 * before - adam.w;
      weights += before * before;
      direction += r * r;
      EXPECT_NEAR(w.data[i], before - kScale * r, 1e-6) << i;
      EXPECT_NEAR(m.data[i], adam.m, 1e-6) << i;
      EXPECT_NEAR(v.data[i], adam.v, 1e-6) << i;
    }
    EXPECT_NEAR(squares.weights, weights, 1e-4);
    EXPECT_NEAR(squares.direction, direction, 1e-4);
    EXPECT_EQ(w.data[kN], 0);
  }
}

TEST_P(KernelsTest, CopyPastTheCaches) {
  Aligned<float> from, to;
  for (int i = 0; i < kN; ++i) from.data[i] = Gradient(i);
  GetParam()->copy_streaming(from.data, to.data, kN);
  for (int i = 0; i < kN; ++i) EXPECT_EQ(to.data[i], Gradient(i)) << i;
  EXPECT_EQ(to.data[kN], 0);
}

TEST_P(KernelsTest, StepInMixedPrecision) {
  Aligned<uint16_t> half, from_wide, from_half;
  Aligned<float> wide, w1, m1, v1, w2, m2, v2;
  for (int i = 0; i < kN; ++i) {
    half.data[i] = F16FromF32(Gradient(i));
    w1.data[i] = w2.data[i] = 1;
  }
  GetParam()->widen(half.data, wide.data, kN);
  GetParam()->adam_mixed(kStep, wide.data, from_wide.data, w1.data, m1.data, v1.data, kN);
  GetParam()->adam_half(kStep, half.data, from_half.data, w2.data, m2.data, v2.data, kN);
  for (int i = 0; i < kN; ++i) {
    EXPECT_EQ(wide.data[i], Gradient(i)) << i;
    EXPECT_NEAR(w1.data[i], After(kStep, Gradient(i), {1, 0, 0}).w, 1e-6) << i;
    EXPECT_EQ(from_wide.data[i], F16FromF32(w1.data[i])) << i;
    EXPECT_EQ(from_half.data[i], from_wide.data[i]) << i;
  }
  EXPECT_EQ(from_half.data[kN], 0);
}

TEST_P(KernelsTest, AddHalvesWithOneRounding) {
  Aligned<uint16_t> a, b;
  for (int i = 0; i < kN; ++i) {
    a.data[i] = F16FromF32(1.0f + static_cast<float>(i) / 1024);
    b.data[i] = F16FromF32(100.0f / static_cast<float>(i + 1));
  }
  const Aligned<uint16_t> before = b;
  GetParam()->add_half(a.data, b.data, kN);
  for (int i = 0; i < kN; ++i) {
    EXPECT_EQ(b.data[i], F16FromF32(F32FromF16(a.data[i]) + F32FromF16(before.data[i]))) << i;
  }
  EXPECT_EQ(b.data[kN], 0);
}

// The streams of a step on `ranks` ranks: states are 1, 2 and 3, everything else 0.
struct StepStreams {
  static constexpr int kWhole = 128;

  explicit StepStreams(int ranks) : gradients(ranks), weights(ranks), states(3), fresh(3) {
    s.ranks = ranks;
    for (int r = 0; r < ranks; ++r) {
      s.gradients[r] = gradients[r].data;
      s.weights[r] = weights[r].data;
    }
    for (int k = 0; k < 3; ++k) {
      for (float& x : states[k].data) x = static_cast<float>(k + 1);
      s.states[k] = states[k].data;
      s.fresh[k] = fresh[k].data;
    }
  }

  // Runs `limit`; expects that the weights of the first `stored` ranks are written completely,
  // those of the others not, and that the states are unchanged.
  void ExpectMoves(Kernels::Limit limit, int stored) {
    for (auto& w : weights) w = {};
    limit(s, kWhole);
    for (int r = 0; r < s.ranks; ++r) {
      const Number last =
          LoadElement(s.mixed ? DType::kF16 : DType::kF32, weights[r].data, kWhole - 1);
      EXPECT_EQ(last, r < stored ? 3 : 0) << "rank " << r << " of " << s.ranks;
    }
    for (int k = 0; k < 3; ++k) EXPECT_EQ(states[k].data[kWhole - 1], k + 1);
  }

  std::vector<Aligned<float>> gradients, weights, states, fresh;
  LimitStreams s = {};
};

TEST_P(KernelsTest, MoveWhatAStepMoves) {
  for (const bool mixed : {false, true}) {
    for (const int ranks : {1, 2, 4, 8}) {
      StepStreams streams(ranks);
      streams.s.mixed = mixed;
      for (const Kernels::Limit limit :
           {GetParam()->limit_plain, GetParam()->limit_streaming_weights,
            GetParam()->limit_streaming, GetParam()->limit_fresh}) {
        streams.ExpectMoves(limit, mixed ? ranks : ranks - 1);
      }
      EXPECT_EQ(streams.fresh[2].data[StepStreams::kWhole - 1], 3);
    }
  }
}

// A step of LAMB reads its states twice and stores them once.
TEST_P(KernelsTest, MoveWhatAStepOfLambMoves) {
  for (const int ranks : {1, 2, 4, 8}) {
    StepStreams streams(ranks);
    streams.s.twice = true;
    for (const Kernels::Limit limit : {GetParam()->limit_plain, GetParam()->limit_streaming_weights,
                                       GetParam()->limit_streaming}) {
      streams.ExpectMoves(limit, ranks - 1);
    }
  }
}

std::vector<const Kernels*> HereRunnable() {
  std::vector<const Kernels*> sets = {&kernels_plain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v3")) sets.push_back(&kernels_x86_64_v3);
  if (__builtin_cpu_supports("x86-64-v4")) sets.push_back(&kernels_x86_64_v4);
#endif
  return sets;
}
INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsTest, testing::ValuesIn(HereRunnable()),
                         [](const auto& info) { return std::string(info.param->instruction_set); });

}  // namespace
}  // namespace coconet::bench
