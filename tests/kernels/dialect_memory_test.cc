// How the host's kernel dialect reads and writes memory, on every compiler and every level of
// machine features that is here: 16-bit floats, broadcasts, chunks of slices, streaming stores.

#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/slices.h"
#include "gtest/gtest.h"
#include "jit/storage/divisor.h"
#include "tests/kernels/dialect.h"

namespace coconet {
namespace {

constexpr int kConversionLanes[] = {4, 8, 16, 32};  // every loop ends with single elements, too

template <class To, class From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
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
struct Params { const f32* in; f32* out; BroadcastMap<@r@> map; Index begin, n; };
CC_KERNEL(broadcast_@r@_@v@) {
  ForEach<@v@, 1>(grid, p.begin, p.n, true, [&](auto lanes, Index i) {
    return [&, i] {
      constexpr int V = decltype(lanes)::kCount;
      Store<kCached>(p.out + i, LoadBroadcast<V>(p.in, i, p.map));
    };
  });
}
}
)",
                             {{"@r@", absl::StrCat(rank)}, {"@v@", absl::StrCat(lanes)}});
}

/// Writes 1 + the global index of every element of a rank's slice to its place in the slice's
/// storage.
constexpr absl::string_view kChunksText = R"(
namespace chunks_n {
using namespace coconet;
struct Params { i64* out; Index outer, row, per, rank, chunk; };
CC_KERNEL(chunks) {
  ForChunks(grid, Cut{p.outer, p.row, p.per}, int(p.rank), p.chunk, [&](const Chunk& c) {
    ForEach<4, 2>(grid, c.begin, c.end, PacksFit<4>(c.shift), [&](auto lanes, Index i) {
      return [&, i] {
        for (int lane = 0; lane < decltype(lanes)::kCount; ++lane) {
          p.out[i + lane - c.shift] += i + lane + 1;
        }
      };
    });
    return true;
  });
}
}
)";

/// Quotients by numbers that the kernel prepares itself, and by those of the library.
constexpr absl::string_view kDivideText = R"(
namespace divide_n {
using namespace coconet;
struct Params { const i64* numbers; i64* out; Divisor by; Index count; };
CC_KERNEL(divide) {
  const Divisor own = MakeDivisor(p.by.by);
  for (Index i = 0; i < p.count; ++i) {
    p.out[2 * i] = Quotient(p.numbers[i], p.by);
    p.out[2 * i + 1] = Quotient(p.numbers[i], own);
  }
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
  ForEach<@v@, 1>(grid, 0, p.n, true, [&](auto lanes, Index i) {
    const auto x = Fetch<decltype(lanes)::kCount>(p.in + i);
    return [&, i, x] { Store<kStreamed>(p.out + i, ValueOf(x)); };
  });
  StreamFence();
}
}
)",
                             {{"@t@", type}, {"@v@", absl::StrCat(lanes)}});
}
constexpr absl::string_view kStreamTypes[] = {"u8", "f16", "bf16", "f32", "f64", "i64"};
constexpr int kStreamLanes[] = {2, 4, 8, 16, 32, 64};

class DialectMemoryTest : public testing::TestWithParam<DialectToolchain> {
 protected:
  static const DialectModule& Module() {
    std::string text = absl::StrCat(kChunksText, kDivideText);
    for (const ElementwiseKernel& kernel : Conversions()) text += KernelText(kernel);
    for (int rank : {1, 2, 3, 4}) {
      for (int lanes : {1, 4, 16}) text += BroadcastText(rank, lanes);
    }
    for (absl::string_view type : kStreamTypes) {
      for (int lanes : kStreamLanes) text += StreamText(type, lanes);
    }
    return CompiledOnce(GetParam(), text);
  }
};

// ---- f16 and bf16
// -----------------------------------------------------------------------------------

float Widened(DType narrow, uint16_t bits) {
  return narrow == DType::kF16 ? F32FromF16(bits) : F32FromBF16(bits);
}
uint16_t Narrowed(DType narrow, float value) {
  return narrow == DType::kF16 ? F16FromF32(value) : BF16FromF32(value);
}

