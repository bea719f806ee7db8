#include "runtime/cuda/gemm/cuda_gemm.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/gemm_cases.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A fake GPU with a stream and a library.
class Gpu {
 public:
  Gpu() : device_(Device::Open(HostDriver(), 0).value()), in_(device_->Enter().value()) {
    EXPECT_EQ(HostDriver().StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
              CUDA_SUCCESS);
  }
  ~Gpu() { HostDriver().StreamDestroy(stream_); }

  absl::StatusOr<std::unique_ptr<CudaGemm>> Make(const GemmCase& c, GemmOperands& operands,
                                                 int multiprocessors = 0) const {
    const auto open = [&] { return CublasLt::Open(HostCublasLt(), device_); };
    return CudaGemm::Make(
        device_, open, c.step, c.rank, multiprocessors,
        {static_cast<const char*>(operands.a()), static_cast<const char*>(operands.b()),
         static_cast<char*>(operands.c())});
  }

  /// Everything that precedes Start.
  absl::Status Load(CudaGemm& gemm) {
    ASSIGN_OR_RETURN(workspace_, Allocation::Make(device_, gemm.workspace_bytes()));
    if (gemm.workspace_bytes() > 0) gemm.UseWorkspace(workspace_->address());
    ASSIGN_OR_RETURN(const std::shared_ptr<Allocation> scratch,
                     Allocation::Make(device_, gemm.scratch_bytes()));
    return gemm.Load(static_cast<char*>(scratch->address()), stream_);
  }

  absl::Status Start(const CudaGemm& gemm) const {
    RETURN_IF_ERROR(gemm.Start(stream_));
    RETURN_IF_CU(HostDriver(), StreamSynchronize, stream_);
    return absl::OkStatus();
  }

  absl::Status Multiply(const GemmCase& c, GemmOperands& operands, int multiprocessors = 0) {
    ASSIGN_OR_RETURN(const std::unique_ptr<CudaGemm> gemm, Make(c, operands, multiprocessors));
    RETURN_IF_ERROR(Load(*gemm));
    return Start(*gemm);
  }

  const std::shared_ptr<Device>& device() const { return device_; }
  CUstream stream() const { return stream_; }

 private:
  std::shared_ptr<Device> device_;
  InContext in_;
  CUstream stream_ = nullptr;
  std::shared_ptr<Allocation> workspace_;
};

void ExpectRight(const std::vector<GemmCase>& cases) {
  Gpu gpu;
  for (const GemmCase& c : cases) {
    GemmOperands operands(c.step);
    EXPECT_EQ(gpu.Multiply(c, operands), absl::OkStatus()) << Text(c);
    EXPECT_EQ(operands.Wrong(c), "") << Text(c);
  }
}

class CudaGemmOf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, CudaGemmOf, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(CudaGemmOf, OddSizesAndTransposes) { ExpectRight(OddSizesAndTransposes(GetParam())); }
TEST_P(CudaGemmOf, BatchesStridesOffsetsAndThreads) {
  ExpectRight(BatchesStridesOffsetsAndThreads(GetParam()));
}
TEST_P(CudaGemmOf, BatchesOfTransposedColumnsTimesOneMatrix) {
  ExpectRight(BatchesOfTransposedColumns(GetParam()));
}
TEST_P(CudaGemmOf, BatchesSideBySide) { ExpectRight(BatchesSideBySide(GetParam())); }
TEST_P(CudaGemmOf, SlicesOfEachRank) { ExpectRight(SlicesOfEachRank(GetParam())); }
TEST_P(CudaGemmOf, NothingIsZerosOrNothing) { ExpectRight(NothingToSumOrNothing(GetParam())); }

TEST_P(CudaGemmOf, GoesTheWayThatItsCandidateSays) {
  Gpu gpu;
  // Algorithms that round partial sums to c's type are offered only where that is the sums' type.
  const int ways = GetParam() == DType::kF32 ? kHostWays + 1 : kHostWays;
  for (int candidate = 0; candidate < ways; ++candidate) {
    GemmCase c{DenseGemm(GetParam(), 2, 20, 30, 40)};
    c.step.candidate = candidate;
    c.step.c.offset = 7;
    GemmOperands operands(c.step);
    const auto begin = reinterpret_cast<uintptr_t>(operands.c()) + 7 * SizeOf(GetParam());
    TakeHostProducts();
    EXPECT_EQ(gpu.Multiply(c, operands, 10 * candidate), absl::OkStatus());
    EXPECT_EQ(operands.Wrong(c), "") << candidate;
    const HostProduct want{.way = candidate,
                           .multiprocessors = 10 * candidate,
                           .misalignment = static_cast<int>(begin % 256)};
    EXPECT_THAT(TakeHostProducts(), ElementsAre(want, want));  // Load and Start run the same kernel
  }
  GemmCase none{DenseGemm(GetParam(), 2, 20, 30, 40)};
  none.step.candidate = ways;
  GemmOperands operands(none.step);
  EXPECT_EQ(gpu.Make(none, operands).status(),
            absl::OutOfRangeError(absl::StrCat("Bind: MM: want a candidate below ", ways,
                                               ", as there are so many, have ", ways)));
}

