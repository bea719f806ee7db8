#include "jit/config/launch_shapes.h"

#include <algorithm>

namespace coconet {
namespace {

/// Below this many elements a second thread costs more to wake than it saves.
constexpr int64_t kBlocksElements = 1 << 14;
/// Blocks per multiprocessor and threads per block. 512 threads fit whatever registers they use
/// (CC_MAX_THREADS); more fit if a thread needs 64 or 80 registers at most.
constexpr struct {
  int blocks, threads;
} kResident[] = {{2, 256}, {1, 512}, {3, 256}, {4, 256}, {2, 512}, {1, 256}};
/// Packs in flight: 16 lets each loop decide (PacksToFetch).
constexpr int kUnrolls[] = {16, 4, 1};
/// Bytes of an access.
constexpr int kWidestAccess = 16, kNarrowestAccess = 4;
constexpr int64_t kBytesInFlight = 128;
/// Passes of a block over a chunk. A flag takes a fence of the whole machine, about a microsecond,
/// which the stores of many passes hide.
constexpr int64_t kPassesWithFlag[] = {1, 8, 64}, kPassesWithout[] = {1, 4};

template <class T>
void AddOnce(std::vector<T>& all, const T& one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

/// The longest two chunks that leave every block one.
std::vector<int64_t> ChunksFor(const KernelWork& work, int64_t pass, int blocks) {
  std::vector<int64_t> chunks;
  const auto add = [&](int64_t passes) {
    if (passes == 1 || passes * pass * blocks <= work.slice_elements)
      chunks.push_back(passes * pass);
  };
  if (work.flag_per_chunk) {
    for (int64_t passes : kPassesWithFlag) add(passes);
    if (chunks.size() > 2) chunks.erase(chunks.begin());
  } else {
    for (int64_t passes : kPassesWithout) add(passes);
    chunks = {chunks.back()};
  }
  return chunks;
}

void AddShapes(const KernelWork& work, LaunchShape shape, std::vector<LaunchShape>& shapes) {
  const int64_t packs = int64_t{shape.vec} * shape.threads, pass = packs * shape.unroll;
  shape.blocks =
      static_cast<int>(std::clamp<int64_t>((work.elements + packs - 1) / packs, 1, shape.blocks));
  if (shape.unroll > 1 && pass * shape.blocks > work.slice_elements) return;
  for (int64_t chunk : ChunksFor(work, pass, shape.blocks)) {
    shape.chunk = chunk;
    AddOnce(shapes, shape);
  }
}

}  // namespace

std::vector<LaunchShape> LaunchShapesOnHost(const KernelWork& work, int vector_bytes,
                                            int spare_cores) {
  std::vector<int64_t> chunks = {4096};
  for (int64_t chunk : {32768, 262144}) {
    if (work.flag_per_chunk && work.slice_elements > chunk / 8) chunks.push_back(chunk);
  }
  std::vector<int> blocks = {1};
  if (spare_cores > 1 && work.elements >= kBlocksElements) blocks.push_back(spare_cores);
  std::vector<LaunchShape> shapes;
  for (int64_t chunk : chunks) {
    for (int b : blocks)
      shapes.push_back({.vec = std::max(vector_bytes / 4, 1), .chunk = chunk, .blocks = b});
  }
  return shapes;
}

int VecOf(const Config& config, int widest) {
  return config.threads == 1 ? config.vec : std::max(config.vec, kWidestAccess / widest);
}

int PacksToFetch(int64_t pack_bytes, int most) {
  int packs = 1;
  while (packs < most && packs * pack_bytes < kBytesInFlight) packs *= 2;
  return packs;
}

std::vector<LaunchShape> LaunchShapesOnGpu(const KernelWork& work, int multiprocessors) {
  const int vec = std::max(kWidestAccess / work.widest, kNarrowestAccess / work.narrowest);
  std::vector<LaunchShape> shapes;
  for (int unroll : kUnrolls) {
    for (const auto& [blocks, threads] : kResident) {
      AddShapes(
          work,
          {.vec = vec, .unroll = unroll, .blocks = blocks * multiprocessors, .threads = threads},
          shapes);
    }
  }
  return shapes;
}

}  // namespace coconet