TEST_P(DialectMemoryTest, WidensEveryPattern) {
  for (DType narrow : {DType::kF16, DType::kBF16}) {
    Column in(narrow, 65536);
    for (uint32_t bits = 0; bits < 65536; ++bits)
      static_cast<uint16_t*>(in.data())[bits] = static_cast<uint16_t>(bits);
    for (int lanes : kConversionLanes) {
      Column out(DType::kF32, 65536);
      Module().Run(Widen(narrow, lanes), {&in}, out);
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float have = static_cast<const float*>(out.data())[bits];
        const float want = Widened(narrow, static_cast<uint16_t>(bits));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(have)) << Name(narrow) << " lanes " << lanes << " bits " << bits;
        } else {
          ASSERT_EQ(BitCast<uint32_t>(have), BitCast<uint32_t>(want))
              << Name(narrow) << " lanes " << lanes << " bits " << bits;
        }
      }
    }
  }
}

/// Every number of the narrow type, the middle between it and the next, and the closest neighbours
/// of both; random patterns; the ends.
std::vector<float> HardToRound(DType narrow) {
  std::vector<float> values = {0.0f,     -0.0f,    INFINITY, -INFINITY, NAN,   65519.99f,
                               65520.0f, 65536.0f, FLT_MAX,  -FLT_MAX,  1e-45f};
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
  for (int i = 0; i < 200000; ++i)
    values.push_back(BitCast<float>(static_cast<uint32_t>(random())));
  return values;
}

TEST_P(DialectMemoryTest, NarrowsToNearestEven) {
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
          ASSERT_TRUE(std::isnan(Widened(narrow, have)))
              << Name(narrow) << " lanes " << lanes << " of " << values[i];
        } else {
          ASSERT_EQ(have, want) << Name(narrow) << " lanes " << lanes << " of " << values[i];
        }
      }
    }
  }
}

// ---- Loops and broadcasts
// ---------------------------------------------------------------------------

struct Map {
  std::vector<int64_t> dims, strides;  // innermost last
};

TEST_P(DialectMemoryTest, BroadcastsByTheMap) {
  const Map maps[] = {
      {{37}, {0}},
      {{37}, {1}},
      {{64}, {0}},
      {{5, 7}, {0, 1}},
      {{5, 16}, {0, 1}},
      {{5, 16}, {1, 0}},
      {{6, 9}, {1, 0}},
      {{3, 4, 5}, {5, 0, 1}},
      {{3, 4, 16}, {4, 1, 0}},
      {{2, 3, 8}, {0, 8, 1}},
      {{4, 1, 32}, {0, 3, 2}},
      {{3, 2, 33}, {33, 0, 1}},
      {{9, 23}, {1, 0}},
      {{9, 23}, {23, 1}},
      {{2, 3, 2, 5}, {30, 0, 5, 1}},
  };
  std::vector<Number> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) + 0.5;
  const Column in(DType::kF32, numbers);
  for (const Map& map : maps) {
    int64_t n = 1;
    for (int64_t dim : map.dims) n *= dim;
    for (int lanes : {1, 4, 16}) {
      for (int64_t begin : {0, 1, 15, 16, 33}) {
        Column out(DType::kF32, n);
        std::vector<Word> words = {reinterpret_cast<Word>(in.data()),
                                   reinterpret_cast<Word>(out.data())};
        for (int64_t dim : map.dims) {
          for (const Arg& word : DivisorWords(dim)) words.push_back(static_cast<Word>(word.value));
        }
        for (int64_t stride : map.strides) words.push_back(static_cast<Word>(stride));
        words.insert(words.end(), {static_cast<Word>(begin), static_cast<Word>(n)});
        Module().Kernel(absl::StrCat("broadcast_", map.dims.size(), "_", lanes))(words.data(), 0,
                                                                                 1);
        for (int64_t i = 0; i < n; ++i) {
          int64_t rest = i, offset = 0;
          for (size_t k = map.dims.size(); k-- > 0; rest /= map.dims[k])
            offset += rest % map.dims[k] * map.strides[k];
          ASSERT_EQ(out[i], i < begin ? 0 : in[offset])
              << "element " << i << " from " << begin << " to " << n << " in packs of " << lanes;
        }
      }
    }
  }
}

