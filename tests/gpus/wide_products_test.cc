// Products beside collectives, in tiles by warp groups and by warps, on simulated GPUs: random
// shapes, layouts, types, tiles and what comes before and after them, by kernels of its own or by
// the product's, in several interleavings, against the interpreter. And how operands that warp
// groups cannot take are refused.

#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/config/beside.h"
#include "jit/lower/lower.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

ABSL_FLAG(int, products, 8, "how many products");
ABSL_FLAG(int, interleavings, 3, "each runs in so many");

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// c[rows, columns] = op(a) . op(b) over `depth`.
struct Shape {
  DType dtype;
  int64_t rows, columns, depth;
  bool transpose_a, transpose_b;
  int gathers = -1;  // a is gathered from slices over this dimension, else local
  bool reduces = true;
  bool leads = false;  // a and c are three matrices
  bool of_floats8 = false;
};

/// `reduced`: what ranks reduce of the product p, "@T@" its type, to the sums s; `after`: what
/// becomes of s, and of r. `others`: further results.
Graph ProgramOf(const Shape& s, const std::string& after,
                const std::string& reduced = "all_reduce(sum, p)", const std::string& others = "") {
  const auto operand = [&](const char* name, int64_t rows, int64_t columns, bool transposed,
                           const std::string& layout, const char* kind = "input ") {
    const bool is_factor = *name == 'a' || *name == 'b';
    const DType dtype = !s.of_floats8 || !is_factor ? s.dtype
                        : *name == 'a'              ? DType::kF8E4M3
                                                    : DType::kF8E5M2;
    return absl::StrCat(kind, name, " : ", Name(dtype), "[", s.leads && *name != 'b' ? "3, " : "",
                        transposed ? columns : rows, ", ", transposed ? rows : columns, "] ",
                        layout, "\n");
  };
  const std::string of_a = s.gathers < 0 ? "local" : absl::StrCat("sliced(", s.gathers, ")"),
                    of_b = s.reduces       ? "local"
                           : s.transpose_b ? "sliced(0)"
                                           : "sliced(1)",
                    a = s.gathers < 0 ? "a" : "all_gather(max(a, 0))",
                    product =
                        absl::StrCat("matmul(", a, ", b", s.transpose_a ? ", transpose_a" : "",
                                     s.transpose_b ? ", transpose_b" : "", ")");
  std::string text = absl::StrCat(
      "coconet 1\nprogram product\n", operand("a", s.rows, s.depth, s.transpose_a, of_a),
      operand("b", s.depth, s.columns, s.transpose_b, of_b),
      operand("r", s.rows, s.columns, false, "replicated", "state "),
      operand("t", s.rows, s.columns, false, "local", "state "), "input q : ", Name(s.dtype), "[",
      s.columns, "] replicated\n", "input seed : i64[] replicated\n", "p = ", product,
      "\ns = ", s.reduces ? absl::StrReplaceAll(reduced, {{"@T@", Name(s.dtype)}}) : "p",
      "\noutput c = ", after, "\n", others);
  const absl::StatusOr<Graph> program = Parse(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  CC_CHECK(program.ok());
  return Canonicalize(*program).graph;
}

constexpr const char* kReduced[] = {
    "all_reduce(sum, p)",
    "all_reduce(sum, max(p + q, 0))",
    "cast(@T@, all_reduce(sum, cast(f32, p) * 0.5))",
    "all_reduce(max, tanh(p) * r)",
    "all_reduce(sum, dropout(p + q, seed, 0.25))",
    "all_reduce(sum, max(p, 0)) - all_reduce(max, max(p, 0) * r)",
    "cast(@T@, all_reduce(sum, cast(f32, tanh(p))))",
    "all_reduce(sum, sigmoid(p) + q) * 0.5",
};
/// Further results: the first two of any program, the others of one that reduces.
constexpr const char* kOthers[] = {"", "output d = p\n", "update(t, 0.5 * t + p)\n",
                                   "update(r, 0.5 * r + s)\n", "update(r, s)\n"};
constexpr const char* kAfter[] = {"abs(s + r)", "sigmoid(s) * r", "max(s, r) - s", "s"};

class WideProductsTest : public testing::Test {
 protected:
  int64_t Draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  /// Some multiple of 8 where rows of an operand have that many elements.
  int64_t DrawExtent(int64_t most, bool is_row) {
    return is_row ? 8 * Draw(1, most / 8) : Draw(1, most);
  }
  Shape DrawShape() {
    Shape s;
    s.dtype = Draw(0, 1) == 0 ? DType::kF16 : DType::kBF16;
    if (Draw(0, 1) == 1) {
      s.leads = Draw(0, 2) == 0;
      s.gathers = s.leads ? static_cast<int>(Draw(0, 1)) : 0;
      s.reduces = Draw(0, 2) == 0;
    }
    s.of_floats8 = Draw(0, 3) == 0;
    if (s.of_floats8) s.dtype = DType::kF32;
    s.transpose_a = s.gathers < 0 && !s.of_floats8 && Draw(0, 1) == 1;
    s.transpose_b = s.of_floats8 || Draw(0, 1) == 1;
    s.rows = DrawExtent(300, s.transpose_a);
    s.columns = DrawExtent(300, !s.transpose_b);
    s.depth = Draw(0, 15) == 0 ? 0 : DrawExtent(330, !s.transpose_a || s.transpose_b);
    if (s.of_floats8) s.depth = (s.depth + 15) / 16 * 16;
    return s;
  }
  Config DrawTiles(Config config, bool of_floats8) {
    constexpr int kShapes[][2] = {{128, 64},  {128, 0},  {128, 192},
                                  {128, 256}, {256, 64}, {256, 128}};
    const auto& [rows, columns] = kShapes[Draw(0, std::size(kShapes) - 1)];
    const bool wide = of_floats8 || Draw(0, 4) > 0;
    config.tiles = wide ? rows : 64;
    config.tile_columns = wide ? columns : 0;
    config.tma = wide && Draw(0, 2) > 0;
    config.stages = wide ? static_cast<int>(Draw(kFewestStages, 6)) : 0;
    while (WideTileBytes(TileShapeOf(config)) > kMostSharedBytes) --config.stages;
    // All at once, on a simulated GPU's four multiprocessors.
    config.beside = static_cast<int>(Draw(1, 2));
    config.blocks = static_cast<int>(Draw(1, 2));
    config.pieces = 1;
    config.columns = false;
    return config;
  }

  const uint64_t seed_ = FreshSeed();
  std::mt19937_64 random_{seed_};
};

TEST_F(WideProductsTest, MatchTheInterpreterAtRandomShapes) {
  VariantBatch batch;
  int in_kernels = 0;
  for (int i = 0; i < absl::GetFlag(FLAGS_products); ++i) {
    Shape shape = DrawShape();
    // The rows of a product that kernels make tile by tile are more.
    const bool computes = Draw(0, 2) > 0;
    if (computes && shape.rows <= kMostRows) shape.rows += kMostRows;
    const Graph program = ProgramOf(shape, kAfter[Draw(0, std::size(kAfter) - 1)],
                                    kReduced[computes ? Draw(1, std::size(kReduced) - 1) : 0],
                                    kOthers[Draw(0, shape.reduces ? std::size(kOthers) - 1 : 1)]);
    // Some have more than a job derives, of which those in tiles come last.
    const absl::StatusOr<std::vector<Schedule>> schedules =
        Derive(program, {.max_schedules = 1 << 14});
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    std::vector<const Schedule*> tiled, fused;
    for (const Schedule& s : *schedules) {
      if (TakesTiles(s, Protocol::kGenerated, 1)) (TilesInKernels(s) ? fused : tiled).push_back(&s);
    }
    if (!fused.empty() && (tiled.empty() || Draw(0, 2) > 0)) tiled = fused;
    ASSERT_FALSE(tiled.empty()) << Print(program) << " COCONET_SEED=" << seed_;
    const Schedule& schedule = *tiled[random_() % tiled.size()];
    in_kernels += TilesInKernels(schedule);
    Config config = DrawArguments(DrawCompiledConfig(random_), schedule, random_);
    config.protocol = Protocol::kGenerated;
    config = DrawTiles(config, shape.of_floats8);
    const absl::Status added = batch.Add(program, schedule, config, static_cast<int>(Draw(1, 3)));
    ASSERT_TRUE(added.ok()) << added << "\n" << Text(config) << " COCONET_SEED=" << seed_;
  }
  for (int i = 0; i < absl::GetFlag(FLAGS_interleavings); ++i) {
    ASSERT_EQ(batch.RunOn(SimulatedMachine(SimtOptions::Of(random_() / 2)), seed_, 2), "")
        << "interleaving " << i << ", COCONET_SEED=" << seed_;
  }
  std::cout << batch.kernels() << " kernels, " << batch.tally().variants << " variants run, "
            << in_kernels << " with products in kernels, COCONET_SEED=" << seed_ << "\n";
}

TEST_F(WideProductsTest, RefuseRowsThatAreNotOfWholePieces) {
  const auto refusal = [](const Shape& shape, bool tma) {
    const std::vector<Schedule> schedules = Derive(ProgramOf(shape, "s")).value();
    for (const Schedule& s : schedules) {
      if (!TakesTiles(s, Protocol::kGenerated, 1)) continue;
      const Config config{
          .protocol = Protocol::kGenerated, .beside = 1, .tiles = 128, .stages = 3, .tma = tma};
      const absl::Status status = Lower(s, config, 2).status();
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
      return std::string(status.message());
    }
    return std::string("no schedule takes tiles");
  };
  for (bool tma : {false, true}) {
    const std::string begin = tma ? "that begin at" : "that begin and end at";
    EXPECT_EQ(refusal({DType::kBF16, 30, 40, 64, false, false}, tma), "");
    EXPECT_EQ(refusal({DType::kBF16, 40, 30, 64, true, true}, tma), "");
    EXPECT_THAT(refusal({DType::kBF16, 30, 40, 60, false, false}, tma),
                HasSubstr(absl::StrCat("want rows of input a : bf16[30, 60] local ", begin,
                                       " multiples of 8 elements where stages are not 0, have rows "
                                       "of 60, 60 apart")));
    EXPECT_THAT(refusal({DType::kF16, 30, 44, 64, false, false}, tma),
                HasSubstr("want rows of input b "));
    EXPECT_THAT(refusal({DType::kF16, 31, 40, 64, true, false}, tma),
                HasSubstr("want rows of input a "));
    EXPECT_THAT(refusal({DType::kF16, 32, 40, 60, true, true}, tma),
                HasSubstr("want rows of input b "));
    EXPECT_THAT(refusal({DType::kF16, int64_t{1} << 31, 8, 8, false, false}, tma),
                tma ? HasSubstr("want rows and columns of input a : f16[2147483648, 8] local of at "
                                "most 2147482624 elements with tma=1, have 2147483648")
                    : HasSubstr(""));
  }
}

}  // namespace
}  // namespace coconet
