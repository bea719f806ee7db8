// The host's kernel dialect, function by function, on every compiler and every level of machine features that is here:
// conversions, arithmetic, comparisons, casts, broadcasts and loops. What differs from the reference semantics of the
// language is a bug of the prelude or of a row of the elementwise table.

#include "tests/dialect.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/slices.h"
#include "coconet/base/status.h"
#include "coconet/op.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int kConversionLanes[] = {4, 8, 16, 32};  // every loop ends with single elements, too
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class To, class From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// ---- The kernels of one module ----------------------------------------------------------------------

constexpr int kCastLanes = 16;

ElementwiseKernel CastKernel(DType from, DType to, int lanes) {
  const absl::string_view type = to == DType::kBool ? "b8" : Name(to);
  return {absl::StrCat("cast_", Name(from), "_", Name(to), "_", lanes), {from}, to, lanes,
          absl::StrCat("CastTo<", type, ">(x)")};
}

ElementwiseKernel PointwiseKernel(Pw fn, DType dtype, int lanes) {
  const PwInfo& info = Info(fn);
  ElementwiseKernel kernel{absl::StrCat(info.name, "_", Name(dtype), "_", lanes), {}, dtype, lanes, ""};
  kernel.operands.assign(info.arity, dtype);
  if (fn == Pw::kSelect) kernel.operands[0] = DType::kBool;
  if (info.result == PwResult::kBool) kernel.result = DType::kBool;
  kernel.expression = absl::StrReplaceAll(info.kernel_expr, {{"$0", "x"}, {"$1", "y"}, {"$2", "z"}});
  return kernel;
}

std::vector<int> LanesOf(DType dtype) {
  if (dtype == DType::kF32) return {4, 16};
  return {8};
}

std::vector<ElementwiseKernel> PointwiseKernels() {
  std::vector<ElementwiseKernel> kernels;
  for (int row = 0; row < static_cast<int>(AllPointwise().size()); ++row) {
    const Pw fn = static_cast<Pw>(row);
    for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI64, DType::kU8}) {
      if (Info(fn).float_only && !IsFloat(dtype)) continue;
      for (int lanes : LanesOf(dtype)) kernels.push_back(PointwiseKernel(fn, dtype, lanes));
    }
  }
  return kernels;
}

std::vector<ElementwiseKernel> CastKernels() {
  std::vector<ElementwiseKernel> kernels;
  for (DType from : kAllDTypes) {
    for (DType to : kAllDTypes) {
      kernels.push_back(CastKernel(from, to, kCastLanes));
    }
  }
  return kernels;
}

/// Raw 16-bit floats in and out: Load and Store of f16 and bf16.
ElementwiseKernel Widen(DType narrow, int lanes) {
  return {absl::StrCat("widen_", Name(narrow), "_", lanes), {narrow}, DType::kF32, lanes, "x"};
}
ElementwiseKernel Narrow(DType narrow, int lanes) {
  return {absl::StrCat("narrow_", Name(narrow), "_", lanes), {DType::kF32}, narrow, lanes, "x"};
}

std::vector<ElementwiseKernel> Conversions() {
  std::vector<ElementwiseKernel> kernels;
  for (DType narrow : {DType::kF16, DType::kBF16}) {
    for (int lanes : kConversionLanes) {
      kernels.push_back(Widen(narrow, lanes));
      kernels.push_back(Narrow(narrow, lanes));
    }
  }
  return kernels;
}

std::string BroadcastText(int rank, int lanes) {
  return absl::StrReplaceAll(R"(
namespace broadcast_@r@_@v@_n {
using namespace coconet;
struct Params { const f32* in; f32* out; BroadcastMap<@r@> map; Index n; };
CC_KERNEL(broadcast_@r@_@v@) {
  ForEach<@v@>(grid, 0, p.n, true, [&](auto lanes, Index i) {
    constexpr int V = decltype(lanes)::kCount;
    Store<kCached>(p.out + i, LoadBroadcast<V>(p.in, i, p.map));
  });
}
}
)",
                             {{"@r@", absl::StrCat(rank)}, {"@v@", absl::StrCat(lanes)}});
}

