// The CUDA text of a product's tile, thread for thread: 256 threads of the host, with the
// instructions of warps (mma.h) as the PTX ISA describes them, and copies that arrive as late as
// they may. And which tiles a block makes, and a chunk awaits.

#include <algorithm>
#include <barrier>
#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#define Grid GridOfOneThread
#include "jit/device/host/prelude.h"
#undef Grid

namespace coconet {

constexpr int kBlockThreads = 256, kWarp = 32;

/// What the threads of a block share.
struct Block {
  std::barrier<> all{kBlockThreads};
  struct Warp {
    std::barrier<> all{kWarp};
    const void*
        rows[2][kWarp];  // by turns, so that whoever is ahead by one instruction overwrites nothing
    unsigned a[2][kWarp][4], b[2][kWarp][2];
  };
  Warp warps[kBlockThreads / kWarp];
};
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
struct Thread {
  int id = 0, turn = 0;
  Block* block = nullptr;
  std::vector<Copy> begun;               // of no group yet
  std::deque<std::vector<Copy>> groups;  // under way
  int lane() const { return id % kWarp; }
  Block::Warp& warp() const { return block->warps[id / kWarp]; }
};
thread_local Thread self;

struct Grid {
  int block = 0, blocks = 1;
  int BlockId() const { return block; }
  int GridSize() const { return blocks; }
  static int ThreadId() { return self.id; }
  static int BlockSize() { return self.block == nullptr ? 1 : kBlockThreads; }
  static void Sync() { self.block->all.arrive_and_wait(); }
  static bool SyncAnd(bool ok) { return ok; }
};

}  // namespace coconet

#include "jit/device/elementwise.h"
#include "jit/device/loops.h"
#include "jit/device/sync.h"
#include "jit/device/tiles.h"

namespace coconet {

void CopyAsync16If(bool there, void* to, const void* from) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(to) % 16, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(from) % 16, 0u);
  self.begun.push_back({to, from, there ? 16 : 0});
}
void KeepComputed(int&) {}
void SyncWarp() { self.warp().all.arrive_and_wait(); }
void CommitCopies() {
  self.groups.push_back(std::move(self.begun));
  self.begun.clear();
}
template <int kPending>
void WaitCopies() {
  for (; self.groups.size() > kPending; self.groups.pop_front()) {
    for (const Copy& copy : self.groups.front()) {
      std::memset(copy.to, 0, 16);
      std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
    }
  }
}

unsigned Pair(unsigned short low, unsigned short high) {
  return low | static_cast<unsigned>(high) << 16;
}

template <bool kTransposed>
void LoadMatricesOfWarp(unsigned (&r)[4], const void* row) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(row) % 16, 0u);
  Block::Warp& warp = self.warp();
  const int turn = self.turn++ % 2, lane = self.lane();
  warp.rows[turn][lane] = row;
  warp.all.arrive_and_wait();
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto at = [&](int i, int j) {
      return static_cast<const unsigned short*>(warp.rows[turn][8 * matrix + i])[j];
    };
    const int near = lane / 4, far = 2 * (lane % 4);
    r[matrix] = kTransposed ? Pair(at(far, near), at(far + 1, near))
                            : Pair(at(near, far), at(near, far + 1));
  }
}
void LoadMatrices(unsigned (&r)[4], const void* row) { LoadMatricesOfWarp<false>(r, row); }
void LoadMatricesTransposed(unsigned (&r)[4], const void* row) { LoadMatricesOfWarp<true>(r, row); }

template <class T>
void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, T) {
  Block::Warp& warp = self.warp();
  const int turn = self.turn++ % 2, lane = self.lane();
  std::memcpy(warp.a[turn][lane], a, sizeof a);
  warp.b[turn][lane][0] = b0;
  warp.b[turn][lane][1] = b1;
  warp.all.arrive_and_wait();
  const auto half = [](unsigned word, int k) {
    return Get(FromRaw<T, 1>(Pack<unsigned short, 1>{
                   static_cast<unsigned short>(k % 2 == 0 ? word : word >> 16)}),
               0);
  };
  const auto of_a = [&](int i, int k) {
    return half(warp.a[turn][i % 8 * 4 + k % 8 / 2][i / 8 + k / 8 * 2], k);
  };
  const auto of_b = [&](int k, int j) { return half(warp.b[turn][j * 4 + k % 8 / 2][k / 8], k); };
  for (int x = 0; x < 4; ++x) {
    const int i = lane / 4 + x / 2 * 8, j = lane % 4 * 2 + x % 2;
    for (int k = 0; k < 16; ++k) d[x] += of_a(i, k) * of_b(k, j);
  }
}

}  // namespace coconet

