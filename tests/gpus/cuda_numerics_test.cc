// What a user admits of reductions over ranks decides what NCCL does, and what is verified:
// sessions on a driver and an NCCL of the host, whose additions round each time.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/testing/host_nccl.h"
#include "runtime/nccl/testing/host_round.h"
#include "tests/gpus/cuda_session.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

class CudaNumerics : public CudaSession {
 protected:
  void SetUp() override {
    CudaSession::SetUp();
    SetHostDevices({.count = kRanks, .multiprocessors = 4});
  }
  void TearDown() override { PlantReductionMistake(ReductionMistake::kNone); }

  static absl::StatusOr<Graph> Reduction(absl::string_view kind, DType dtype) {
    return Parse(absl::StrCat("coconet 1\nprogram reduction\ninput g : ", Name(dtype),
                              "[N] local\noutput s = all_reduce(", kind, ", g)\n"));
  }

  /// Tunes an AllReduce that is left to the library, on a GPU per rank, and runs it; `values`: the
  /// first element of each rank. The result's first element on rank 0.
  absl::StatusOr<double> Reduce(absl::string_view kind, DType dtype, const Numerics& numerics,
                                const std::vector<double>& values) {
    const auto open = [](const StreamLibraryTerms& terms) {
      return OpenNcclLibrariesOver(&HostNccl(), terms);
    };
    const CudaLibraries libraries{
        .driver = HostDriver(), .open_libraries = open, .control = ControlOfHostKernels()};
    double reduced = 0;
    RETURN_IF_ERROR(RunCudaWorldOver(
        libraries, {kRanks, {}, kCudaSessionTimeout}, [&](Rank& rank) -> absl::Status {
          SessionOptions options = Options();
          options.sum_rounding = numerics.sum_rounding;
          options.nans = numerics.nans;
          options.admits = [](const Schedule& schedule, const Config& config) {
            return config.protocol == Protocol::kLibrary && Describe(schedule) == "AR";
          };
          Session session(rank, options);
          ASSIGN_OR_RETURN(const TunedProgram tuned,
                           session.Compile(Reduction(kind, dtype), {{"N", kElements}}));
          ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
          std::vector<char> data(kElements * SizeOf(dtype));
          StoreElement(dtype, data.data(), 0, values[rank.rank()]);
          RETURN_IF_ERROR(bound.Write("g", dtype, data.data(), kElements));
          RETURN_IF_ERROR(bound.Run());
          RETURN_IF_ERROR(bound.Read("s", dtype, data.data(), kElements));
          if (rank.rank() == 0) reduced = LoadElement(dtype, data.data(), 0).real();
          return absl::OkStatus();
        }));
    return reduced;
  }

  static constexpr int64_t kElements = 5000;
};

constexpr Numerics kOnce = {}, kEach = {.sum_rounding = SumRounding::kEach},
                   kNoNans = {.nans = Nans::kNone};

TEST_F(CudaNumerics, SumsOfNarrowTypesAreNcclsWhereEachAdditionMayRound) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    const double first = dtype == DType::kBF16 ? 256 : 2048;
    int before = NcclCollectives();
    absl::StatusOr<double> sum = Reduce("sum", dtype, kOnce, {first, 1, 1});
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(*sum, first + 2) << Name(dtype) << ": rounded once";
    EXPECT_EQ(NcclCollectives(), before) << "it goes by way of the host";
    before = NcclCollectives();
    sum = Reduce("sum", dtype, kEach, {first, 1, 1});
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(*sum, first) << Name(dtype) << ": rounded twice";
    EXPECT_GT(NcclCollectives() - before, kRanks);
  }
}

TEST_F(CudaNumerics, ExtremesOfFloatsAreNcclsWhereThereAreNoNaNs) {
  for (const char* kind : {"max", "min"}) {
    const double want = absl::string_view(kind) == "max" ? 7 : -2;
    int before = NcclCollectives();
    absl::StatusOr<double> extreme = Reduce(kind, DType::kF32, kOnce, {3, 7, -2});
    ASSERT_TRUE(extreme.ok()) << extreme.status();
    EXPECT_EQ(*extreme, want);
    EXPECT_EQ(NcclCollectives(), before);
    before = NcclCollectives();
    extreme = Reduce(kind, DType::kF32, kNoNans, {3, 7, -2});
    ASSERT_TRUE(extreme.ok()) << extreme.status();
    EXPECT_EQ(*extreme, want);
    EXPECT_GT(NcclCollectives() - before, kRanks);
  }
}

TEST_F(CudaNumerics, AWrongSumIsFoundWhateverMayRound) {
  for (const ReductionMistake mistake : {ReductionMistake::kCoarse, ReductionMistake::kSkipsLast}) {
    PlantReductionMistake(mistake);
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      EXPECT_THAT(Reduce("sum", dtype, kEach, {1, 1, 1}).status().ToString(),
                  HasSubstr("elements are wrong"))
          << Name(dtype);
    }
  }
  EXPECT_THAT(Reduce("max", DType::kF32, kNoNans, {1, 1, 1}).status().ToString(),
              HasSubstr("elements are wrong"));
}

}  // namespace
}  // namespace coconet
