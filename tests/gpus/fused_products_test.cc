// Products that kernels make tile by tile and go on with: random shapes, layouts, types, tiles and
// epilogues, against the interpreter; on simulated GPUs in several interleavings.

#include <iostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/overlapped_products.h"
#include "coconet/schedule/prologue.h"
#include "gtest/gtest.h"
#include "jit/config/beside.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

ABSL_FLAG(int, products, 10, "how many products");
ABSL_FLAG(int, interleavings, 3, "each runs in so many");

namespace coconet {
namespace {

/// What becomes of the product s, with r of its shape, a row b and a column l.
constexpr const char* kEpilogues[] = {
    "max(s + b, 0)",
    "tanh(s) * r",
    "dropout(s + b, seed, 0.25) + r",
    "s",
    "cast(bf16, cast(f32, s) * 0.5 + cast(f32, r))",
    "cast(f32, s) * cast(f32, l)",
    "select(s > r, s, r - b)",
    "sigmoid(s * l + b) + s",
};
/// Layouts of a and b.
constexpr absl::string_view kWhole = "replicated";
constexpr absl::string_view kLayouts[][2] = {{kWhole, kWhole},
                                             {"sliced(0)", kWhole},
                                             {kWhole, "sliced(1)"},
                                             {"sliced(1)", "sliced(0)"},
                                             {"local", kWhole}};

class FusedProductsTest : public testing::Test {
 protected:
  int64_t Draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  template <class T, size_t N>
  const T& Any(const T (&of)[N]) {
    return of[random_() % N];
  }

  /// Types of the operands of a product of `dtype`: 8-bit floats, maybe with scales, whose product
  /// is cast to it, or itself.
  struct Operands {
    DType a, w;
    bool are_floats8 = false, are_scaled = false;
    std::string Product(const std::string& a, DType dtype, bool transpose_a,
                        bool transpose_b) const {
      const std::string product =
          absl::StrCat("matmul(", a, ", w", are_scaled ? ", x, y" : "",
                       transpose_a ? ", transpose_a" : "", transpose_b ? ", transpose_b" : "", ")");
      return are_floats8 ? absl::StrCat("cast(", Name(dtype), ", ", product, " * 0.5)") : product;
    }
    /// A multiple at which rows along k, and blocks of scales, begin on each of up to 3 ranks.
    int64_t Depth(int64_t depth) const {
      const int64_t multiple = are_scaled ? 128 : are_floats8 ? 96 : 1;
      return (depth + multiple - 1) / multiple * multiple;
    }
  };
  Operands DrawOperands(DType dtype, bool may_scale) {
    if (Draw(0, 3) > 0) return {dtype, dtype};
    const DType of[] = {DType::kF8E4M3, DType::kF8E5M2};
    return {Any(of), Any(of), true, may_scale && Draw(0, 1) == 1};
  }

  /// The scales of an operand of `lines` lines along k and this layout: one for each line, or some
  /// or all of them, and for each 128 of k. `lead`: of its leading dimensions.
  std::string DrawScales(const char* name, const std::string& lead, int64_t lines, int64_t depth,
                         absl::string_view layout) {
    const bool cuts_lines = layout != kWhole && lead.empty();
    const int64_t counts[] = {lines, 1, lines % 2 == 0 && !cuts_lines ? lines / 2 : lines};
    const int64_t count = Any(counts);
    return absl::StrCat("input ", name, " : f32[", lead, count, ", ",
                        depth == 0 ? Draw(0, 1) : depth / 128, "] ",
                        cuts_lines && count == 1 ? kWhole : layout, "\n");
  }

  /// The result as it is, or on its way to other ranks.
  std::string DrawMoved(const std::string& result, bool rows_sliced, bool columns_sliced,
                        int lead) {
    const int way = static_cast<int>(Draw(0, 3));
    if (way == 0 || (!rows_sliced && !columns_sliced)) return result;
    if (way == 1) return absl::StrCat("all_gather(", result, ")");
    if (way == 2) return absl::StrCat("send(", result, ", ", Draw(0, 1) ? "next" : "previous", ")");
    const int to = static_cast<int>(rows_sliced ? 1 + Draw(0, lead) : Draw(0, lead));
    return absl::StrCat("all_to_all(", result, ", ", to, ")");
  }

