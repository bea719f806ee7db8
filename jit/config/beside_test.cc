#include "jit/config/beside.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/find_schedule.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

Graph Adam(int64_t n) { return BindSizes(MakeWorkload("adam").value(), {{"N", n}}).value(); }

Graph Product(DType dtype = DType::kF32) {
  return BindSizes(MakeWorkload("mlp", {.dtype = dtype}).value(),
                   {{"B", 1}, {"S", 512}, {"H", 1024}, {"K", 256}})
      .value();
}

TEST(Configs, TryProductsInTilesOnGpusWhereAKernelTakesThem) {
  size_t wide = 0;
  const auto tried = [&](const Graph& program, absl::string_view words, const ConfigSpace& space) {
    std::set<std::string> tiled;
    wide = 0;
    const Schedule s = FindSchedule(program, words);
    for (const Config& config : Configs(s, space)) {
      EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
      if (config.tiles == 0) continue;
      EXPECT_TRUE(tiled.insert(Text(config)).second) << Text(config);
      EXPECT_EQ(config.pieces, 1);
      EXPECT_EQ(config.blocks,
                (config.stages > 0 ? 1 : 2) * (space.multiprocessors - config.beside));
      wide += config.stages > 0;
    }
    return tiled.size();
  };
  const ConfigSpace half{.ranks = 2, .multiprocessors = 66};
  EXPECT_GE(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", half), 4u);
  EXPECT_GE(tried(Product(), "ol(MM, AR, fuse(C))", half), 4u);  // generated
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 2, .multiprocessors = 1}),
            0u);
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 2}), 0u);
  EXPECT_EQ(tried(Product(), "MM; fuse(RS[flat], C, AG)", half), 0u);
  const size_t without =
      tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 4, .multiprocessors = 33});
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))",
                  {.ranks = 4, .multiprocessors = 33, .multicast = true}),
            2 * without);
  // Slices that end within a row leave no pieces, but tiles.
  const Graph odd =
      BindSizes(MakeWorkload("mlp").value(), {{"B", 1}, {"S", 5}, {"H", 99}, {"K", 256}}).value();
  EXPECT_GT(tried(odd, "ol(MM, fuse(RS[flat], C, AG))", half), 0u);
  // Warp groups multiply halves.
  ConfigSpace hopper = half;
  hopper.warp_groups = true;
  EXPECT_GT(tried(Product(DType::kBF16), "ol(MM, fuse(RS[flat], C, AG))", hopper), 0u);
  EXPECT_GE(wide, 4u);
  EXPECT_GT(tried(Product(DType::kBF16), "ol(MM, fuse(RS[flat], C, AG))", half), 0u);
  EXPECT_EQ(wide, 0u);
  EXPECT_GT(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", hopper), 0u);
  EXPECT_EQ(wide, 0u);
}