/// Writes 1 + the global index of every element of a rank's slice to its place in the slice's storage.
constexpr absl::string_view kChunksText = R"(
namespace chunks_n {
using namespace coconet;
struct Params { i64* out; Index outer, row, per, rank, chunk, packed; };
CC_KERNEL(chunks) {
  ForChunks(grid, Cut{p.outer, p.row, p.per}, int(p.rank), p.chunk, [&](const Chunk& c) {
    ForEach<4>(grid, c.begin, c.end, p.packed != 0, [&](auto lanes, Index i) {
      for (int lane = 0; lane < decltype(lanes)::kCount; ++lane) p.out[i + lane - c.shift] += i + lane + 1;
    });
    return true;
  });
}
}
)";

/// Streaming stores of every width, at the alignment that slices have.
std::string StreamText(absl::string_view type, int lanes) {
  return absl::StrReplaceAll(R"(
namespace stream_@t@_@v@_n {
using namespace coconet;
struct Params { const @t@* in; @t@* out; Index n; };
CC_KERNEL(stream_@t@_@v@) {
  ForEach<@v@>(grid, 0, p.n, true, [&](auto lanes, Index i) {
    Store<kStreamed>(p.out + i, Load<decltype(lanes)::kCount>(p.in + i));
  });
  StreamFence();
}
}
)",
                             {{"@t@", type}, {"@v@", absl::StrCat(lanes)}});
}
constexpr absl::string_view kStreamTypes[] = {"u8", "f16", "bf16", "f32", "f64", "i64"};

std::string AllText() {
  std::string text(kChunksText);
  for (const auto& kernels : {PointwiseKernels(), CastKernels(), Conversions()}) {
    for (const ElementwiseKernel& kernel : kernels) absl::StrAppend(&text, KernelText(kernel));
  }
  for (int rank : {1, 2, 3}) {
    for (int lanes : {1, 4, 16}) absl::StrAppend(&text, BroadcastText(rank, lanes));
  }
  for (absl::string_view type : kStreamTypes) {
    for (int lanes : {1, 2, 4, 8, 16, 32, 64}) absl::StrAppend(&text, StreamText(type, lanes));
  }
  return text;
}

class DialectTest : public testing::TestWithParam<Toolchain> {
 protected:
  /// Compiled once a toolchain.
  static const DialectModule& Module() {
    static auto* modules = new std::map<std::string, std::unique_ptr<DialectModule>>();
    std::unique_ptr<DialectModule>& module = (*modules)[absl::StrCat(GetParam().cxx, " ", GetParam().march)];
    if (module == nullptr) {
      absl::StatusOr<std::unique_ptr<DialectModule>> compiled = DialectModule::Compile(GetParam(), AllText());
      if (!compiled.ok()) ADD_FAILURE() << compiled.status();
      CC_CHECK(compiled.ok());
      module = *std::move(compiled);
    }
    return *module;
  }
};

// ---- f16 and bf16 -----------------------------------------------------------------------------------

float Widened(DType narrow, uint16_t bits) { return narrow == DType::kF16 ? F32FromF16(bits) : F32FromBF16(bits); }
uint16_t Narrowed(DType narrow, float value) { return narrow == DType::kF16 ? F16FromF32(value) : BF16FromF32(value); }

TEST_P(DialectTest, WidensEveryPattern) {
  for (DType narrow : {DType::kF16, DType::kBF16}) {
    Column in(narrow, 65536);
    for (uint32_t bits = 0; bits < 65536; ++bits) static_cast<uint16_t*>(in.data())[bits] = static_cast<uint16_t>(bits);
    for (int lanes : kConversionLanes) {
      Column out(DType::kF32, 65536);
      Module().Run(Widen(narrow, lanes), {&in}, out);
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float have = static_cast<const float*>(out.data())[bits];
        const float want = Widened(narrow, static_cast<uint16_t>(bits));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(have)) << Name(narrow) << " lanes " << lanes << " bits " << bits;
        } else {
          ASSERT_EQ(BitCast<uint32_t>(have), BitCast<uint32_t>(want)) << Name(narrow) << " lanes " << lanes << " bits " << bits;
        }
      }
    }
  }
}