  /// The product, or the sum of what ranks have of it or compute with it.
  std::string DrawReduced(bool is_partial, DType dtype) {
    if (!is_partial) return "p";
    if (Draw(0, 2) == 0) {
      return Draw(0, 1) == 0
                 ? "all_reduce(sum, max(p + b, 0) * r)"
                 : absl::StrCat("cast(", Name(dtype), ", all_reduce(sum, cast(f32, p) * 0.5))");
    }
    return Draw(0, 2) > 0 || dtype == DType::kF32
               ? "all_reduce(sum, p)"
               : absl::StrCat("cast(", Name(dtype), ", all_reduce(sum, cast(f32, p)))");
  }

  /// Products of several matrices each, of which some rows are in use, or all. The operands have a
  /// matrix for each, or for each index of one dimension.
  Graph DrawBatch() {
    const DType dtype = Any({DType::kF32, DType::kF16, DType::kBF16});
    const Operands operands = DrawOperands(dtype, true);
    const bool whole = Draw(0, 2) > 0, transpose_a = !operands.are_floats8 && Draw(0, 3) == 0,
               transpose_b = operands.are_floats8 || Draw(0, 1) == 1, counts = Draw(0, 1) == 1,
               cuts = Draw(0, 2) == 0;
    const auto extent = [&](int64_t least, int64_t most) {
      return whole ? (least + 7) / 8 * 8 + 8 * Draw(0, (most - least) / 8) : Draw(least, most);
    };
    const int64_t rows = extent(operands.are_floats8 ? 1 : 34, 200), columns = extent(1, 150),
                  depth = Draw(0, 15) == 0 ? 0 : operands.Depth(extent(1, 140)),
                  next = extent(1, 40);
    const std::string first = absl::StrCat(Draw(2, 4), ", "),
                      second = Draw(0, 1) == 1 ? absl::StrCat(Draw(1, 3), ", ") : "",
                      lead = absl::StrCat(first, second);
    // What an operand has of the leading dimensions.
    const std::string parts[] = {lead, second.empty() ? lead : absl::StrCat(first, "1, "), second,
                                 lead};
    const std::string &of_a = parts[Draw(0, 1)], &of_w = of_a == lead ? Any(parts) : lead;
    const auto tensor = [&](const char* name, DType of, const std::string& leading, int64_t down,
                            int64_t across) {
      return absl::StrCat("input ", name, " : ", Name(of), "[", leading, down, ", ", across, "] ",
                          cuts && leading.size() == lead.size() ? "sliced(0)" : kWhole, "\n");
    };
    std::string text =
        absl::StrCat("coconet 1\nprogram batch\n",
                     transpose_a ? tensor("a", operands.a, of_a, depth, rows)
                                 : tensor("a", operands.a, of_a, rows, depth),
                     transpose_b ? tensor("w", operands.w, of_w, columns, depth)
                                 : tensor("w", operands.w, of_w, depth, columns),
                     tensor("r", dtype, lead, rows, columns), "input b : ", Name(dtype), "[",
                     columns, "] replicated\ninput l : ", Name(dtype), "[", rows,
                     ", 1] replicated\ninput seed : i64[] replicated\ns = ",
                     operands.Product("a", dtype, transpose_a, transpose_b), "\n");
    if (operands.are_scaled) {
      std::string scales;
      for (const auto& [name, of, lines] : {std::tuple("x", of_a, rows), {"y", of_w, columns}}) {
        const bool own = Draw(0, 2) > 0;  // or those of all matrices
        const std::string ones = of.empty() ? "" : of.size() > 3 ? "1, 1, " : "1, ";
        const bool is_cut = own && cuts && of.size() == lead.size();
        scales += DrawScales(name, own ? of : ones, lines, depth, is_cut ? "sliced(0)" : kWhole);
      }
      text = absl::StrReplaceAll(text, {{"program batch\n", "program batch\n" + scales}});
    }
    if (counts) {
      absl::StrAppend(&text, "input n : i32[", lead.substr(0, lead.size() - 2), "] ",
                      cuts ? "sliced(0)" : kWhole, "\n", tensor("v", dtype, lead, columns, next),
                      "h = cast(", Name(dtype), ", ", Any(kEpilogues),
                      ")\noutput c = keep_rows(matmul(h, v), n)\n");
    } else {
      const int more = second.empty() ? 1 : 2;
      absl::StrAppend(&text, "output c = ", DrawMoved(Any(kEpilogues), cuts, false, more), "\n");
    }
    return Parsed(text);
  }

