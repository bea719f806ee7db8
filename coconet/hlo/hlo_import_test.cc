#include "coconet/hlo/hlo_import.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "coconet/hlo/testing/imported_results.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ImportHlo, ElementwiseOperationsBroadcastWithoutOperations) {
  EXPECT_EQ(Result("x = f32[2,3] parameter(0)\n y = f32[3] parameter(1)\n"
                   "b = f32[2,3] broadcast(y), dimensions={1}\n c = f32[] constant(2)\n"
                   "d = f32[2,3] broadcast(c), dimensions={}\n m = f32[2,3] multiply(x, d)\n"
                   "s = f32[2,3] subtract(m, b)"),
            List(6, [](int64_t i) { return 2 * In("x", i) - In("y", i % 3); }));
  // Along the rows instead of the columns, and both.
  EXPECT_EQ(Result("x = f32[2] parameter(0)\n y = f32[3] parameter(1)\n"
                   "a = f32[2,3] broadcast(x), dimensions={0}\n"
                   "b = f32[2,3] broadcast(y), dimensions={1}\n s = f32[2,3] multiply(a, b)"),
            List(6, [](int64_t i) { return In("x", i / 3) * In("y", i % 3); }));
}

TEST(ImportHlo, ReductionsThatAreBroadcastBackStayInOneShape) {
  const std::string text = Module(
      "x = f32[4,8] parameter(0)\n z = f32[] constant(0)\n"
      "r = f32[4] reduce(x, z), dimensions={1}, to_apply=add\n"
      "b = f32[4,8] broadcast(r), dimensions={0}\n d = f32[4,8] divide(x, b)");
  const absl::StatusOr<ImportedHlo> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Print(imported->program), Not(HasSubstr("reshape")));
  EXPECT_THAT(Print(imported->program), Not(HasSubstr("expand")));
}

TEST(ImportHlo, Views) {
  EXPECT_EQ(Result("x = f32[2,3] parameter(0)\n t = f32[3,2] transpose(x), dimensions={1,0}"),
            List(6, [](int64_t i) { return In("x", i % 2 * 3 + i / 2); }));
  EXPECT_EQ(Result("x = f32[2,3] parameter(0)\n t = f32[3,2] transpose(x), dimensions={1,0}\n"
                   "r = f32[6] reshape(t)"),
            List(6, [](int64_t i) { return In("x", i % 2 * 3 + i / 2); }));
  EXPECT_EQ(Result("x = f32[2,3] parameter(0)\n r = f32[2,3] reverse(x), dimensions={1}"),
            List(6, [](int64_t i) { return In("x", i / 3 * 3 + 2 - i % 3); }));
  EXPECT_EQ(Result("x = f32[10] parameter(0)\n s = f32[3] slice(x), slice={[1:9:3]}"),
            List(3, [](int64_t i) { return In("x", 1 + 3 * i); }));
  EXPECT_EQ(Result("x = f32[2] parameter(0)\n y = f32[3] parameter(1)\n"
                   "c = f32[7] concatenate(x, y, x), dimensions={0}"),
            List(7, [](int64_t i) {
              return i < 2 ? In("x", i) : i < 5 ? In("y", i - 2) : In("x", i - 5);
            }));
  EXPECT_EQ(Result("x = f32[3] parameter(0)\n z = f32[] constant(9)\n"
                   "p = f32[7] pad(x, z), padding=1_1_1"),
            List(7, [](int64_t i) { return i % 2 == 1 ? In("x", i / 2) : 9; }));
  EXPECT_EQ(Result("x = f32[5] parameter(0)\n z = f32[] constant(9)\n"
                   "p = f32[4] pad(x, z), padding=-2_1"),
            List(4, [](int64_t i) { return i < 3 ? In("x", i + 2) : 9; }));
  // Column-major memory read as row-major.
  EXPECT_EQ(Result("x = f32[2,3]{0,1} parameter(0)\n b = f32[3,2]{1,0} bitcast(x)"),
            List(6, [](int64_t i) { return In("x", i % 2 * 3 + i / 2); }));
  for (const char* computed : {"copy(x)", "negate(n)", "add(x, z)",
                               "transpose(t), dimensions={1,0}", "get-tuple-element(p), index=0"}) {
    EXPECT_EQ(Result(absl::StrCat("x = f32[2,3]{1,0} parameter(0)\n n = f32[2,3]{1,0} negate(x)\n"
                                  "t = f32[3,2]{1,0} transpose(x), dimensions={1,0}\n"
                                  "o = f32[] constant(0)\n z = f32[2,3]{1,0} broadcast(o)\n"
                                  "p = (f32[2,3]{0,1}) tuple(x)\n"
                                  "c = f32[2,3]{0,1} ",
                                  computed, "\n b = f32[6]{0} bitcast(c)")),
              List(6, [](int64_t i) { return In("x", i % 2 * 3 + i / 2); }))
        << computed;
  }
}