/// Every number of the narrow type, the middle between it and the next, and the closest neighbours of both; random
/// patterns; the ends.
std::vector<float> HardToRound(DType narrow) {
  std::vector<float> values = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 65519.99f, 65520.0f, 65536.0f, FLT_MAX, -FLT_MAX, 1e-45f};
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float here = Widened(narrow, static_cast<uint16_t>(bits));
    const float next = Widened(narrow, static_cast<uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(here) + next) / 2);
    for (float v : {here, middle}) {
      for (float toward : {-INFINITY, INFINITY}) values.push_back(std::nextafter(v, toward));
      values.push_back(v);
    }
  }
  std::mt19937 random(20260);
  for (int i = 0; i < 200000; ++i) values.push_back(BitCast<float>(static_cast<uint32_t>(random())));
  return values;
}

TEST_P(DialectTest, NarrowsToNearestEven) {
  for (DType narrow : {DType::kF16, DType::kBF16}) {
    const std::vector<float> values = HardToRound(narrow);
    const int64_t n = static_cast<int64_t>(values.size());
    Column in(DType::kF32, n);
    std::memcpy(in.data(), values.data(), values.size() * sizeof(float));
    for (int lanes : kConversionLanes) {
      Column out(narrow, n);
      Module().Run(Narrow(narrow, lanes), {&in}, out);
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t have = static_cast<const uint16_t*>(out.data())[i];
        const uint16_t want = Narrowed(narrow, values[i]);
        if (std::isnan(values[i])) {
          ASSERT_TRUE(std::isnan(Widened(narrow, have))) << Name(narrow) << " lanes " << lanes << " of " << values[i];
        } else {
          ASSERT_EQ(have, want) << Name(narrow) << " lanes " << lanes << " of " << values[i];
        }
      }
    }
  }
}

// ---- Elementwise functions --------------------------------------------------------------------------

std::vector<double> Interesting(DType dtype) {
  if (!IsFloat(dtype)) {
    std::vector<double> values = {0, 1, 2, 3, 7, 50, 100, 127};
    if (dtype == DType::kU8) values.insert(values.end(), {128, 200, 255});
    if (dtype != DType::kU8) values.insert(values.end(), {-1, -2, -3, -7, -50, 46340, 65537, 2147483647.0, -2147483648.0});
    return values;
  }
  std::vector<double> values = {0,   -0.0, 1,     -1,   0.5,   -0.5,     1.5,       2,    3,     -3,  7.25, 10, -10,
                                100, -100, 1e-3,  1e-8, 65504, kInfinity, -kInfinity, kNaN, 1e-30, 1e30, -20,  88, -88};
  values.push_back(MinSubnormal(dtype));
  values.push_back(MaxFinite(dtype));
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) values.push_back((static_cast<int>(random() % 20001) - 10000) / 1024.0);
  return values;
}

struct Operands {
  std::vector<Column> columns;
  std::vector<const Column*> pointers() const {
    std::vector<const Column*> out;
    for (const Column& column : columns) out.push_back(&column);
    return out;
  }
};

/// All combinations of interesting values, repeated so that every one is seen by the packs and by the tail.
Operands AllCombinations(const ElementwiseKernel& kernel) {
  std::vector<std::vector<double>> columns(kernel.operands.size());
  std::vector<std::vector<double>> choices;
  for (DType dtype : kernel.operands) choices.push_back(dtype == DType::kBool ? std::vector<double>{0, 1} : Interesting(dtype));
  size_t combinations = 1;
  for (const auto& c : choices) combinations *= c.size();
  for (size_t n = 0; n < combinations; ++n) {
    size_t rest = n;
    for (size_t k = 0; k < choices.size(); ++k) {
      columns[k].push_back(choices[k][rest % choices[k].size()]);
      rest /= choices[k].size();
    }
  }
  while (columns[0].size() % 64 != 63) {
    for (auto& column : columns) column.push_back(column[column.size() % combinations]);
  }
  Operands operands;
  for (size_t k = 0; k < choices.size(); ++k) operands.columns.emplace_back(kernel.operands[k], columns[k]);
  return operands;
}