TEST(Validate, RefusesTilesThatNoKernelTakes) {
  const Schedule fused = FindSchedule(Product(), "ol(MM, fuse(RS[flat], C, AG))"),
                 unfused = FindSchedule(Product(), "ol(MM, AR, fuse(C))");
  const auto words = [](const Config& config, const Schedule& s) {
    const absl::Status status = Validate(config, s, {.ranks = 2});
    return std::string(status.ok() ? ""
                                   : status.message().substr(status.message().find("\": ") + 3));
  };
  const Config tiled{.beside = 8, .tiles = 64};
  EXPECT_EQ(words(tiled, fused), "");
  EXPECT_EQ(words({.protocol = Protocol::kGenerated, .beside = 8, .tiles = 128}, unfused), "");
  EXPECT_EQ(words({.beside = 8, .tiles = 32}, fused),
            "want tiles of 128 or 64, or 0, and as many columns where stages are 0");
  EXPECT_EQ(words({.beside = 8, .tiles = -1}, fused),
            "want tiles of 128 or 64, or 0, and as many columns where stages are 0");
  EXPECT_EQ(words({.tiles = 64}, fused),
            "want beside=M and no pieces where an overlap's product is made in tiles");
  EXPECT_EQ(words({.pieces = 2, .beside = 8, .tiles = 64}, fused),
            "want beside=M and no pieces where an overlap's product is made in tiles");
  const std::string taken =
      "want tiles=0 where an overlap does not go from a product to a kernel that communicates, or "
      "from one that gathers to a product of what that has";
  EXPECT_EQ(words(tiled, unfused), taken);  // a library's
  EXPECT_EQ(words(tiled, FindSchedule(Product(), "MM; fuse(RS[flat], C, AG)")), taken);
  EXPECT_EQ(words(tiled, FindSchedule(Adam(1024), "AR; fuse(C)")), taken);
  EXPECT_EQ(words({.tiles = 64}, FindSchedule(Adam(1024), "AR; fuse(C)")), taken);
  const Graph gathered =
      Parse(
          "coconet 1\nprogram t\ninput a : f32[96, 20] sliced(0)\ninput b : f32[20, 10] "
          "sliced(1)\noutput c = matmul(all_gather(abs(a)), b)\n")
          .value();
  EXPECT_EQ(words(tiled, FindSchedule(gathered, "ol(fuse(C, AG), MM); C")), "");
  EXPECT_EQ(words({.beside = 8}, fused),
            "want pieces=2 to 256 for a schedule with overlaps, else 1");
}

/// ranks' parts of a product, of which each computes something before they are added.
Graph Activation() {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\nprogram t\ninput a : bf16[640, 64] local\ninput b : bf16[64, 136] "
      "local\noutput c = all_reduce(sum, abs(matmul(a, b)))\n");
  return program.value();
}

TEST(Configs, OfKernelsThatGoOnWithTilesBesideCollectivesAreTiles) {
  const Schedule s = FindSchedule(Activation(), "ol(fuse(MM, C), fuse(RS[flat], AG))"),
                 by_any = FindSchedule(Activation(), "ol(fuse(MM, C), AR)");
  const ConfigSpace hopper{.ranks = 2, .multiprocessors = 66, .warp_groups = true};
  for (const Schedule* of : {&s, &by_any}) {
    const std::vector<Config> configs = Configs(*of, hopper);
    EXPECT_GE(configs.size(), 12u);
    for (const Config& config : configs) {
      EXPECT_TRUE(Validate(config, *of, hopper).ok()) << Text(config);
      EXPECT_GT(config.tiles, 0);
      EXPECT_GT(config.beside, 0);
      EXPECT_EQ(config.pieces, 1);
      EXPECT_TRUE(of == &s || config.protocol == Protocol::kGenerated) << Text(config);
    }
    EXPECT_EQ(Configs(*of, {.ranks = 2}).size(), 0u) << "on hosts";
  }
  const auto words = [&](const Config& config, const Schedule& of) {
    const absl::Status status = Validate(config, of, hopper);
    return std::string(status.ok() ? ""
                                   : status.message().substr(status.message().find("\": ") + 3));
  };
  EXPECT_EQ(words({.protocol = Protocol::kGenerated, .beside = 8, .tiles = 64}, by_any), "");
  EXPECT_EQ(words({.pieces = 4, .beside = 8}, s),
            "want tiles where a kernel of an overlap goes on with a product's elements");
  EXPECT_EQ(words({.tiles = 64}, s),
            "want beside=M and no pieces where an overlap's product is made in tiles");
  EXPECT_EQ(words({.beside = 8, .tiles = 64}, by_any),
            "want tiles=0 where an overlap does not go from a product to a kernel that "
            "communicates, or from one that gathers to a product of what that has");
  EXPECT_THAT(words({.ring = true, .beside = 8, .tiles = 64}, s), testing::Ne(""));
}