TEST(ImportHlo, Constants) {
  EXPECT_EQ(Result("c = s32[2,3] constant({ { 1, 2, 3 }, { 4, 5, 6 } })"),
            List(6, [](int64_t i) { return i + 1.0; }));
  EXPECT_EQ(Result("c = f32[4] constant({1.5, -2, -2, 7})"), (std::vector<Number>{1.5, -2, -2, 7}));
  EXPECT_EQ(Result("i = s32[2,3] iota(), iota_dimension=0"),
            List(6, [](int64_t i) { return static_cast<double>(i / 3); }));
  EXPECT_EQ(Result("c = pred[2] constant({false, true})\n u = s32[2] convert(c)"),
            (std::vector<Number>{0, 1}));
}

TEST(ImportHlo, Conversions) {
  // HLO keeps low bits where the language saturates.
  const auto wrapped = [](int64_t i, int64_t modulus) {
    return static_cast<double>(((static_cast<int64_t>(In("x", i)) % modulus) + modulus) % modulus);
  };
  EXPECT_EQ(Result("x = s32[11] parameter(0)\n c = u8[11] convert(x)"),
            List(11, [&](int64_t i) { return wrapped(i, 256); }));
  EXPECT_EQ(Result("x = s32[11] parameter(0)\n c = u32[11] convert(x)"),
            List(11, [&](int64_t i) { return wrapped(i, int64_t{1} << 32); }));
  EXPECT_EQ(Result("x = s32[11] parameter(0)\n f = s32[] constant(100)\n"
                   "g = s32[11] broadcast(f), dimensions={}\n m = s32[11] multiply(x, g)\n"
                   "c = s8[11] convert(m)"),
            List(11, [](int64_t i) {
              return static_cast<double>(static_cast<int8_t>(static_cast<int>(100 * In("x", i))));
            }));
  EXPECT_EQ(Result("x = s32[11] parameter(0)\n u = u32[11] convert(x)\n c = s32[11] convert(u)"),
            List(11, [](int64_t i) { return In("x", i); }));
}

TEST(ImportHlo, RowsOfWhatIsFilledRowByRowAreNotCopied) {
  const std::string fill =
      "x = f32[3] parameter(0)\n z = f32[] constant(0)\n i0 = s32[] constant(0)\n"
      "i1 = s32[] constant(1)\n i2 = s32[] constant(2)\n"
      "s = f32[4,3] broadcast(z), dimensions={}\n n = f32[3] negate(x)\n"
      "r0 = f32[1,3] reshape(x)\n r1 = f32[1,3] reshape(n)\n"
      "a = f32[4,3] dynamic-update-slice(s, r0, i0, i0)\n"
      "b = f32[4,3] dynamic-update-slice(a, r1, i2, i0)\n";
  const absl::StatusOr<ImportedHlo> taken =
      Import(Module(fill + "d = f32[1,3] dynamic-slice(b, i2, i0), dynamic_slice_sizes={1,3}\n"
                           "e = f32[1,3] dynamic-slice(b, i1, i0), dynamic_slice_sizes={1,3}\n"
                           "f = f32[1,3] add(d, e)"));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(Print(taken->program), Not(HasSubstr("concat")));
  EXPECT_THAT(Print(taken->program), Not(HasSubstr("slice")));
  EXPECT_EQ(Result(fill), List(12, [](int64_t i) {
              return i < 3 ? In("x", i) : i / 3 == 2 ? -In("x", i - 6) : 0;
            }));
  EXPECT_EQ(Result(fill + "g = f32[3,2] slice(b), slice={[0:3], [1:3]}"), List(6, [](int64_t i) {
              return i < 2 ? In("x", i + 1) : i > 3 ? -In("x", i - 3) : 0;
            }));
}