/// "" when `have` is a correct result of fn(args).
std::string Wrong(Pw fn, DType dtype, const double* args, double have) {
  const PwInfo& info = Info(fn);
  const double want = EvalPointwise(fn, dtype, args);
  double error = 0;
  if (info.result == PwResult::kSame && IsFloat(dtype)) {
    const bool narrow = UnitRoundoff(dtype) > UnitRoundoff(DType::kF32);
    const double computed = UnitRoundoff(narrow ? DType::kF32 : dtype);
    const double magnitude = info.magnitude == nullptr ? std::fabs(want) : info.magnitude(args);
    error = magnitude * (info.ulps * computed + (narrow ? UnitRoundoff(dtype) : 0)) + info.ulps * MinSubnormal(dtype);
    if (std::isnan(want)) return std::isnan(have) ? "" : "want NaN";
    // Beyond the largest number everything is infinite, at its edge perhaps.
    if (std::fabs(want) > MaxFinite(dtype) && std::isinf(have) && (want > 0) == (have > 0)) return "";
    if (!std::isfinite(error)) return std::isinf(have) ? "" : "want infinity";
  }
  return std::fabs(have - want) <= error || have == want ? "" : absl::StrCat("want ", want, " +- ", error);
}

TEST_P(DialectTest, ElementwiseFunctionsKeepTheirTablesBounds) {
  for (const ElementwiseKernel& kernel : PointwiseKernels()) {
    const Pw fn = *FindPointwise(kernel.name.substr(0, kernel.name.find('_')));
    const DType dtype = kernel.operands.back();
    const Operands operands = AllCombinations(kernel);
    Column out(kernel.result, operands.columns[0].size());
    Module().Run(kernel, operands.pointers(), out);
    for (int64_t i = 0; i < out.size(); ++i) {
      double args[3] = {};
      for (size_t k = 0; k < operands.columns.size(); ++k) args[k] = operands.columns[k][i];
      const double exact = Info(fn).eval(args);
      if (!IsFloat(dtype) && std::isfinite(exact) && std::fabs(exact) > 0x1p53) continue;  // beyond what a double holds
      const std::string wrong = Wrong(fn, dtype, args, out[i]);
      ASSERT_EQ(wrong, "") << kernel.name << "(" << args[0] << ", " << args[1] << ", " << args[2] << ") = " << out[i];
    }
  }
}

/// What an integer type cannot hold has no defined value.
bool Holds(DType dtype, double value) {
  if (IsFloat(dtype) || dtype == DType::kBool) return true;
  const double least = dtype == DType::kU8 ? 0 : -MaxFinite(dtype);
  return std::trunc(value) >= least && std::trunc(value) <= MaxFinite(dtype) && std::fabs(value) <= 0x1p53;
}

TEST_P(DialectTest, CastsLikeTheReference) {
  for (DType from : kAllDTypes) {
    std::vector<double> values = from == DType::kBool ? std::vector<double>{0, 1} : Interesting(from);
    while (values.size() % 16 != 15) values.push_back(values[values.size() / 2]);
    const Column in(from, values);
    for (DType to : kAllDTypes) {
      Column out(to, in.size());
      Module().Run(CastKernel(from, to, kCastLanes), {&in}, out);
      for (int64_t i = 0; i < in.size(); ++i) {
        if (!Holds(to, in[i])) continue;
        const Column want(to, std::vector<double>{in[i]});
        const Column through_f32(to, std::vector<double>{static_cast<float>(in[i])});  // f16 and bf16 may round twice
        const bool same = out[i] == want[0] || out[i] == through_f32[0] || (std::isnan(out[i]) && std::isnan(want[0]));
        ASSERT_TRUE(same) << Name(to) << " of " << Name(from) << " " << in[i] << ": want " << want[0] << ", have " << out[i];
      }
    }
  }
}

// ---- Loops and broadcasts ---------------------------------------------------------------------------

struct Map {
  std::vector<int64_t> dims, strides;  // innermost last
};