  static Graph Parsed(const std::string& text) {
    const absl::StatusOr<Graph> program = Parse(text);
    EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
    return program.ok() ? Canonicalize(*program).graph : Graph();
  }

  /// A program, of which some schedule makes the product in a kernel. Most have rows as warp groups
  /// take them; `lead`: a is several matrices.
  Graph DrawProgram() {
    const DType dtype = Any({DType::kF32, DType::kF16, DType::kBF16});
    const auto& [of_a, of_b] = Any(kLayouts);
    const bool cuts_depth = of_a == "sliced(1)";
    const Operands operands = DrawOperands(dtype, !cuts_depth);
    const bool whole = Draw(0, 2) > 0, transpose_b = operands.are_floats8 || Draw(0, 1) == 1;
    const auto extent = [&](int64_t least, int64_t most) {
      return whole ? (least + 7) / 8 * 8 + 8 * Draw(0, (most - least) / 8) : Draw(least, most);
    };
    const int64_t rows = extent(operands.are_floats8 ? 1 : 70, 300), columns = extent(1, 300),
                  depth = Draw(0, 15) == 0 ? 0 : operands.Depth(extent(1, 200));
    const bool gathers = of_a == "sliced(0)" && Draw(0, 1) == 0;
    const bool is_partial = of_a == "local" || of_a == "sliced(1)",
               may_turn = of_a == kWhole || of_a == "local",
               transpose_a = may_turn && !operands.are_floats8 && Draw(0, 2) == 0,
               lead = may_turn && !transpose_a && Draw(0, 3) == 0;
    const auto tensor = [&](const char* kind, const char* name, const std::string& shape,
                            absl::string_view layout, DType of) {
      return absl::StrCat(kind, " ", name, " : ", Name(of), "[", shape, "] ", layout, "\n");
    };
    const std::string down = lead ? absl::StrCat("3, ", rows) : absl::StrCat(rows);
    std::string sliced_b(of_b);
    if (transpose_b && of_b == "sliced(1)") sliced_b = "sliced(0)";
    if (transpose_b && of_b == "sliced(0)") sliced_b = "sliced(1)";
    std::string text = absl::StrCat(
        "coconet 1\nprogram product\n",
        operands.are_scaled
            ? DrawScales("x", lead ? "3, " : "", rows, depth,
                         of_a == "sliced(0)" && !gathers ? of_a : kWhole) +
                  DrawScales("y", "", columns, depth, of_b == kWhole ? kWhole : sliced_b)
            : "",
        tensor("input", "a",
               transpose_a ? absl::StrCat(depth, ", ", rows) : absl::StrCat(down, ", ", depth),
               of_a, operands.a),
        tensor(
            "input", "w",
            transpose_b ? absl::StrCat(columns, ", ", depth) : absl::StrCat(depth, ", ", columns),
            sliced_b, operands.w),
        tensor(Draw(0, 2) == 0 ? "state" : "input", "r", absl::StrCat(down, ", ", columns),
               "replicated", dtype),
        tensor("input", "b", absl::StrCat(columns), "replicated", dtype),
        tensor("input", "l", absl::StrCat(rows, ", 1"), "replicated", dtype),
        "input seed : i64[] replicated\n",
        "p = ", operands.Product(gathers ? "all_gather(a)" : "a", dtype, transpose_a, transpose_b),
        "\n", "s = ", DrawReduced(is_partial, dtype), "\n", "output c = ",
        DrawMoved(Any(kEpilogues), of_a == "sliced(0)" && !gathers, of_b == "sliced(1)", lead),
        "\n", Draw(0, 3) == 0 ? "output d = s\n" : "");
    return Parsed(text);
  }

  /// Whether the schedule makes a product in a kernel, and none of 8-bit floats outside of kernels:
  /// a GPU's library does not take all of these.
  static bool IsTiled(const Schedule& s) {
    return MultipliesInKernels(s) && absl::c_none_of(s.launches().list, [&](const Launch& launch) {
             return IsOfFloats8(s.program(), launch.nodes[0]) &&
                    !absl::c_linear_search(s.kernels(), launch.nodes);
           });
  }