TEST(ImportHlo, BitsAreConverted) {
  EXPECT_EQ(Result("i = u32[3] iota(), iota_dimension=0\n o = u32[] constant(1065353216)\n"
                   "b = u32[3] broadcast(o), dimensions={}\n c = u32[] constant(21)\n"
                   "s = u32[3] broadcast(c), dimensions={}\n h = u32[3] shift-left(i, s)\n"
                   "u = u32[3] or(h, b)\n f = f32[3] bitcast-convert(u)"),
            (std::vector<Number>{1, 1.25, 1.5}));
  EXPECT_EQ(Result("c = f32[] constant(1.5)\n u = s32[] bitcast-convert(c)"),
            (std::vector<Number>{0x3FC00000}));
}

TEST(ImportHlo, BitsAreCounted) {
  const auto narrow = [](int64_t i) { return static_cast<uint8_t>(In("x", i)); };
  EXPECT_EQ(Result("x = s8[11] parameter(0)\n c = s8[11] popcnt(x)"),
            List(11, [&](int64_t i) { return absl::popcount(narrow(i)); }));
  EXPECT_EQ(Result("x = s8[11] parameter(0)\n u = u8[11] convert(x)\n"
                   "c = u8[11] count-leading-zeros(u)"),
            List(11, [&](int64_t i) { return absl::countl_zero(narrow(i)); }));
  const auto wide = [](int64_t i) { return static_cast<uint64_t>(In("x", i)); };
  EXPECT_EQ(Result("x = s64[11] parameter(0)\n c = s64[11] popcnt(x)"),
            List(11, [&](int64_t i) { return absl::popcount(wide(i)); }));
  EXPECT_EQ(Result("x = s64[11] parameter(0)\n c = s64[11] count-leading-zeros(x)"),
            List(11, [&](int64_t i) { return absl::countl_zero(wide(i)); }));
  EXPECT_EQ(Result("c = u32[] constant(4294967295)\n p = u32[] popcnt(c)"),
            (std::vector<Number>{32}));
}

TEST(ImportHlo, ArithmeticShiftsCopyTheFirstBitOfAnyType) {
  const auto shifted = [](int64_t i, int places) {
    return static_cast<uint8_t>(static_cast<int8_t>(In("x", i)) >> places);
  };
  const std::string bytes = "x = s8[11] parameter(0)\n u = u8[11] convert(x)\n";
  for (const int places : {0, 1, 7}) {
    EXPECT_EQ(Result(absl::StrCat(bytes, "p = u8[] constant(", places,
                                  ")\n b = u8[11] broadcast(p), dimensions={}\n"
                                  "s = u8[11] shift-right-arithmetic(u, b)")),
              List(11, [&](int64_t i) { return shifted(i, places); }))
        << places;
  }
  // By as many places as there are, or by what would be negative: only the sign is left.
  for (const int places : {8, 200}) {
    EXPECT_EQ(Result(absl::StrCat(bytes, "p = u8[] constant(", places,
                                  ")\n b = u8[11] broadcast(p), dimensions={}\n"
                                  "s = u8[11] shift-right-arithmetic(u, b)")),
              List(11, [&](int64_t i) { return In("x", i) < 0 ? 255 : 0; }))
        << places;
  }
}

