#include "jit/config/beside.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

/// Numbers of a rank's multiprocessors worth giving to collectives beside products: these wait for
/// memory and for peers, which a few multiprocessors keep busy.
std::vector<int> Besides(int multiprocessors) {
  std::vector<int> tried;
  for (int part : {8, 4}) {
    const int beside = std::max(multiprocessors / part, 1);
    if (beside < multiprocessors && (tried.empty() || beside != tried.back()))
      tried.push_back(beside);
  }
  return tried;
}

/// Whether a kernel does some collective of a launch.
bool CommunicatesByKernel(const Schedule& s, const std::vector<NodeId>& launch,
                          LibraryDoes library) {
  return absl::c_any_of(launch, [&](NodeId id) {
    if (!s.program().communicates(id)) return false;
    const bool fused = absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
      return absl::c_binary_search(kernel, id);
    });
    const bool left = library == LibraryDoes::kAll || (library == LibraryDoes::kOverAllRanks &&
                                                       s.program().span(id) != Span::kNode);
    return fused || (s.program().is_kernel_work(id) && !left);
  });
}

/// Rows and columns of tiles by warps: more take less of the operands, fewer let more of them
/// begin.
constexpr int kTileSides[] = {128, 64};
/// Tiles by warp groups that are tried. Two warp groups read 128 x 256 x 64 from shared memory in
/// 0.63 of the time that they multiply; others are for products that have few such tiles.
constexpr struct {
  int rows, columns, stages;
  bool tma;
} kWideTiles[] = {
    {128, 256, 4, true}, {256, 128, 4, true}, {128, 128, 6, true}, {128, 256, 4, false}};

/// The products of a schedule's overlaps, and those of its kernels.
std::vector<NodeId> ProductsInTiles(const Schedule& s) {
  std::vector<NodeId> products;
  for (const std::vector<NodeId>& kernel : s.kernels()) {
    if (const NodeId id = TiledProductOf(s.program(), kernel); id >= 0) products.push_back(id);
  }
  for (const std::vector<NodeId>& overlap : s.overlaps()) {
    absl::c_copy_if(overlap, std::back_inserter(products),
                    [&](NodeId id) { return As<MatMul>(s.graph(), id) != nullptr; });
  }
  return products;
}

/// Whether warp groups multiply this: halves, or 8-bit floats that lie along k.
bool SuitsWarpGroups(const Schedule& s, NodeId id) {
  const DType dtype = s.type(id).dtype;
  return dtype == DType::kF16 || dtype == DType::kBF16 ||
         (IsOfFloats8(s.program(), id) && LiesAlongK(s.program(), id));
}
bool SuitWarpGroups(const Schedule& s) {
  return absl::c_all_of(ProductsInTiles(s), [&](NodeId id) { return SuitsWarpGroups(s, id); });
}
/// Whether some product in tiles is one that only warp groups make.
bool WantsWarpGroups(const Schedule& s) {
  return absl::c_any_of(ProductsInTiles(s),
                        [&](NodeId id) { return IsOfFloats8(s.program(), id); });
}

/// Why warp groups cannot make tiles of the products that have scales; "" if they can.
std::string WhyNoScaledTiles(const Config& c, const Schedule& s) {
  constexpr int kMostTileColumns = 128;  // threads have sums of a slab, and of the tile
  constexpr int64_t kMostColumns = int64_t{1} << 30;
  for (NodeId id : ProductsInTiles(s)) {
    if (!IsScaledProduct(s.graph(), id)) continue;
    if (c.tiles != 128 || c.TileColumns() > kMostTileColumns) {
      return absl::StrCat("want tiles=128 with tile-columns of at most ", kMostTileColumns,
                          " for products with scales");
    }
    if (const int64_t columns = s.type(id).shape.back().size; columns > kMostColumns) {
      return absl::StrCat("want at most ", kMostColumns, " columns of ", NodeText(s.graph(), id),
                          ", which has scales, have ", columns);
    }
  }
  return "";
}