TEST_P(CudaGemmOf, LoadingLeavesTheResultAlone) {
  Gpu gpu;
  for (const std::vector<GemmCase>& cases :
       {BatchesStridesOffsetsAndThreads(GetParam()), BatchesSideBySide(GetParam())}) {
    for (const GemmCase& c : cases) {
      GemmOperands operands(c.step);
      const auto gemm = gpu.Make(c, operands);
      ASSERT_TRUE(gemm.ok()) << gemm.status();
      EXPECT_EQ(gpu.Load(**gemm), absl::OkStatus());
      GemmCase nothing = c;
      nothing.step.batch = 0;
      EXPECT_EQ(operands.Wrong(nothing), "") << Text(c);
    }
  }
}

TEST(CudaGemm, SumsProductsOf8BitFloatsInF32) {
  std::vector<GemmCase> cases = {{DenseGemm(DType::kF8E4M3, 1, 20, 32, 48, false, true)},
                                 {DenseGemm(DType::kF8E5M2, 1, 1, 4, 16, false, true)},
                                 {DenseGemm(DType::kF8E4M3, 3, 5, 36, 80, false, true)}};
  cases[2].step.b.float8 = DType::kF8E4M3;
  cases.push_back(cases[0]);
  cases[3].step.a.offset = 32;
  cases[3].step.c.offset = 8;
  ExpectRight(cases);
}

TEST(CudaGemm, SaysWhichProductsOf8BitFloatsTheLibraryLacks) {
  Gpu gpu;
  const auto refusal = [&](const std::function<void(GemmStep&)>& change) {
    GemmCase c{DenseGemm(DType::kF8E4M3, 1, 20, 32, 48, false, true)};
    change(c.step);
    GemmOperands operands(c.step);
    const absl::Status status = gpu.Make(c, operands).status();
    EXPECT_TRUE(status.ok() || absl::IsUnimplemented(status)) << status;
    return std::string(status.message());
  };
  constexpr char kWant[] = "Bind: MM: cuBLASLt: of 8-bit floats, want ",
                 kCast[] = "; use cast(bf16, ...) of the operands";
  EXPECT_EQ(refusal([](GemmStep&) {}), "");
  EXPECT_EQ(refusal([](GemmStep& s) { s.transpose_b = false, s.b.ld = 32; }),
            absl::StrCat(kWant, "matmul(a, b, transpose_b), have no transpose_a and no transpose_b",
                         kCast));
  EXPECT_EQ(
      refusal([](GemmStep& s) { s.transpose_a = true, s.a.ld = 32; }),
      absl::StrCat(kWant, "matmul(a, b, transpose_b), have transpose_a and transpose_b", kCast));
  EXPECT_EQ(refusal([](GemmStep& s) { s.a.float8 = DType::kF8E5M2; }),
            absl::StrCat(kWant, "f8e4m3 as one operand, have f8e5m2 as both", kCast));
  EXPECT_THAT(refusal([](GemmStep& s) { s.a.ld = 56; }),
              HasSubstr("rows at multiples of 16 bytes, have 56 bytes from one to the next"));
  EXPECT_THAT(refusal([](GemmStep& s) { s.b.offset = 8; }),
              HasSubstr("48 bytes from one to the next, and the first aligned to 8"));
  EXPECT_THAT(refusal([](GemmStep& s) { s.n = {30}, s.c.ld = 30; }),
              HasSubstr("have 120 bytes from one to the next"));
}

TEST(CudaGemm, AsksForTheLibraryOnlyWhereThereIsSomethingToSum) {
  Gpu gpu;
  const auto open = []() -> absl::StatusOr<std::shared_ptr<const CublasLt>> {
    return absl::UnavailableError("no library");
  };
  const auto make = [&](const GemmCase& c) {
    GemmOperands operands(c.step);
    auto* result = static_cast<char*>(operands.c());
    return CudaGemm::Make(gpu.device(), open, c.step, c.rank, 0, {result, result, result}).status();
  };
  for (const GemmCase& c : NothingToSumOrNothing(DType::kF32))
    EXPECT_EQ(make(c), absl::OkStatus()) << Text(c);
  EXPECT_EQ(make({DenseGemm(DType::kF32, 1, 2, 3, 4)}), absl::UnavailableError("no library"));
}

