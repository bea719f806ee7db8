#pragma once

#include <cstdint>
#include <vector>

namespace coconet {

/// Largest block of a kernel on a GPU (CC_MAX_THREADS of the CUDA prelude): the compiler leaves
/// each of its threads 128 registers.
inline constexpr int kMaxThreads = 512;
inline constexpr int kWarpThreads = 32;
/// A block of a product that works tile by tile (jit/device/cuda/tile_product.h).
inline constexpr int kTileThreads = 256;

/// How the work of a kernel is dealt out; see Config.
struct LaunchShape {
  int vec = 1;
  int64_t chunk = 1;
  int blocks = 1;
  int threads = 1;
  bool operator==(const LaunchShape&) const = default;
};

/// What of a kernel's work and its machine decides which shapes make sense.
struct KernelWork {
  int64_t elements = 1;        // of the largest tensor
  int64_t slice_elements = 1;  // of what one rank reduces or computes of it
  bool flag_per_chunk = false;
};

/// On a host: threads are blocks, up to `spare_cores` of them.
std::vector<LaunchShape> LaunchShapesOnHost(const KernelWork& work, int vector_bytes,
                                            int spare_cores);

/// On a GPU of which a rank has `multiprocessors`: one to four blocks on each, and loads of 16
/// bytes of the widest type and more in flight. What has too few elements for that gets fewer
/// blocks. Blocks that do not fit at once are refused when they are bound (Rank::Bind).
std::vector<LaunchShape> LaunchShapesOnGpu(const KernelWork& work, int multiprocessors);

}  // namespace coconet