/// What is copied to shared memory at once.
constexpr int64_t kPieceBytes = 16;
/// Coordinates of boxes are of 32 bits, and may lie behind the end by a tile's extent.
constexpr int64_t kLastCoordinate = (int64_t{1} << 31) - 1024;

/// Why warp groups cannot take the operands of these products, as they lie on `ranks` ranks; "" if
/// they can: rows begin at pieces, and where threads copy them, end there.
std::string WhyNoWideRows(const Schedule& s, int ranks, bool tma) {
  for (NodeId product : ProductsInTiles(s)) {
    for (size_t i = 0; i < 2; ++i) {
      const NodeId id = s.program().inputs(product)[i];
      const TensorType& type = s.type(id);
      const int64_t row = type.shape.back().size;
      if (row == 0) continue;  // nothing is read
      const bool cut = type.layout.cut() && type.layout.dim + 1 == std::ssize(type.shape);
      const Slicing own = cut ? s.program().slicing(id, ranks).slicing : Slicing{row, row};
      const int64_t piece = kPieceBytes / static_cast<int64_t>(SizeOf(type.dtype));
      const bool ends = tma || (row % piece == 0 && own.shift % piece == 0);
      if (own.per % piece != 0 || !ends) {
        return absl::StrCat("want rows of ", NodeText(s.graph(), id), " that begin",
                            tma ? "" : " and end", " at multiples of ", piece,
                            " elements where stages are not 0, have rows of ", row,
                            cut ? " over all ranks, " : ", ", own.per, " apart");
      }
      const int64_t longest = std::max(row, NumElements(type.shape) / row);
      if (tma && longest > kLastCoordinate) {
        return absl::StrCat("want rows and columns of ", NodeText(s.graph(), id), " of at most ",
                            kLastCoordinate, " elements with tma=1, have ", longest);
      }
    }
  }
  return "";
}

/// Why the shape of tiles by warp groups is not legal, or they cannot be made here.
std::string WhyNoWideTiles(const Config& c, const Schedule& s, const ConfigSpace& space) {
  const int columns = c.TileColumns();
  const bool is_shape = (c.tiles == 128 || c.tiles == 256) && columns > 0 && columns <= 256 &&
                        columns % 64 == 0 && c.tiles * columns <= 128 * 256;
  if (!is_shape)
    return "want tiles=128 with tile-columns=64, 128, 192 or 256, or tiles=256 with 64 or 128, "
           "where stages are not 0";
  if (c.stages < kFewestStages || WideTileBytes(TileShapeOf(c)) > kMostSharedBytes) {
    return absl::StrCat("want stages at least ", kFewestStages, ", in ", kMostSharedBytes,
                        " bytes of shared memory, of which ", c.stages, " stages take ",
                        WideTileBytes(TileShapeOf(c)));
  }
  if (std::string no = WhyNoScaledTiles(c, s); !no.empty()) return no;
  if (!SuitWarpGroups(s)) {
    return "want stages=0 for products of other types than f16 and bf16, and 8-bit floats with "
           "both operands along the dimension that is summed over";
  }
  if (space.multiprocessors > 0 && !space.warp_groups)
    return "want stages=0 on GPUs that have no products by warp groups (wgmma, of sm_90a)";
  return WhyNoWideRows(s, space.ranks, c.tma);
}

}  // namespace

bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes) {
  if (s.overlaps().empty()) return false;
  return absl::c_any_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
    const bool communicates = absl::c_any_of(overlap, [&](NodeId first) {
      return CommunicatesByKernel(s, s.launch(first).nodes, LeftToLibrary(protocol, nodes));
    });
    return communicates && ChunksOf(s, overlap).space.has_product;
  });
}