TEST(CudaGemm, EachCallThatFailsBecomesAnErrorThatNamesIt) {
  Gpu gpu;
  std::vector<std::string> failed;
  for (int call = 1;; ++call) {
    const GemmCase c{DenseGemm(DType::kBF16, 2, 5, 7, 3)};
    GemmOperands operands(c.step);
    FailCublasLtCall(call, CUBLAS_STATUS_NOT_SUPPORTED);
    const absl::Status status = gpu.Multiply(c, operands);
    if (FailedCublasLtCall().empty()) {
      EXPECT_EQ(status, absl::OkStatus());
      break;
    }
    if (failed.empty() || failed.back() != FailedCublasLtCall())
      failed.push_back(FailedCublasLtCall());
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(FailedCublasLtCall(),
                                       ": CUBLAS_STATUS_OF_A_TEST (15): what a library says")));
    const bool at_bind = failed.back() != "cublasLtMatmul" && failed.back() != "cublasLtCreate";
    EXPECT_EQ(absl::StartsWith(status.message(), "Bind: MM: "), at_bind) << status;
  }
  FailCublasLtCall(0, CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(
      failed,
      ElementsAre("cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                  "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
                  "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
                  "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute",
                  "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute",
                  "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"));
}

TEST(CudaGemm, NeedsItsWorkspace) {
  Gpu gpu;
  const GemmCase c{DenseGemm(DType::kF32, 1, 5, 7, 3)};
  GemmOperands operands(c.step);
  const auto gemm = gpu.Make(c, operands);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  ASSERT_GT((*gemm)->workspace_bytes(), 0);
  EXPECT_THAT(std::string(gpu.Start(**gemm).message()), HasSubstr("cublasLtMatmul"));
}

TEST(CudaGemm, RefusesScales) {
  const GemmCase c = ScalesOfBlocks(DType::kF8E4M3)[0];
  GemmOperands operands(c.step);
  const absl::Status status = Gpu().Make(c, operands).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Bind: MM: want a product without scales"));
}

TEST(CudaGemm, RefusesSizesThatTheLibraryCannotCount) {
  const absl::Status status =
      LtProduct::Describe(HostCublasLt(),
                          {.dtype = DType::kF32, .m = int64_t{1} << 31, .n = 1, .k = 1})
          .status();
  EXPECT_EQ(status, absl::UnimplementedError(
                        "cuBLASLt: want sizes below 2^31, have 1 x [2147483648, 1, 1]"));
}

/// Describing products needs no GPU: the real library accepts all attributes and their sizes.
TEST(CudaGemm, TheLibraryTakesEveryDescription) {
  const absl::StatusOr<const CublasLtApi*> api = OpenCublasLt();
  if (!api.ok()) GTEST_SKIP() << api.status().message();
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int alignment : {2, 4, 16, 256}) {
      const LtShape::Matrix matrix{
          .ld = 128, .stride = 128 * 128, .transposed = alignment == 16, .alignment = alignment};
      const LtShape shape{.dtype = dtype,
                          .batch = 3,
                          .m = 65,
                          .n = 33,
                          .k = 17,
                          .a = matrix,
                          .b = matrix,
                          .c = {.ld = 128, .stride = 128 * 128, .alignment = alignment},
                          .multiprocessors = alignment,
                          .workspace_bytes = 32 << 20};
      EXPECT_EQ(LtProduct::Describe(**api, shape).status(), absl::OkStatus())
          << Name(dtype) << " " << alignment;
    }
  }
  const LtShape::Matrix a{.ld = 32, .stride = 65 * 32, .alignment = 16, .float8 = DType::kF8E4M3},
      b{.ld = 32, .stride = 36 * 32, .transposed = true, .alignment = 16, .float8 = DType::kF8E5M2};
  const LtShape shape{.dtype = DType::kF32,
                      .batch = 3,
                      .m = 65,
                      .n = 36,
                      .k = 32,
                      .a = a,
                      .b = b,
                      .c = {.ld = 36, .stride = 65 * 36, .alignment = 16},
                      .workspace_bytes = 32 << 20};
  EXPECT_EQ(LtProduct::Describe(**api, shape).status(), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