TEST(Validate, RefusesTilesThatWarpGroupsCannotMake) {
  const Schedule halves = FindSchedule(Product(DType::kBF16), "ol(MM, fuse(RS[flat], C, AG))"),
                 floats = FindSchedule(Product(), "ol(MM, fuse(RS[flat], C, AG))");
  const ConfigSpace host{.ranks = 2}, ampere{.ranks = 2, .multiprocessors = 66},
      hopper{.ranks = 2, .multiprocessors = 66, .warp_groups = true};
  const auto words = [](const Config& config, const Schedule& s, const ConfigSpace& space) {
    const absl::Status status = Validate(config, s, space);
    return std::string(status.ok() ? ""
                                   : status.message().substr(status.message().find("\": ") + 3));
  };
  const Config plain{.beside = 8, .tiles = 128, .tile_columns = 256, .stages = 4, .tma = true};
  EXPECT_EQ(words(plain, halves, host), "");
  EXPECT_EQ(words(plain, halves, hopper), "");
  EXPECT_EQ(words(plain, halves, ampere),
            "want stages=0 on GPUs that have no products by warp groups (wgmma, of sm_90a)");
  EXPECT_EQ(words(plain, floats, hopper),
            "want stages=0 for products of other types than f16 and bf16, and 8-bit floats with "
            "both operands along the dimension that is summed over");
  const auto with = [&](const auto& change) {
    Config config = plain;
    change(config);
    return words(config, halves, hopper);
  };
  const std::string shape =
      "want tiles=128 with tile-columns=64, 128, 192 or 256, or tiles=256 with 64 or 128, where "
      "stages are not 0";
  EXPECT_EQ(with([](Config& c) { c.tiles = 64; }), shape);
  EXPECT_EQ(with([](Config& c) { c.tiles = 256; }), shape);
  EXPECT_EQ(with([](Config& c) { c.tile_columns = 96; }), shape);
  EXPECT_EQ(with([](Config& c) { c.tile_columns = 512; }), shape);
  EXPECT_EQ(with([](Config& c) { c.tile_columns = -64; }), shape);
  EXPECT_EQ(with([](Config& c) { c.tiles = 256, c.tile_columns = 64; }), "");
  EXPECT_EQ(with([](Config& c) { c.tile_columns = 0; }), "");
  EXPECT_EQ(with([](Config& c) { c.stages = 2; }),
            "want stages at least 3, in 232448 bytes of shared memory, of which 2 stages take "
            "114760");
  EXPECT_EQ(with([](Config& c) { c.stages = 5; }),
            "want stages at least 3, in 232448 bytes of shared memory, of which 5 stages take "
            "262288");
  EXPECT_EQ(with([](Config& c) { c.stages = 1 << 30; }).substr(0, 28),
            "want stages at least 3, in 2");
  EXPECT_EQ(with([](Config& c) { c.stages = 0, c.tile_columns = 0; }),
            "want tma=1 with stages only");
  EXPECT_EQ(with([](Config& c) { c.tiles = 0, c.tma = false; }),
            "want tile-columns and stages with tiles only");
  EXPECT_EQ(with([](Config& c) { c.stages = 0, c.tma = false; }),
            "want tiles of 128 or 64, or 0, and as many columns where stages are 0");
}

/// Sums over ranks of a product of 8-bit floats with rows of `depth`.
Graph ProductOfFloats8(int64_t depth, bool along_k) {
  const absl::StatusOr<Graph> program = Parse(absl::StrCat(
      "coconet 1\nprogram bytes\ninput x : f8e4m3[256, ", depth, "] replicated\ninput w : f8e5m2[",
      along_k ? absl::StrCat("512, ", depth) : absl::StrCat(depth, ", 512"),
      "] replicated\noutput y = cast(bf16, matmul(x, w", along_k ? ", transpose_b" : "", "))\n"));
  CC_CHECK(program.ok());
  return Canonicalize(*program).graph;
}