TEST_P(DialectMemoryTest, DividesByMultiplying) {
  std::mt19937_64 random(3);
  std::vector<int64_t> divisors = {(int64_t{1} << 40) - 1, int64_t{1} << 40};
  for (int64_t by = 1; by < 100; ++by) divisors.push_back(by);
  for (int bit = 7; bit < 40; ++bit)
    divisors.insert(divisors.end(), {int64_t{1} << bit, (int64_t{1} << bit) + 1,
                                     static_cast<int64_t>(random() >> (63 - bit)) + 1});
  for (const int64_t by : divisors) {
    std::vector<int64_t> numbers = {0, 1, by - 1, by, (int64_t{1} << 62) - 1};
    for (int bit = 1; bit < 62; ++bit) {
      const int64_t multiple = static_cast<int64_t>(random() >> (64 - bit)) / by * by;
      numbers.insert(numbers.end(), {multiple, multiple + by - 1});
    }
    std::vector<int64_t> out(2 * numbers.size());
    std::vector<Word> words = {reinterpret_cast<Word>(numbers.data()),
                               reinterpret_cast<Word>(out.data())};
    for (const Arg& word : DivisorWords(by)) words.push_back(static_cast<Word>(word.value));
    words.push_back(numbers.size());
    Module().Kernel("divide")(words.data(), 0, 1);
    for (size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_EQ(out[2 * i], numbers[i] / by) << numbers[i] << " / " << by;
      ASSERT_EQ(out[2 * i + 1], numbers[i] / by) << numbers[i] << " / " << by;
    }
  }
}

TEST_P(DialectMemoryTest, ChunksCoverEverySliceOnce) {
  struct Case {
    int64_t outer, extent, inner;
  };
  for (const Case& c : {Case{1, 0, 1}, Case{1, 1, 1}, Case{1, 1000, 1}, Case{1, 130, 16},
                        Case{3, 10, 1}, Case{4, 9, 64}, Case{5, 70, 3}}) {
    for (int ranks : {1, 2, 3, 8}) {
      const Slicing slicing = SliceExtent(c.extent, ranks);
      const int64_t row = c.extent * c.inner, per = slicing.per * c.inner;
      std::vector<int> seen(c.outer * row);
      for (int rank = 0; rank < ranks; ++rank) {
        for (int64_t chunk : {4, 64, 4096}) {
          for (int blocks : {1, 2, 5}) {
            std::vector<int64_t> out(std::max<int64_t>(1, c.outer * per));
            for (int block = 0; block < blocks; ++block) {
              const int64_t args[] = {c.outer, row, per, rank, chunk};
              std::vector<Word> words = {reinterpret_cast<Word>(out.data())};
              for (int64_t arg : args) words.push_back(static_cast<Word>(arg));
              Module().Kernel("chunks")(words.data(), block, blocks);
            }
            const int64_t low = slicing.Of(rank).begin * c.inner,
                          high = slicing.Of(rank).end * c.inner;
            for (int64_t o = 0; o < c.outer; ++o) {
              for (int64_t k = 0; k < per; ++k) {
                const int64_t want = low + k < high ? o * row + low + k + 1 : 0;
                ASSERT_EQ(out[o * per + k], want) << "rank " << rank << " of " << ranks << " chunk "
                                                  << chunk << " blocks " << blocks;
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

TEST_P(DialectMemoryTest, StreamingStoresArrive) {
  for (absl::string_view type : kStreamTypes) {
    const size_t size = SizeOf(*ParseDType(type));
    for (int lanes : kStreamLanes) {
      constexpr int64_t kElements = 64 * 5 + 3;
      alignas(64) static char in[kElements * 8], out[(kElements + 64) * 8];
      for (size_t i = 0; i < sizeof in; ++i)
        in[i] = static_cast<char>(i % 100);     // no NaN in any type
      for (const size_t off : {0, 1, 4, 33}) {  // slices may lie anywhere
        char* const to = out + off * size;
        std::memset(out, 0x55, sizeof out);
        const Word words[] = {reinterpret_cast<Word>(in), reinterpret_cast<Word>(to), kElements};
        Module().Kernel(absl::StrCat("stream_", type, "_", lanes))(words, 0, 1);
        EXPECT_EQ(std::memcmp(in, to, kElements * size), 0)
            << type << " in packs of " << lanes << " at " << off;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DialectMemoryTest, testing::ValuesIn(Toolchains()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace coconet
