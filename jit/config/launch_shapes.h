#pragma once

#include <cstdint>
#include <vector>

#include "jit/config/config.h"

namespace coconet {

/// Largest block of a kernel on a GPU (CC_MAX_THREADS of the CUDA prelude). The compiler gives a
/// thread at most 128 registers, so that one such block fits.
inline constexpr int kMaxThreads = 512;
inline constexpr int kWarpThreads = 32;
/// A block of a product that works tile by tile (jit/device/gpu/tile_product.h); by warp groups
/// (jit/device/gpu/wide_tiles.h), and with one more that loads (jit/device/gpu/tma_tiles.h).
inline constexpr int kTileThreads = 256, kWideTileThreads = 256, kTmaTileThreads = 384;
/// The most shared memory that a block may have on a GPU of sm_90.
inline constexpr int kMostSharedBytes = 227 << 10;

/// How the work of a kernel is dealt out; see Config.
struct LaunchShape {
  int vec = 1;
  int unroll = 1;
  int64_t chunk = 1;
  int blocks = 1;
  int threads = 1;
  bool operator==(const LaunchShape&) const = default;
};

/// The properties of a kernel's work and its machine that decide which shapes make sense.
struct KernelWork {
  int64_t elements = 1;        // of the largest tensor
  int64_t slice_elements = 1;  // of what one rank reduces or computes of it
  bool flag_per_chunk = false;
  int widest = 4, narrowest = 4;  // bytes of the element types that kernels load and store
};

/// The elements of a pack of a kernel that loads and stores elements of `widest` bytes at most:
/// Config::vec; on GPUs at least as many as one access has.
int VecOf(const Config& config, int widest);

/// How many packs of `pack_bytes` loaded bytes a thread of a GPU has in flight, at most `most`: the
/// fewest that load 128 bytes, so that 512 threads of a multiprocessor have 64 KiB in flight, as 3
/// to 5 TB/s need by Little's law.
int PacksToFetch(int64_t pack_bytes, int most);

/// On a host: threads are blocks, up to `spare_cores` of them.
std::vector<LaunchShape> LaunchShapesOnHost(const KernelWork& work, int vector_bytes,
                                            int spare_cores);

/// On a GPU of which a rank has `multiprocessors`: packs of 16 bytes of the widest type, and no
/// access of fewer than 4 bytes. First comes the shape that has 64 KiB in flight on a
/// multiprocessor with the fewest threads; then more threads, then fewer packs in flight. Kernels
/// with too few elements for that get fewer blocks. Blocks that do not fit at once are refused when
/// they are bound (Rank::Bind).
std::vector<LaunchShape> LaunchShapesOnGpu(const KernelWork& work, int multiprocessors);

}  // namespace coconet
