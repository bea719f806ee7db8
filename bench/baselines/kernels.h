#pragma once

#include <cstdint>

namespace coconet::bench {

/// One step of Adam, bias corrections folded in: c1 = lr / (1 - b1^t), c2 = 1 / (1 - b2^t).
struct AdamStep {
  float inverse_ranks, b1, one_minus_b1, b2, one_minus_b2, c1, c2, eps;
};

/// One step of LAMB: Adam's with c1 = 1 / (1 - b1^t), plus `decay` times the weights.
struct LambStep {
  AdamStep adam;
  float decay;
};
/// Squares of the norms of a tensor's weights and of its step's direction.
struct LambSquares {
  double weights, direction;
};

/// The streams that a step of a fused program must move on one rank, of `n` elements each: it loads
/// the gradients of all ranks, updates the states in place, and stores the weights to all ranks.
struct LimitStreams {
  static constexpr int kStates = 3;  // f32: m, v, and the weights or their master copy
  static constexpr int kMaxRanks = 8;
  int ranks = 0;
  /// LAMB of f32: states are loaded a second time once norms are known, and weights
  /// stored only then.
  bool twice = false;
  bool mixed = false;  // gradients and weights are f16, and no weight is stored in place
  const void* gradients[kMaxRanks]{};  // the first `ranks` are used
  float* states[kStates]{};
  float* fresh[kStates]{};     // destinations for the kernel that does not store in place
  void* weights[kMaxRanks]{};  // f32: ranks - 1 are used, because the rank's own are states[2]
  float zero = 0;              // unknown to the compiler; keeps values as they are
};

/// What follows a product's sum over ranks: y = dropout(z + b) + r; an element is kept if its
/// random word is at least `threshold`. z is f32 or of y's type; b, r and y are f32 or bf16.
constexpr int kEpilogueColumns = 64;  // row lengths are multiples of it
struct EpilogueLoop {
  const void *z, *b, *r;
  void* y;
  int64_t rows, columns;
  uint64_t stream, seed;  // of the random words
  uint32_t threshold;
  float scale;
};

/// Sums of bags of `length` rows of a table whose rows have `columns` elements in f32 or bf16; the
/// sums of a bag begin `out_stride` behind those of the bag before. Indices are valid.
struct PoolLoop {
  const void* table;
  int64_t columns;
  const int32_t* indices;
  int64_t bags, length;
  float* out;
  int64_t out_stride;
};

/// h = z + r; y = h / sqrt(mean of h * h over a row + eps) * g. z is f32 or of the others' type,
/// f32 or bf16; rows have a multiple of kEpilogueColumns columns.
struct NormLoop {
  const void *z, *r, *g;
  void *h, *y;
  int64_t rows, columns;
  float eps;
};

/// Streams of f32: one is loaded; one is loaded and one stored; or four are loaded and three
/// stored.
struct PlainStream {
  int loads = 1, stores = 1;
  const float* from[4]{};
  float* to[3]{};
};

/// A careful user's loops, and the loops that find the memory's limit, compiled for one instruction
/// set. All arrays are aligned to 64 bytes.
struct Kernels {
  const char* instruction_set;

  /// With plain stores, and with stores that bypass the caches.
  using Adam = void (*)(const AdamStep& step, const float* sum, float* p, float* m, float* v,
                        int64_t n);
  Adam adam, adam_streaming;
  /// Mixed precision, from a sum in f32 or in f16.
  using AdamMixed = void (*)(const AdamStep& step, const float* sum, uint16_t* p, float* w,
                             float* m, float* v, int64_t n);
  AdamMixed adam_mixed;
  using AdamHalf = void (*)(const AdamStep& step, const uint16_t* sum, uint16_t* p, float* w,
                            float* m, float* v, int64_t n);
  AdamHalf adam_half;
  void (*widen)(const uint16_t* in, float* out, int64_t n);
  /// LAMB's first pass over a tensor: moments and norms; `store`: the direction replaces the sum.
  /// Its second pass: p -= scale * direction, with the stored direction or one recomputed from the
  /// moments, with plain or streaming stores.
  using LambMoments = LambSquares (*)(const LambStep& step, float* sum, const float* p, float* m,
                                      float* v, int64_t n);
  LambMoments lamb_moments, lamb_moments_store;
  using LambApply = void (*)(const LambStep& step, float scale, const float* stored, float* p,
                             const float* m, const float* v, int64_t n);
  LambApply lamb_apply, lamb_apply_streaming, lamb_apply_stored, lamb_apply_stored_streaming;
  void (*copy_streaming)(const float* from, float* to, int64_t n);
  /// inout += in; each sum is rounded once.
  void (*add_half)(const uint16_t* in, uint16_t* inout, int64_t n);

  using EpilogueFunction = void (*)(const EpilogueLoop& loop);
  EpilogueFunction epilogue_f32, epilogue_bf16, epilogue_bf16_from_f32;
  using PoolFunction = void (*)(const PoolLoop& loop);
  PoolFunction pool_f32, pool_bf16;
  using NormFunction = void (*)(const NormLoop& loop);
  NormFunction norm_f32, norm_bf16, norm_bf16_from_f32;
  /// Multiplies and adds as fast as the processor can; the result depends on all of it.
  float (*multiply_adds)(int64_t flops);
  /// inout += in; each sum is rounded once.
  void (*add_bf16)(const uint16_t* in, uint16_t* inout, int64_t n);

  /// Stores: all plain; streaming to the other ranks' weights; all streaming; all streaming and not
  /// in place.
  using Limit = void (*)(const LimitStreams& streams, int64_t n);
  Limit limit_plain, limit_streaming_weights, limit_streaming, limit_fresh;

  /// Reads and writes n elements, a multiple of 32, with plain or with streaming stores. If nothing
  /// is stored, returns a number that depends on all loads.
  using Streams = float (*)(const PlainStream& streams, int64_t n);
  Streams stream_plain, stream_streaming;
};

/// One per instruction set (kernels_of_set.cc); all plain unless built for x86-64.
extern const Kernels kernels_x86_64_v4, kernels_x86_64_v3, kernels_plain;
/// The table of the widest instruction set that this machine has.
const Kernels& BestKernels();

}  // namespace coconet::bench
