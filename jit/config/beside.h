#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/launch_shapes.h"

namespace coconet {

/// Whether Config::beside has an effect on the ranks of `nodes` nodes: kernels do the collectives
/// in an overlap of a matrix product.
bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes);

/// Whether products of overlaps may be made tile by tile on the ranks of `nodes` nodes: in each
/// overlap a kernel that communicates follows a product, or a product one that GathersFor it
/// (coconet/schedule/overlapped_products.h).
bool TakesTiles(const Schedule& s, Protocol protocol, int nodes);

/// Whether some kernel goes through a product's tiles; and whether only warp groups make some of
/// these.
bool MultipliesInKernels(const Schedule& s);
bool MultipliesByWarpGroups(const Schedule& s);

/// Whether a launch of its own is a product that has scales, which libraries of GPUs are not given,
/// and which warp groups can make in a kernel or an overlap of this GPU. `tiles_overlaps`: products
/// of overlaps are made in tiles, not by a library.
bool LacksALibrary(const Schedule& s, const ConfigSpace& space, bool tiles_overlaps);

/// Whether one of these does collectives, too.
bool CommunicatesInTiles(const Schedule& s);

/// Whether the kernels of a schedule neither copy operands of AllReduces to peers
/// (Config::one_shot) nor pass slices on in a ring (Config::ring): there are overlaps, or
/// CommunicatesInTiles.
bool OnlyPulls(const Schedule& s);

/// How a kernel makes a product, out of a config.
struct TileShape {
  int rows = 0, columns = 0;
  int stages = 0;  // 0: tiles by warps
  bool tma = false;
};
TileShape TileShapeOf(const Config& config);

/// The fewest Config::stages: while two are read by products, another is filled.
inline constexpr int kFewestStages = 3;
/// Dynamic shared memory of a block that makes tiles by warp groups: jit/device/gpu/wide_tiles.h.
int64_t WideTileBytes(const TileShape& shape);

/// Why Config::tiles, or one of the numbers that concern these tiles, is not legal; "" if they are.
std::string WhyNoTiles(const Config& config, const Schedule& s, const ConfigSpace& space);

/// Adds to the configs of a schedule, for GPUs, those whose collectives run beside products, if
/// there are any. `blocks` concerns other kernels and is not varied: of configs that differ in
/// `blocks` alone, the first is taken.
void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs);

/// Adds those whose kernels make products in other tiles than 64 x 64; or whose products of
/// overlaps signal each tile, with the protocol and the multicast of each of `ways`. A product by
/// warps has two blocks on each multiprocessor that the collectives beside it leave, or one if it
/// awaits rows; the
/// collectives' blocks are small enough to be resident beside one: that lasts as long as the
/// product, and where products start first, few multiprocessors are free. A product by warp groups
/// has one block on each of these, which takes nearly all of its shared memory.
void AddTiles(const Schedule& s, const ConfigSpace& space, const std::vector<Config>& ways,
              const std::vector<LaunchShape>& shapes, std::vector<Config>& configs);

}  // namespace coconet