  /// Tiles of any shape that the operands admit.
  void DrawTiles(const Schedule& schedule, int ranks, Config& config) {
    constexpr int kShapes[][3] = {{64, 0, 0},    {128, 0, 0},   {128, 64, 3}, {128, 0, 5},
                                  {128, 192, 4}, {128, 256, 4}, {256, 64, 3}, {256, 128, 4}};
    const ConfigSpace space{.ranks = ranks, .multiprocessors = 4, .warp_groups = true};
    const auto& [rows, columns, stages] = Any(kShapes);
    Config drawn = config;
    const bool beside = TilesInKernels(schedule);
    drawn.tiles = Draw(0, 6) == 0 && !beside ? 0 : rows;
    if (beside) {
      // All at once, on a simulated GPU's four multiprocessors.
      config.pieces = drawn.pieces = 1;
      config.columns = drawn.columns = false;
      config.beside = drawn.beside = static_cast<int>(Draw(1, 2));
      config.blocks = drawn.blocks = static_cast<int>(Draw(1, 2));
      config.tiles = 64;  // where the drawn ones are not legal
    }
    if (drawn.tiles > 0) {
      drawn.tile_columns = columns;
      drawn.stages = stages;
      drawn.tma = stages > 0 && Draw(0, 2) > 0;
    }
    if (MultipliesByWarpGroups(schedule)) {  // as they all can be made
      config.tiles = 128;
      config.tile_columns = 64;
      config.stages = 3;
      config.tma = true;
    }
    if (WhyNoTiles(drawn, schedule, space).empty()) config = drawn;
  }

  const uint64_t seed_ = FreshSeed();
  std::mt19937_64 random_{seed_};
};

/// Whether a kernel makes a product's tiles and communicates.
bool Communicates(const Schedule& s) {
  return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    return TiledProductOf(s.program(), kernel) >= 0 && absl::c_any_of(kernel, [&](NodeId id) {
             return s.program().communicates(id) || As<Send>(s.graph(), id);
           });
  });
}

TEST_F(FusedProductsTest, MatchTheInterpreterAtRandomShapes) {
  VariantBatch batch;
  int wide = 0, communicate = 0, beside = 0;
  for (int i = 0; i < absl::GetFlag(FLAGS_products); ++i) {
    const Graph program = Draw(0, 2) == 0 ? DrawBatch() : DrawProgram();
    const absl::StatusOr<std::vector<Schedule>> schedules = Derive(program);
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    std::vector<const Schedule*> tiled, overlapped;
    for (const Schedule& s : *schedules) {
      if (IsTiled(s)) (TilesInKernels(s) ? overlapped : tiled).push_back(&s);
    }
    ASSERT_FALSE(tiled.empty()) << Print(program) << " COCONET_SEED=" << seed_;
    if (!overlapped.empty() && Draw(0, 2) > 0) tiled = overlapped;
    const Schedule& schedule = *tiled[random_() % tiled.size()];
    const int ranks = static_cast<int>(Draw(1, 3));
    Config config = DrawArguments(DrawCompiledConfig(random_), schedule, random_);
    config.protocol = Protocol::kGenerated;
    DrawTiles(schedule, ranks, config);
    wide += config.stages > 0;
    beside += TilesInKernels(schedule);
    communicate += Communicates(schedule);
    const absl::Status added = batch.Add(program, schedule, config, ranks);
    ASSERT_TRUE(added.ok()) << added << "\n" << Text(config) << " COCONET_SEED=" << seed_;
  }
  for (int i = 0; i < (TheMachine().simulated ? absl::GetFlag(FLAGS_interleavings) : 1); ++i) {
    ASSERT_EQ(batch.RunOn(TheMachine().simulated ? SimulatedMachine(SimtOptions::Of(random_() / 2))
                                                 : TheMachine(),
                          seed_, 2),
              "")
        << "interleaving " << i << ", COCONET_SEED=" << seed_;
  }
  std::cout << batch.kernels() << " kernels, " << batch.tally().variants << " variants run, "
            << wide << " by warp groups, " << communicate << " communicate, " << beside
            << " beside a collective, COCONET_SEED=" << seed_ << "\n";
}

}  // namespace
}  // namespace coconet