TEST(ImportHlo, Reductions) {
  EXPECT_EQ(Result("x = f32[2,3,4] parameter(0)\n z = f32[] constant(1)\n"
                   "r = f32[3] reduce(x, z), dimensions={0,2}, to_apply=add"),
            List(3, [](int64_t i) {
              double sum = 1;
              for (int64_t a = 0; a < 2; ++a) {
                for (int64_t b = 0; b < 4; ++b) sum += In("x", (a * 3 + i) * 4 + b);
              }
              return sum;
            }));
  EXPECT_EQ(Result("x = f32[5] parameter(0)\n z = f32[] constant(-inf)\n"
                   "r = f32[] reduce(x, z), dimensions={0}, to_apply=max"),
            (std::vector<Number>{5}));
  // No element of the broadcast is made.
  EXPECT_EQ(Result("x = f32[5] parameter(0)\n z = f32[] constant(0)\n"
                   "b = f32[3,5] broadcast(x), dimensions={1}\n"
                   "r = f32[5] reduce(b, z), dimensions={0}, to_apply=add"),
            List(5, [](int64_t i) { return 3 * In("x", i); }));
  EXPECT_EQ(Result("x = f32[2,4] parameter(0)\n c = f32[] constant(3)\n"
                   "b = f32[2,4] broadcast(c), dimensions={}\n"
                   "g = pred[2,4] compare(x, b), direction=GT\n f = pred[] constant(false)\n"
                   "r = pred[2] reduce(g, f), dimensions={1}, to_apply=any"),
            List(2, [](int64_t i) {
              bool some = false;
              for (int64_t k = 0; k < 4; ++k) some |= In("x", i * 4 + k) > 3;
              return some ? 1.0 : 0.0;
            }));
}

TEST(ImportHlo, ConditionalsSelect) {
  const std::string branches = R"(
double { a = f32[2] parameter(0)
  ROOT r = f32[2] add(a, a) }
same { a = f32[2] parameter(0)
  ROOT r = f32[2] copy(a) }
none { a = f32[2] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[2] broadcast(z), dimensions={} }
)";
  const auto result = [&](const std::string& instructions) {
    std::string text = Module(instructions);
    text.insert(text.find("ENTRY"), branches);
    const absl::StatusOr<ImportedHlo> imported = Import(text);
    EXPECT_TRUE(imported.ok()) << imported.status();
    const Interpreter interpreter = *Interpreter::Create(imported->program, 1);
    return interpreter
        .Evaluate(imported->results[0], 0, {0, 1},
                  [](const std::string& name, int, int64_t i) { return In(name, i); })
        ->value;
  };
  const std::string x = "x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n";
  // In("y", 0) is 0, In("x", 0) is -2.
  for (const bool holds : {true, false}) {
    EXPECT_EQ(result(x +
                     "s = f32[1] slice(x), slice={[0:1]}\n t = f32[] reshape(s)\n"
                     "z = f32[] constant(0)\n p = pred[] compare(t, z), direction=" +
                     (holds ? "LT" : "GT") +
                     "\n c = f32[2] conditional(p, x, y), true_computation=double, "
                     "false_computation=same"),
              List(2, [&](int64_t i) { return holds ? 2 * In("x", i) : In("y", i); }));
  }
  for (const int64_t shift : {0, 1, 2, 7}) {
    EXPECT_EQ(result(x +
                     "s = f32[1] slice(x), slice={[0:1]}\n t = f32[] reshape(s)\n"
                     "i = s32[] convert(t)\n k = s32[] constant(" +
                     absl::StrCat(shift - static_cast<int64_t>(In("x", 0))) +
                     ")\n j = s32[] add(i, k)\n c = f32[2] conditional(j, x, y, y), "
                     "branch_computations={double, same, none}"),
              List(2,
                   [&](int64_t i) {
                     return shift == 0 ? 2 * In("x", i) : shift == 1 ? In("y", i) : 0;
                   }))
        << shift;
  }
}

TEST(ImportHlo, PlansWhatNoProgramHas) {
  const absl::StatusOr<HloModule> module =
      ParseHlo(Module("x = f32[4,8] parameter(0)\n s = f32[4,8] sort(x), dimensions={1}, "
                      "to_apply=max\n r = f32[4,8] all-reduce(s), replica_groups={{0,1},{2,3}}, "
                      "channel_id=1, use_global_device_ids=true, to_apply=add\n"
                      "ROOT t = (f32[4,8]) tuple(r)",
                      ", num_partitions=4"));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE(ImportHlo(*module).ok());
  const absl::StatusOr<ImportedHlo> planned = ImportHlo(*module, {.for_planning = true});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(Print(planned->program),
            "coconet 1\nprogram m\ninput x : f32[4, 8] local\n"
            "%1 = opaque(sort, f32, [4, 8], 160, 0, x)\n"
            "%2 = opaque(all_reduce_of_2, f32, [4, 8], 0, 128, %1)\noutput out0 = %2\n");
  EXPECT_EQ(planned->opaque, (std::map<std::string, int64_t>{{"sort", 1}}));
  EXPECT_EQ(planned->grouped, (std::map<std::string, int64_t>{{"all-reduce of 2", 1}}));
  const absl::StatusOr<Graph> parsed = Parse(Print(planned->program));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, planned->program);
  EXPECT_THAT(std::string(Interpreter::Create(planned->program, 4).status().message()),
              HasSubstr("it can be planned, but not run"));
}