#define COCONET_JIT_DEVICE_CUDA_MMA_H_
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
void Store16(void* to, uint4 value) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(to) % 16, 0u);
  std::memcpy(to, &value, 16);
}
#define CC_MEMBER
#define CC_SHARED(T, name, count) alignas(128) static T name[count]
#include "jit/device/gpu/tile_product.h"

namespace coconet {
namespace {

/// Whole numbers as T: products and sums of some hundreds are exact in f32.
template <class T>
std::vector<T> Draw(size_t count, std::mt19937_64& random) {
  std::vector<T> values(count);
  for (T& value : values)
    Store<kCached>(&value, Splat<1>(static_cast<float>(static_cast<int>(random() % 7) - 3)));
  return values;
}
template <class T>
float ValueOf(const T& value) {
  return Get(Load<1>(&value), 0);
}

struct Sizes {
  int m, n, k;
  int more = 0;    // elements of a row beyond the matrix
  int before = 0;  // of each buffer, so that it is not aligned
};

/// All tiles of a product, by one block. What is wrong; "" when nothing is.
template <int kSide, bool kTransposeA, bool kTransposeB, class T>
std::string Multiplied(const Sizes& s, std::mt19937_64& random) {
  const int lda = (kTransposeA ? s.m : s.k) + s.more, ldb = (kTransposeB ? s.k : s.n) + s.more,
            ldc = s.n + s.more;
  const auto room = [&](int rows, int ld) {
    return static_cast<size_t>(s.before + rows * ld + 16);
  };
  alignas(16) const std::vector<T> a = Draw<T>(room(kTransposeA ? s.k : s.m, lda), random),
                                   b = Draw<T>(room(kTransposeB ? s.n : s.k, ldb), random);
  std::vector<T> c = Draw<T>(room(s.m, ldc), random), expected = c;
  const T *from_a = a.data() + s.before, *from_b = b.data() + s.before;
  for (int i = 0; i < s.m; ++i) {
    for (int j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int k = 0; k < s.k; ++k)
        sum += ValueOf(from_a[kTransposeA ? k * lda + i : i * lda + k]) *
               ValueOf(from_b[kTransposeB ? j * ldb + k : k * ldb + j]);
      Store<kCached>(&expected[static_cast<size_t>(s.before + i * ldc + j)], Splat<1>(sum));
    }
  }
  const Product<T> product{from_a, from_b, c.data() + s.before, lda, ldb, ldc, s.m, s.n, s.k};
  Block block;
  std::vector<std::thread> threads;
  for (int id = 0; id < kBlockThreads; ++id) {
    threads.emplace_back([&, id] {
      self.id = id;
      self.block = &block;
      const auto multiply = [&](unsigned row, unsigned column) {
        MultiplyTile<kSide, kTransposeA, kTransposeB>(
            Grid(), product, Index{row} * kSide, Index{column} * kSide, 0, StoreProduct(product));
        Grid::Sync();
      };
      ForTiles(Grid(), TilesAcross(s.m, kSide), TilesAcross(s.n, kSide), {1, 0}, multiply);
      EXPECT_TRUE(self.begun.empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < c.size(); ++i) {
    if (std::memcmp(&c[i], &expected[i], sizeof(T)) == 0) continue;
    return testing::PrintToString(i) + ": want " + testing::PrintToString(ValueOf(expected[i])) +
           ", have " + testing::PrintToString(ValueOf(c[i]));
  }
  return "";
}

template <class T>
void MultiplyEveryWay() {
  std::mt19937_64 random(20261);
  const Sizes aligned{72, 80, 104}, odd{67, 70, 37, 3, 1}, guarded{65, 66, 33, 7, 0};
  EXPECT_EQ((Multiplied<64, false, false, T>(aligned, random)), "");
  EXPECT_EQ((Multiplied<64, false, true, T>(aligned, random)), "");
  EXPECT_EQ((Multiplied<64, true, false, T>(aligned, random)), "");
  EXPECT_EQ((Multiplied<64, true, true, T>(aligned, random)), "");
  EXPECT_EQ((Multiplied<64, false, false, T>(odd, random)), "");
  EXPECT_EQ((Multiplied<64, true, true, T>(odd, random)), "");
  EXPECT_EQ((Multiplied<64, false, true, T>(guarded, random)), "");
  EXPECT_EQ((Multiplied<128, false, false, T>({130, 24, 40}, random)), "");
  EXPECT_EQ((Multiplied<128, true, true, T>({24, 136, 32}, random)), "");
  EXPECT_EQ((Multiplied<64, false, false, T>({5, 6, 0}, random)), "");
}

TEST(CudaTiles, OfF32AreExact) { MultiplyEveryWay<f32>(); }
TEST(CudaTiles, OfF16AreWhatTheMatrixUnitsMake) { MultiplyEveryWay<f16>(); }
TEST(CudaTiles, OfBF16AreWhatTheMatrixUnitsMake) { MultiplyEveryWay<bf16>(); }

using TileNumbers = std::pair<Index, Index>;

/// The tiles of a block, of an m x n matrix in tiles of 64 x 64.
std::vector<TileNumbers> TilesOf(const Grid& grid, Index m, Index n, const TileOrder& order) {
  std::vector<TileNumbers> tiles;
  ForTiles(grid, TilesAcross(m, 64), TilesAcross(n, 64), order,
           [&](unsigned row, unsigned column) { tiles.push_back({row, column}); });
  return tiles;
}

TEST(ForTiles, GivesEachTileToOneBlock) {
  for (const auto& [m, n] :
       {TileNumbers{1, 1}, {64, 64}, {1000, 70}, {70, 1000}, {640, 640}, {0, 5}, {5, 0}}) {
    for (Index slices : {1, 2, 3, 8, 100}) {
      for (int blocks : {1, 2, 3, 7, 200}) {
        std::set<TileNumbers> all;
        size_t most = 0, least = 1000000;
        for (int block = 0; block < blocks; ++block) {
          const std::vector<TileNumbers> tiles =
              TilesOf({block, blocks}, m, n, {slices, (m * 64 + slices - 1) / slices});
          most = std::max(most, tiles.size());
          least = std::min(least, tiles.size());
          for (const TileNumbers& tile : tiles) {
            EXPECT_TRUE(all.insert(tile).second) << tile.first << " " << tile.second;
            EXPECT_TRUE(tile.first * 64 < m && tile.second * 64 < n);
          }
        }
        EXPECT_EQ(static_cast<Index>(all.size()), (m + 63) / 64 * ((n + 63) / 64));
        EXPECT_LE(most - least, 1u);
      }
    }
  }
}

TEST(ForTiles, BeginsEverySliceFirst) {
  // 10 rows of tiles, 2 in a row; slices begin in rows 0, 3 and 6.
  const std::vector<TileNumbers> tiles = TilesOf({}, 640, 128, {3, 214 * 64});
  const std::vector<TileNumbers> first(tiles.begin(), tiles.begin() + 8);
  EXPECT_EQ(first, (std::vector<TileNumbers>{
                       {0, 0}, {3, 0}, {6, 0}, {0, 1}, {3, 1}, {6, 1}, {1, 0}, {4, 0}}));
  EXPECT_EQ(tiles.back(), TileNumbers(9, 1));  // of the last slice, which has most
}

TEST(ForTiles, TakesMoreRowsOfTilesThanFitIn32BitsOfTheirParts) {
  size_t rows = 0;
  unsigned last = 0;
  ForTiles(Grid(), 1u << 21, 1, {2, Index{1} << 32}, [&](unsigned row, unsigned) {
    ++rows;
    last = std::max(last, row);
  });
  EXPECT_EQ(rows, size_t{1} << 21);
  EXPECT_EQ(last, (1u << 21) - 1);
}

TEST(AwaitTiles, WaitsForThoseThatHoldTheElements) {
  constexpr Index kRows = 200, kColumns = 150, kAcross = 3, kDown = 4, kRow = 16;
  const std::vector<unsigned char> near(4);
  Control control{};
  control.near = near.data();
  control.wait = [](Control*, const unsigned*, unsigned, int, int, int) { return false; };
  Sync<2> sync{};
  sync.control = &control, sync.rank = 1, sync.epoch = 5;
  for (Index width : {kColumns, Index{1}, Index{7}}) {
    for (const auto& [begin, end] : {TileNumbers{0, 1},
                                     {63, 65},
                                     {100, 150},
                                     {149, 151},
                                     {5 * kColumns + 10, 5 * kColumns + 20},
                                     {9000, 12000}}) {
      if (end > kRows * width) continue;
      for (Index missing = 0; missing < 2 * kRow; ++missing) {
        std::vector<unsigned> flags(2 * kRow, 5);
        flags[static_cast<size_t>(missing)] = 4;
        const Index tile = missing % kRow, top = tile / kAcross * 64, left = tile % kAcross * 64;
        bool needed = false;
        for (Index i = begin; i < end && tile < kAcross * kDown; ++i) {
          const bool in_row = i / width >= top && i / width < top + 64;
          // A row of another width needs all of the product's row.
          needed = needed ||
                   (in_row && (width != kColumns || (i % width >= left && i % width < left + 64)));
        }
        const bool there =
            AwaitTiles(sync, Grid(), {flags.data(), kRow, 64, 64, kColumns, width}, begin, end);
        const bool one_row = begin / width == (end - 1) / width;
        if (needed || one_row) {
          EXPECT_EQ(there, !needed)
              << "width " << width << ", [" << begin << ", " << end << "), missing " << missing;
        }
      }
    }
  }
}

}  // namespace
}  // namespace coconet