TEST(Configs, LeaveProductsOf8BitFloatsToWarpGroups) {
  const Schedule s = FindSchedule(ProductOfFloats8(96, true), "fuse(MM, C)");
  const ConfigSpace ampere{.ranks = 1, .multiprocessors = 66},
      hopper{.ranks = 1, .multiprocessors = 66, .warp_groups = true};
  EXPECT_EQ(Configs(s, ampere).size(), 0u);
  const std::vector<Config> configs = Configs(s, hopper);
  EXPECT_GT(configs.size(), 0u);
  for (const Config& config : configs) {
    EXPECT_GT(config.stages, 0) << Text(config);
    EXPECT_EQ(Validate(config, s, hopper), absl::OkStatus());
  }
  EXPECT_THAT(Validate({.tiles = 64}, s, hopper).message(),
              testing::HasSubstr("want stages for products of 8-bit floats in tiles: only warp "
                                 "groups (sm_90a) make them"));
  const Config wide{.tiles = 128, .stages = 4};
  EXPECT_THAT(
      Validate(wide, FindSchedule(ProductOfFloats8(88, true), "fuse(MM, C)"), hopper).message(),
      testing::HasSubstr("at multiples of 16 elements where stages are not 0, have rows "
                         "of 88"));
  const std::vector<Schedule> others = Derive(ProductOfFloats8(96, false)).value();
  for (const Schedule& other : others)
    EXPECT_FALSE(MultipliesInKernels(other)) << "rows of w lie along n";
}

/// A program of statements that go on with `p`, a product with scales.
Graph ScaledProduct(const std::string& statements) {
  const absl::StatusOr<Graph> program =
      Parse(absl::StrCat("coconet 1\nprogram blocks\ninput x : f8e4m3[256, 512] replicated\n"
                         "input w : f8e4m3[384, 512] replicated\ninput s : f32[256, 4] replicated\n"
                         "input t : f32[3, 4] replicated\np = matmul(x, w, s, t, transpose_b)\n",
                         statements));
  CC_CHECK(program.ok());
  return Canonicalize(*program).graph;
}

TEST(Configs, LeaveProductsWithScalesToWarpGroups) {
  const Graph program = ScaledProduct("output y = cast(bf16, p)\n");
  const Schedule apart = FindSchedule(program, "MM; C"), s = FindSchedule(program, "fuse(MM, C)");
  const ConfigSpace ampere{.ranks = 1, .multiprocessors = 66},
      hopper{.ranks = 1, .multiprocessors = 66, .warp_groups = true};
  EXPECT_GT(Configs(apart, {.ranks = 1}).size(), 0u) << "on hosts";
  EXPECT_GT(Configs(apart, ampere).size(), 0u) << "which is refused when it is bound, in words";
  EXPECT_EQ(Configs(apart, hopper).size(), 0u);
  const std::vector<Config> configs = Configs(s, hopper);
  EXPECT_GT(configs.size(), 0u);
  for (const Config& config : configs) {
    EXPECT_EQ(config.TileColumns(), 128) << Text(config);
    EXPECT_EQ(Validate(config, s, hopper), absl::OkStatus());
  }
  const Config wide{.tiles = 128, .tile_columns = 256, .stages = 4};
  EXPECT_THAT(Validate(wide, s, hopper).message(),
              testing::HasSubstr("want tiles=128 with tile-columns of at most 128 for products "
                                 "with scales"));
}

TEST(Configs, LeaveOutTilesBesideAProductThatLacksALibrary) {
  const Graph program = ScaledProduct(
      "input v : bf16[384, 128] replicated\n"
      "output y = relu(matmul(cast(bf16, softmax(p)), v))\n");
  const Schedule apart = FindSchedule(program, "MM; C; fuse(MM, C)");
  const ConfigSpace hopper{.ranks = 1, .multiprocessors = 66, .warp_groups = true};
  EXPECT_EQ(Configs(apart, hopper).size(), 0u);
  for (const Config& config : {Config{}, Config{.tiles = 64}, {.tiles = 128, .stages = 4}}) {
    EXPECT_THAT(Validate(config, apart, hopper).message(),
                testing::HasSubstr("want a kernel that goes on with a product that has scales"));
  }
}

}  // namespace
}  // namespace coconet
