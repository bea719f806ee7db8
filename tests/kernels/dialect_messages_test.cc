// Messages of data and epoch (jit/device/operands.h) between threads that nothing else holds
// together, on every compiler and every level of machine features that is here: step after step,
// over the wrap-around of epochs.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "runtime/node/wait.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/dialect.h"

namespace coconet {
namespace {

constexpr int kRanks = 3, kSteps = 150, kManySteps = 600;
constexpr DType kTypes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kF64};
constexpr int kLanes[] = {2, 64};
constexpr int64_t kSizes[] = {1, 3, 64, 389};

std::string KernelName(DType dtype, int lanes) {
  return absl::StrCat("messages_", Name(dtype), "_", lanes);
}

std::string MessagesText(DType dtype, int lanes) {
  return absl::StrReplaceAll(
      R"(
namespace @name@_n {
using namespace coconet;
struct Params {
  @t@ *own, *out;
  i64* words[3];
  unsigned* flags[3];
  unsigned* epochs;
  Control* control;
  Index rank, n, stride;
};
CC_KERNEL(@name@) {
  const auto sync = MakeSync<3>(grid, p.control, p.flags, p.epochs, 16, int(p.rank), 0, 0, kCached);
  bool lost = false;
  const auto messages = MakeMessages(sync, p.own, p.words, p.stride, lost);
  ForChunks(grid, Cut{1, p.n, p.n}, 0, 192, [&](const Chunk& c) {
    SendChunk(grid, messages, c, p.n);
    return true;
  });
  ForChunks(grid, Cut{1, p.n, p.n}, 0, 192, [&](const Chunk& c) {
    ForEach<@v@, 1>(grid, c.begin, c.end, true, [&](auto lanes, Index i) {
      const auto x = FetchAll<decltype(lanes)::kCount>(messages, i);
      return [&, i, x] { Store<kCached>(p.out + i, Summed(x) + Greatest(x) - Least(x)); };
    });
    return true;
  });
  if (!grid.SyncAnd(!lost)) return;
  Leave(sync, grid);
}
}
)",
      {{"@name@", KernelName(dtype, lanes)}, {"@t@", Name(dtype)}, {"@v@", absl::StrCat(lanes)}});
}

/// Small numbers, exact in every type.
int Value(int rank, int step, int64_t i) {
  return static_cast<int>((5 * rank + 3 * step + i) % 23);
}
int Want(int step, int64_t i) {
  const int x = Value(0, step, i), y = Value(1, step, i), z = Value(2, step, i);
  return x + y + z + std::max({x, y, z}) - std::min({x, y, z});
}

bool WaitPolitely(Control*, const unsigned* flag, unsigned expected, int, int, int) {
  const WaitTerms forever{.timeout_ns = std::numeric_limits<int64_t>::max()};
  const auto reached = [&] { return Reached(__atomic_load_n(flag, __ATOMIC_ACQUIRE), expected); };
  return WaitUntil(forever, reached, [] { return false; }) == WaitEnd::kReady;
}

/// What the kernel takes, in its order.
struct Arguments {
  void *own, *out;
  void* words[kRanks];
  unsigned* flags[kRanks];
  unsigned* epochs;
  Control* control;
  int64_t rank, n, stride;
};

/// The memory of one rank.
struct Memory {
  Memory(DType dtype, int64_t n, int64_t stride)
      : own(dtype, n), out(dtype, n), words(2 * kRanks * stride) {}
  Column own, out;
  std::vector<uint64_t> words;
  unsigned epoch = 0;
  unsigned char near[kRanks] = {};
  Control control{};
};

/// Every rank runs step after step, and now and then sleeps. What was wrong first; "" when nothing
/// was.
std::string RunRanks(HostKernel kernel, DType dtype, int64_t n, int steps, uint64_t seed) {
  const int64_t stride = (n * static_cast<int64_t>(SizeOf(dtype)) / 4 + 16) / 16 * 16;
  std::vector<Memory> memory(kRanks, Memory(dtype, n, stride));
  std::vector<std::string> wrong(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Memory& mine = memory[rank];
      mine.epoch = 0u - static_cast<unsigned>(steps) / 2;  // so that epochs pass 0
      mine.control.near = mine.near;
      mine.control.spins = 100;
      mine.control.wait = WaitPolitely;
      Arguments arguments{
          mine.own.data(), mine.out.data(), {}, {}, &mine.epoch, &mine.control, rank, n, stride};
      for (int r = 0; r < kRanks; ++r) arguments.words[r] = memory[r].words.data();
      std::mt19937_64 random(Mix(seed, rank));
      for (int step = 0; step < steps; ++step) {
        for (int64_t i = 0; i < n; ++i)
          StoreElement(dtype, mine.own.data(), i, Value(rank, step, i));
        if (random() % 8 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
        kernel(&arguments, 0, 1);
        for (int64_t i = 0; i < n && wrong[rank].empty(); ++i) {
          if (mine.out[i] == Want(step, i)) continue;
          wrong[rank] = absl::StrCat("step ", step, " on rank ", rank, ", element ", i, ": want ",
                                     Want(step, i), ", have ", NumberText(mine.out[i]));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) {
    if (!text.empty()) return text;
  }
  return "";
}

/// Each type with `widths` numbers of lanes, which ones by the seed.
void CheckMessages(const DialectToolchain& toolchain, size_t widths, int steps) {
  const uint64_t seed = FreshSeed();
  const auto wanted = [&](DType dtype, size_t k) {
    return widths == std::size(kLanes) || (seed + SizeOf(dtype) / 2 + k) % 2 == 0;
  };
  std::string text;
  for (DType dtype : kTypes) {
    for (size_t k = 0; k < std::size(kLanes); ++k) {
      if (wanted(dtype, k)) text += MessagesText(dtype, kLanes[k]);
    }
  }
  const DialectModule& module = CompiledOnce(toolchain, text);
  for (DType dtype : kTypes) {
    for (size_t k = 0; k < std::size(kLanes); ++k) {
      if (!wanted(dtype, k)) continue;
      const int64_t n = kSizes[(Mix(seed, SizeOf(dtype)) + k) % std::size(kSizes)];
      EXPECT_EQ(RunRanks(module.Kernel(KernelName(dtype, kLanes[k])), dtype, n, steps, seed), "")
          << Name(dtype) << " lanes " << kLanes[k] << " n " << n << " COCONET_SEED=" << seed;
    }
  }
}

class DialectMessagesTest : public testing::TestWithParam<DialectToolchain> {};
class LongDialectMessagesTest : public DialectMessagesTest {};
TEST_P(DialectMessagesTest, AreOfTheirStep) { CheckMessages(GetParam(), /*widths=*/1, kSteps); }
TEST_P(LongDialectMessagesTest, AreOfTheirStep) {
  CheckMessages(GetParam(), std::size(kLanes), kManySteps);
}

INSTANTIATE_TEST_SUITE_P(, LongDialectMessagesTest, testing::ValuesIn(Toolchains()),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(, DialectMessagesTest, testing::ValuesIn(Toolchains()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace coconet