TEST_P(DialectTest, BroadcastsByTheMap) {
  const Map maps[] = {
      {{37}, {0}}, {{37}, {1}}, {{64}, {0}}, {{5, 7}, {0, 1}}, {{5, 16}, {0, 1}},  {{5, 16}, {1, 0}},
      {{6, 9}, {1, 0}}, {{3, 4, 5}, {5, 0, 1}}, {{3, 4, 16}, {4, 1, 0}}, {{2, 3, 8}, {0, 8, 1}}, {{4, 1, 32}, {0, 3, 2}},
  };
  std::vector<double> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) + 0.5;
  const Column in(DType::kF32, numbers);
  for (const Map& map : maps) {
    int64_t n = 1;
    for (int64_t dim : map.dims) n *= dim;
    for (int lanes : {1, 4, 16}) {
      Column out(DType::kF32, n);
      std::vector<Word> words = {reinterpret_cast<Word>(in.data()), reinterpret_cast<Word>(out.data())};
      for (int64_t dim : map.dims) words.push_back(static_cast<Word>(dim));
      for (int64_t stride : map.strides) words.push_back(static_cast<Word>(stride));
      words.push_back(static_cast<Word>(n));
      Module().Kernel(absl::StrCat("broadcast_", map.dims.size(), "_", lanes))(words.data(), 0, 1);
      for (int64_t i = 0; i < n; ++i) {
        int64_t rest = i, offset = 0;
        for (size_t k = map.dims.size(); k-- > 0; rest /= map.dims[k]) offset += rest % map.dims[k] * map.strides[k];
        ASSERT_EQ(out[i], in[offset]) << "element " << i << " of " << n << " in packs of " << lanes;
      }
    }
  }
}

TEST_P(DialectTest, ChunksCoverEverySliceOnce) {
  struct Case { int64_t outer, extent, inner; };
  for (const Case& c : {Case{1, 0, 1}, Case{1, 1, 1}, Case{1, 1000, 1}, Case{1, 130, 16}, Case{3, 10, 1}, Case{4, 9, 64}, Case{5, 70, 3}}) {
    for (int ranks : {1, 2, 3, 8}) {
      const Slicing slicing = SliceExtent(c.extent, ranks, c.inner);
      const int64_t row = c.extent * c.inner, per = slicing.per * c.inner;
      std::vector<int> seen(c.outer * row);
      for (int rank = 0; rank < ranks; ++rank) {
        for (int64_t chunk : {4, 64, 4096}) {
          for (int blocks : {1, 2, 5}) {
            std::vector<int64_t> out(std::max<int64_t>(1, c.outer * per));
            for (int block = 0; block < blocks; ++block) {
              const int64_t args[] = {c.outer, row, per, rank, chunk, c.outer == 1 || row % 4 == 0};
              std::vector<Word> words = {reinterpret_cast<Word>(out.data())};
              for (int64_t arg : args) words.push_back(static_cast<Word>(arg));
              Module().Kernel("chunks")(words.data(), block, blocks);
            }
            const int64_t low = slicing.Of(rank).begin * c.inner, high = slicing.Of(rank).end * c.inner;
            for (int64_t o = 0; o < c.outer; ++o) {
              for (int64_t k = 0; k < per; ++k) {
                const int64_t want = low + k < high ? o * row + low + k + 1 : 0;
                ASSERT_EQ(out[o * per + k], want) << "rank " << rank << " of " << ranks << " chunk " << chunk << " blocks " << blocks;
                if (want > 0 && chunk == 4 && blocks == 1) ++seen[want - 1];
              }
            }
          }
        }
      }
      for (int times : seen) ASSERT_EQ(times, 1);
    }
  }
}

TEST_P(DialectTest, StreamingStoresArrive) {
  for (absl::string_view type : kStreamTypes) {
    const size_t size = SizeOf(*ParseDType(type));
    for (int lanes : {1, 2, 4, 8, 16, 32, 64}) {
      constexpr int64_t kElements = 64 * 5 + 3;
      alignas(64) static char in[kElements * 8], out[kElements * 8];
      for (size_t i = 0; i < sizeof in; ++i) in[i] = static_cast<char>(i % 100);  // no NaN in any type
      std::memset(out, 0x55, sizeof out);
      const Word words[] = {reinterpret_cast<Word>(in), reinterpret_cast<Word>(out), kElements};
      Module().Kernel(absl::StrCat("stream_", type, "_", lanes))(words, 0, 1);
      EXPECT_EQ(std::memcmp(in, out, kElements * size), 0) << type << " in packs of " << lanes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Toolchains, DialectTest, testing::ValuesIn(Toolchains()), [](const auto& info) {
  std::string name = absl::StrCat(info.param.cxx.substr(info.param.cxx.rfind('/') + 1), "_", info.param.march);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace coconet