bool TakesTiles(const Schedule& s, Protocol protocol, int nodes) {
  if (s.overlaps().empty() || !s.graph().lists.empty()) return false;
  const auto nodes_of = [&](NodeId first) -> const std::vector<NodeId>& {
    return s.launch(first).nodes;
  };
  return absl::c_all_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
    if (ChunksOf(s, overlap).space.lead) return false;  // tiles are of one matrix
    const LibraryDoes library = LeftToLibrary(protocol, nodes);
    for (size_t at = 0; at + 1 < overlap.size(); ++at) {
      if (ProductOfLaunch(s, overlap[at]) >= 0 &&
          CommunicatesByKernel(s, nodes_of(overlap[at + 1]), library))
        return true;
      const NodeId next = ProductOfLaunch(s, overlap[at + 1]);
      if (next >= 0 && GathersFor(s.program(), nodes_of(overlap[at]), next) &&
          CommunicatesByKernel(s, nodes_of(overlap[at]), library))
        return true;
    }
    return false;
  });
}

int64_t WideTileBytes(const TileShape& shape) {
  constexpr int64_t kRowBytes = 128, kTurnBytes = int64_t{16} * 64 * sizeof(short);
  const int64_t slabs = (shape.rows + shape.columns) * kRowBytes * shape.stages,
                turns = kWideTileThreads / kWarpThreads * kTurnBytes,
                barriers = shape.tma ? int64_t{24} * shape.stages + 24 : 0;
  return slabs + turns + barriers;
}

std::string WhyNoTiles(const Config& config, const Schedule& s, const ConfigSpace& space) {
  if ((config.ring || config.one_shot != OneShot::kPull) && CommunicatesInTiles(s)) {
    return "want no ring and one-shot=pull where a kernel makes a product's tiles and "
           "communicates";
  }
  if (config.tma && config.stages == 0) return "want tma=1 with stages only";
  const bool makes_tiles = config.tiles != 0 || MultipliesInKernels(s);
  if (makes_tiles && config.stages == 0 && WantsWarpGroups(s))
    return "want stages for products of 8-bit floats in tiles: only warp groups (sm_90a) make them";
  if (LacksALibrary(s, space, config.tiles != 0)) {
    return "want a kernel that goes on with a product that has scales, which libraries of GPUs are "
           "not given: elementwise operations behind it, as a cast; or cast and scale its operands";
  }
  if (config.tiles == 0) {
    if (TilesInKernels(s))
      return "want tiles where a kernel of an overlap goes on with a product's elements";
    return config.tile_columns == 0 && config.stages == 0
               ? ""
               : "want tile-columns and stages with tiles only";
  }
  if (config.stages != 0) {
    if (std::string no = WhyNoWideTiles(config, s, space); !no.empty()) return no;
  } else if (!absl::c_linear_search(kTileSides, config.tiles) ||
             config.TileColumns() != config.tiles) {
    return absl::StrCat("want tiles of ", absl::StrJoin(kTileSides, " or "),
                        ", or 0, and as many columns where stages are 0");
  }
  if (config.tile_columns == config.tiles) return "want no tile-columns for square tiles";
  if (s.overlaps().empty() && MultipliesInKernels(s)) return "";
  if (!s.overlaps().empty() && (config.beside == 0 || config.pieces != 1))
    return "want beside=M and no pieces where an overlap's product is made in tiles";
  return TakesTiles(s, config.protocol, space.nodes)
             ? ""
             : "want tiles=0 where an overlap does not go from a product to a kernel that "
               "communicates, or from one that gathers to a product of what that has";
}

bool LacksALibrary(const Schedule& s, const ConfigSpace& space, bool tiles_overlaps) {
  if (!space.warp_groups) return false;
  const auto is_overlapped = [&](NodeId id) {
    return absl::c_any_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
      return absl::c_linear_search(overlap, id);
    });
  };
  return absl::c_any_of(s.launches().list, [&](const Launch& launch) {
    const NodeId id = launch.nodes[0];
    return launch.nodes.size() == 1 && IsScaledProduct(s.graph(), id) &&
           FitsTiles(s.program(), id) && !absl::c_linear_search(s.kernels(), launch.nodes) &&
           !(tiles_overlaps && is_overlapped(id));
  });
}

bool MultipliesByWarpGroups(const Schedule& s) {
  return MultipliesInKernels(s) && WantsWarpGroups(s);
}

