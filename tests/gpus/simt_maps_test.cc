// Tensor maps of plans on simulated GPUs: what kernels find in their arguments.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/simt/simt_world.h"
#include "runtime/simt_abi.h"

namespace coconet {
namespace {

constexpr char kKernels[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { TensorMap map; u64* out; Index odd; };
static_assert(alignof(Params) == 64);
CC_KERNEL(tells) {
  if (grid.ThreadId() < 16) p.out[grid.ThreadId()] = p.map.words[grid.ThreadId()];
}
)";

constexpr int64_t kLd = 72;

/// Two steps, whose arguments are no whole number of lines, with a map of halves.
Plan PlanOf(int ranks, int64_t ld) {
  using Kind = Arg::Kind;
  KernelStep step{.symbol = "tells",
                  .args = {{Kind::kTensorMap, -1, 0}, {Kind::kOwn, 1}, {Kind::kInt, -1, 7}}};
  step.label = "tell", step.threads = 32;
  step.maps = {{.buffer = 0,
                .dtype = DType::kF16,
                .offset = 8,
                .rows = {4},
                .columns = {20, 16},
                .ld = ld,
                .matrices = {2},
                .matrix_step = 5 * ld,
                .box_rows = 8,
                .box_columns = 64}};
  return {.ranks = ranks,
          .buffers = {{"a", BufferRole::kInput, DType::kF16, 10 * kLd, false},
                      {"out", BufferRole::kOutput, DType::kI64, 16, false}},
          .steps = {step, step}};
}

/// The map that the kernel of each rank finds.
absl::StatusOr<std::vector<SimtTensorMap>> MapsOf(int ranks, int64_t ld,
                                                  std::vector<const void*>& addresses) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeSimtCompiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache")}));
  ASSIGN_OR_RETURN(const Binary binary, compiler->Compile(kKernels));
  std::vector<SimtTensorMap> maps(ranks);
  addresses.resize(ranks);
  RETURN_IF_ERROR(RunSimtWorld({.ranks = ranks}, {}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, rank.Load(binary.path));
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> a, rank.Allocate(20 * kLd, false));
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> out, rank.Allocate(128, false));
    Memory* const buffers[] = {a.get(), out.get()};
    ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                     rank.Bind(PlanOf(rank.size(), ld), *module, buffers, 0));
    RETURN_IF_ERROR(plan->Run());
    addresses[rank.rank()] = a->peer(rank.rank());
    return out->Read(0, sizeof(SimtTensorMap), &maps[rank.rank()]);
  }));
  return maps;
}

TEST(SimtMaps, TellWhereThisRanksPartOfTheMatrixLies) {
  std::vector<const void*> addresses;
  const auto maps = MapsOf(2, kLd, addresses);
  ASSERT_EQ(maps.status(), absl::OkStatus());
  for (int rank = 0; rank < 2; ++rank) {
    const SimtTensorMap& map = (*maps)[rank];
    EXPECT_EQ(map.known, kSimtTensorMap);
    EXPECT_EQ(map.base, static_cast<const char*>(addresses[rank]) + 2 * 8);
    EXPECT_EQ(map.columns, rank == 0 ? 16u : 4u);
    EXPECT_EQ(map.rows, 4u);
    EXPECT_EQ(map.matrices, 2u);
    EXPECT_EQ(map.matrix_bytes, 10u * kLd);
    EXPECT_EQ(map.row_bytes, 2u * kLd);
    EXPECT_EQ(map.box_columns, 64u);
    EXPECT_EQ(map.box_rows, 8u);
    EXPECT_EQ(map.element_bytes, 2u);
  }
}

TEST(SimtMaps, OfMatricesThatHaveNoneAreRefusedInWords) {
  std::vector<const void*> addresses;
  const absl::Status status = MapsOf(1, kLd - 4, addresses).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("Bind: tell: the tensor map of \"a\": want a stride of dimension "
                                 "1 that is a multiple of 16 bytes and less than 2^40, have 136"));
}

}  // namespace
}  // namespace coconet