TEST(ImportHlo, ProductsOverAnyDimensions) {
  EXPECT_EQ(Result("x = f32[4,2] parameter(0)\n y = f32[3,4] parameter(1)\n"
                   "d = f32[2,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
            List(6, [](int64_t i) {
              double sum = 0;
              for (int64_t k = 0; k < 4; ++k)
                sum += In("x", k * 2 + i / 3) * In("y", i % 3 * 4 + k);
              return sum;
            }));
  // Batches that are not in front, two summed dimensions.
  EXPECT_EQ(Result("x = f32[2,3,5,4] parameter(0)\n y = f32[3,4,6,2] parameter(1)\n"
                   "d = f32[3,5,6] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={0}, "
                   "lhs_contracting_dims={0,3}, rhs_contracting_dims={3,1}"),
            List(90, [](int64_t i) {
              const int64_t b = i / 30, m = i / 6 % 5, n = i % 6;
              double sum = 0;
              for (int64_t k = 0; k < 2; ++k) {
                for (int64_t l = 0; l < 4; ++l) {
                  sum += In("x", ((k * 3 + b) * 5 + m) * 4 + l) *
                         In("y", ((b * 4 + l) * 6 + n) * 2 + k);
                }
              }
              return sum;
            }));
  EXPECT_EQ(Result("x = s32[4] parameter(0)\n y = s32[4] parameter(1)\n"
                   "d = s32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            (std::vector<Number>{In("x", 0) * In("y", 0) + In("x", 1) * In("y", 1) +
                                 In("x", 2) * In("y", 2) + In("x", 3) * In("y", 3)}));
}

TEST(ImportHlo, RowsByIndex) {
  // Indices of data are clamped.
  const auto clamped = [](const std::string& name, int64_t i, int64_t most) {
    return std::clamp<int64_t>(static_cast<int64_t>(In(name, i)), 0, most);
  };
  EXPECT_EQ(Result("x = f32[4,3] parameter(0)\n y = s32[5,1] parameter(1)\n"
                   "g = f32[5,3] gather(x, y), offset_dims={1}, collapsed_slice_dims={0}, "
                   "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"),
            List(15, [&](int64_t i) { return In("x", clamped("y", i / 3, 3) * 3 + i % 3); }));
  // An element of each row, by JAX's batching dimensions.
  EXPECT_EQ(
      Result("x = f32[4,3] parameter(0)\n y = s32[4,2,1] parameter(1)\n"
             "g = f32[4,2] gather(x, y), offset_dims={}, collapsed_slice_dims={1}, "
             "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
             "index_vector_dim=2, slice_sizes={1,1}"),
      List(8, [&](int64_t i) { return In("x", i / 2 * 3 + clamped("y", i, 2)); }));
  // Windows of 2 x 3 that begin where pairs say.
  EXPECT_EQ(Result("x = f32[4,5] parameter(0)\n y = s32[2,2] parameter(1)\n"
                   "g = f32[2,3,2] gather(x, y), offset_dims={0,1}, collapsed_slice_dims={}, "
                   "start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,3}"),
            List(12, [&](int64_t i) {
              const int64_t row = i / 6, column = i / 2 % 3, window = i % 2;
              return In("x",
                        (clamped("y", 2 + window, 2) + row) * 5 + clamped("y", window, 2) + column);
            }));
  EXPECT_EQ(
      Result("x = f32[4,3] parameter(0)\n y = s32[5,1] parameter(1)\n z = f32[5,3] parameter(2)\n"
             "s = f32[4,3] scatter(x, y, z), update_window_dims={1}, inserted_window_dims={0}, "
             "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"),
      List(12, [](int64_t i) {
        double sum = In("x", i);
        for (int64_t k = 0; k < 5; ++k) {
          if (In("y", k) == static_cast<double>(i / 3)) sum += In("z", k * 3 + i % 3);
        }
        return sum;
      }));
  EXPECT_EQ(Result("x = f32[6,2] parameter(0)\n y = s32[] parameter(1)\n z = s32[] constant(0)\n"
                   "d = f32[3,2] dynamic-slice(x, y, z), dynamic_slice_sizes={3,2}"),
            List(6, [&](int64_t i) { return In("x", clamped("y", 0, 3) * 2 + i); }));
  EXPECT_EQ(Result("x = f32[6,2] parameter(0)\n y = s32[] constant(2)\n z = s32[] constant(1)\n"
                   "w = f32[3,1] parameter(1)\n"
                   "d = f32[6,2] dynamic-update-slice(x, w, y, z)"),
            List(12, [](int64_t i) {
              const bool inside = i / 2 >= 2 && i / 2 < 5 && i % 2 == 1;
              return inside ? In("w", i / 2 - 2) : In("x", i);
            }));
  EXPECT_EQ(Result("x = f32[6,2] parameter(0)\n y = s32[] parameter(1)\n z = s32[] constant(0)\n"
                   "w = f32[3,2] parameter(2)\n d = f32[6,2] dynamic-update-slice(x, w, y, z)"),
            List(12, [&](int64_t i) {
              const int64_t row = i / 2 - clamped("y", 0, 3);
              return row >= 0 && row < 3 ? In("w", row * 2 + i % 2) : In("x", i);
            }));
}

