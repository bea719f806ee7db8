#include "jit/config/launch_shapes.h"

#include <algorithm>

namespace coconet {
namespace {

/// Below this many elements a second thread costs more to wake than it saves.
constexpr int64_t kBlocksElements = 1 << 14;
/// Blocks per multiprocessor, by threads per block: registers bound both.
constexpr int kBlocksOf256[] = {1, 2, 4}, kBlocksOf512[] = {1, 2};
/// Elements a thread handles at once: 16 bytes of f32, of f16 and bf16, and twice that in flight.
constexpr int kGpuVecs[] = {4, 8, 16};
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

void AddShapes(const KernelWork& work, int vec, int threads, int blocks,
               std::vector<LaunchShape>& shapes) {
  const int64_t pass = int64_t{vec} * threads;
  const auto enough =
      static_cast<int>(std::clamp<int64_t>((work.elements + pass - 1) / pass, 1, blocks));
  for (int64_t chunk : ChunksFor(work, pass, enough))
    AddOnce(shapes, {vec, chunk, enough, threads});
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
    for (int b : blocks) shapes.push_back({std::max(vector_bytes / 4, 1), chunk, b, 1});
  }
  return shapes;
}

std::vector<LaunchShape> LaunchShapesOnGpu(const KernelWork& work, int multiprocessors) {
  std::vector<LaunchShape> shapes;
  for (int vec : kGpuVecs) {
    for (int each : kBlocksOf256) AddShapes(work, vec, 256, each * multiprocessors, shapes);
    for (int each : kBlocksOf512) AddShapes(work, vec, 512, each * multiprocessors, shapes);
    if (int64_t{vec} * 256 >= work.elements) break;  // one block has enough with fewer
  }
  return shapes;
}

}  // namespace coconet