bool MultipliesInKernels(const Schedule& s) {
  return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    return TiledProductOf(s.program(), kernel) >= 0;
  });
}

bool OnlyPulls(const Schedule& s) { return !s.overlaps().empty() || CommunicatesInTiles(s); }

bool CommunicatesInTiles(const Schedule& s) {
  return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    return TiledProductOf(s.program(), kernel) >= 0 &&
           absl::c_any_of(kernel, [&](NodeId id) { return s.program().communicates(id); });
  });
}

TileShape TileShapeOf(const Config& c) {
  if (c.tiles == 0) return {kTileSides[1], kTileSides[1]};
  return {c.tiles, c.TileColumns(), c.stages, c.tma};
}

void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs) {
  const auto does = [&](Protocol protocol) { return CommunicatesBeside(s, protocol, space.nodes); };
  const bool by_library = does(Protocol::kLibrary), generated = does(Protocol::kGenerated);
  const size_t plain = configs.size();
  for (int beside : Besides(space.multiprocessors)) {
    std::map<std::tuple<int, int, int>, int> blocks;  // by vec, unroll and threads
    for (size_t i = 0; i < plain; ++i) {
      const Config config = configs[i];
      if (config.protocol == Protocol::kLibrary ? !by_library : !generated) continue;
      if (config.blocks > space.multiprocessors) continue;  // blocks are `beside`
      const auto [first, is_new] =
          blocks.try_emplace({config.vec, config.unroll, config.threads}, config.blocks);
      if (first->second != config.blocks) continue;
      configs.emplace_back(config).beside = beside;
    }
  }
}

namespace {

/// Whether some product awaits the rows that a launch before it gathers.
bool AwaitsRows(const Schedule& s) {
  return absl::c_any_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
    for (size_t at = 0; at + 1 < overlap.size(); ++at) {
      const NodeId product = ProductOfLaunch(s, overlap[at + 1]);
      if (product >= 0 && GathersFor(s.program(), s.launch(overlap[at]).nodes, product))
        return true;
    }
    return false;
  });
}

}  // namespace

void AddTiles(const Schedule& s, const ConfigSpace& space, const std::vector<Config>& ways,
              const std::vector<LaunchShape>& shapes, std::vector<Config>& configs) {
  if (LacksALibrary(s, space, /*tiles_overlaps=*/true)) return;
  const bool in_kernels = s.overlaps().empty() && MultipliesInKernels(s), waits = AwaitsRows(s),
             wide = space.warp_groups && SuitWarpGroups(s), by_warps = !WantsWarpGroups(s);
  for (const Config& way : ways) {
    if (!in_kernels && !TakesTiles(s, way.protocol, space.nodes)) continue;
    for (int beside : in_kernels ? std::vector<int>{0} : Besides(space.multiprocessors)) {
      std::set<std::tuple<int, int, int64_t, int>> seen;  // blocks are the collective's, `beside`
      for (const LaunchShape& shape : shapes) {
        if (!seen.insert({shape.vec, shape.unroll, shape.chunk, shape.threads}).second) continue;
        const int left = space.multiprocessors - beside;
        const Config plain{.protocol = way.protocol,
                           .vec = shape.vec,
                           .chunk = shape.chunk,
                           .blocks = (waits ? 1 : 2) * left,
                           .threads = shape.threads,
                           .multicast = way.multicast,
                           .beside = beside,
                           .unroll = shape.unroll};
        for (int side : kTileSides) {
          if (by_warps && (shape.threads <= kTileThreads || in_kernels))
            configs.emplace_back(plain).tiles = side;
        }
        if (!wide) continue;
        for (const auto& [rows, columns, stages, tma] : kWideTiles) {
          Config config = plain;
          config.blocks = left;
          config.tiles = rows;
          config.tile_columns = columns == rows ? 0 : columns;
          config.stages = stages;
          config.tma = tma;
          if (WhyNoWideTiles(config, s, space).empty()) configs.push_back(config);
        }
      }
    }
  }
}

}  // namespace coconet