TEST(ImportHlo, CallsFusionsAndLoopsAreInlined) {
  const std::string text = R"(HloModule m
f { p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p) }
body { c = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  v = f32[4] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  k = f32[] convert(i)
  b = f32[4] broadcast(k), dimensions={}
  s = f32[4] add(v, b)
  ROOT t = (s32[], f32[4]) tuple(j, s) }
cond { c = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[4] parameter(0)
  g = f32[4] call(x), to_apply=f
  h = f32[4] fusion(g), kind=kLoop, calls=f
  z = s32[] constant(2)
  t = (s32[], f32[4]) tuple(z, h)
  w = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }
)";
  const absl::StatusOr<ImportedHlo> imported = Import(text);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Interpreter interpreter = *Interpreter::Create(imported->program, 1);
  const std::vector<int64_t> indices = {0, 1, 2, 3};
  const Expected expected = *interpreter.Evaluate(
      "out", 0, indices, [](const std::string& name, int, int64_t i) { return In(name, i); });
  EXPECT_EQ(expected.value, List(4, [](int64_t i) { return In("x", i) + 2 + 3 + 4; }));
}

TEST(ImportHlo, StatesAreWhatTheModuleAliases) {
  const absl::StatusOr<ImportedHlo> imported = Import(
      "HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=2\n"
      "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
      "ENTRY main_spmd { w = f32[4] parameter(0), sharding={replicated}, "
      "metadata={op_name=\"params['w']\"}\n"
      "g = f32[4] parameter(1), sharding={devices=[2]<=[2]}, metadata={op_name=\"x[0]\"}\n"
      "s = f32[4] all-reduce(g), replica_groups=[1,2]<=[2], to_apply=add, channel_id=1, "
      "use_global_device_ids=true\n"
      "n = f32[4] subtract(w, s)\n l = f32[] constant(1)\n"
      "ROOT t = (f32[4], f32[]) tuple(n, l) }\n");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->partitions, 2);
  EXPECT_THAT(imported->parameters, ElementsAre("params.w", "x.0"));
  EXPECT_THAT(imported->results, ElementsAre("params.w", "out1"));
  EXPECT_EQ(Print(imported->program),
            "coconet 1\nprogram jit_step\nstate params.w : f32[4] auto\ninput x.0 : f32[4] local\n"
            "%2 = all_reduce(sum, x.0)\n%3 = sub(params.w, %2)\n%4 = update(params.w, %3)\n"
            "%5 = const(1, f32)\noutput out1 = %5\n");
}

TEST(ImportHlo, FromText) {
  const absl::StatusOr<Graph> program = FromHlo(Module("x = f32[4] parameter(0)"));
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Print(*program), "coconet 1\nprogram m\ninput x : f32[4] replicated\noutput out = x\n");
  EXPECT_FALSE(FromHlo("module {}").ok());
}

}  // namespace
}  // namespace coconet
