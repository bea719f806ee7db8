// How many operations of simulated threads a core performs per second: bazel run //bench:simt

#include <cstdio>
#include <memory>
#include <string>

#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "jit/compile/binary_cache.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "runtime/simt/testing/simt_lab.h"

namespace coconet::bench {
namespace {

constexpr char kKernels[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { Control* control; unsigned* a; unsigned* flag; u64* words; Index n; };

CC_KERNEL(words) {
  const Index first = grid.BlockId() * grid.BlockSize() + grid.ThreadId();
  const Index stride = grid.GridSize() * grid.BlockSize();
  for (Index i = first; i < p.n; i += stride) p.a[i] = p.a[i] * 3 + 1;
}
CC_KERNEL(vectors) {
  ForEach<4, 1>(grid, 0, p.n, true, [&](auto lanes, Index i) {
    constexpr int V = decltype(lanes)::kCount;
    const auto loaded = Load<V>(p.a + i);
    return [=, &p] { Store<kCached>(p.a + i, loaded + Splat<V>(1u)); };
  });
}
CC_KERNEL(barriers) {
  for (Index i = 0; i < p.n / 64; ++i) grid.Sync();
}
CC_KERNEL(totals) {
  for (Index i = 0; i < p.n / 1024; ++i) {
    const auto sum = [](double x, double y) { return x + y; };
    p.a[grid.ThreadId()] = unsigned(grid.Total(double(i), sum));
  }
}
)";

struct Case {
  const char* kernel;
  const char* what;
  int blocks, threads;
};
constexpr Case kCases[] = {
    {"words", "loads and stores of 4 bytes", 4, 64},
    {"vectors", "loads and stores of 16 bytes", 1, 64},
    {"barriers", "barriers of 256 threads", 1, 256},
    {"totals", "totals of a block: shuffles, barriers and shared memory", 1, 256}};

absl::StatusOr<std::string> Image() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeSimtCompiler({.cache_dir = folder->path()}));
  ASSIGN_OR_RETURN(const Binary binary, compiler->Compile(kKernels));
  return BinaryCache::ReadAt(binary.path).value();
}

absl::Status Measure() {
  ASSIGN_OR_RETURN(const std::string image, Image());
  for (const Case& c : kCases) {
    SimtLab lab(image, {}, /*n=*/1 << 20);
    const double begin_s = SecondsNow();
    const std::string found = lab.Run(c.kernel, c.blocks, c.threads);
    if (!found.empty()) return absl::InternalError(found);
    std::printf("%6.1f M thread-operations per second  %s\n",
                1e-6 * static_cast<double>(lab.machine().operations()) / (SecondsNow() - begin_s),
                c.what);
  }
  return absl::OkStatus();
}

const Registered kBenchmark({.name = "simt",
                             .purpose = "counts operations of simulated GPU threads",
                             .run = Measure});

}  // namespace
}  // namespace coconet::bench
