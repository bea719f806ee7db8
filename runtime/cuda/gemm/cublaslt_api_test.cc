#include "runtime/cuda/gemm/cublaslt_api.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CublasLtApi Fake() {
  CublasLtApi api;
  api.GetStatusName = [](cublasStatus_t) { return "CUBLAS_STATUS_ALLOC_FAILED"; };
  api.GetStatusString = [](cublasStatus_t) { return "the resource allocation failed"; };
  return api;
}

TEST(CublasLtApi, EveryErrorNamesTheCallAndTheLibrarysWords) {
  const absl::Status status = ToStatus(Fake(), CUBLAS_STATUS_ALLOC_FAILED, "cublasLtCreate");
  EXPECT_EQ(status,
            absl::ResourceExhaustedError(
                "cublasLtCreate: CUBLAS_STATUS_ALLOC_FAILED (3): the resource allocation failed"));
  EXPECT_TRUE(ToStatus(Fake(), CUBLAS_STATUS_SUCCESS, "cublasLtCreate").ok());
}

TEST(CublasLtApi, EachKindOfErrorHasItsCode) {
  const std::map<cublasStatus_t, absl::StatusCode> codes = {
      {CUBLAS_STATUS_NOT_INITIALIZED, absl::StatusCode::kUnavailable},
      {CUBLAS_STATUS_ARCH_MISMATCH, absl::StatusCode::kFailedPrecondition},
      {CUBLAS_STATUS_NOT_SUPPORTED, absl::StatusCode::kUnimplemented},
      {CUBLAS_STATUS_EXECUTION_FAILED, absl::StatusCode::kInternal},
      {static_cast<cublasStatus_t>(4242), absl::StatusCode::kInternal}};
  for (const auto& [result, code] : codes)
    EXPECT_EQ(ToStatus(Fake(), result, "cublasLtMatmul").code(), code) << result;
}

TEST(CublasLtApi, OpensNoFileThatIsNotThere) {
  const absl::Status status =
      CublasLtIn({"libcoconet_no_such_library.so.13", "/nonexistent/libcublasLt.so"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("cuBLASLt"), HasSubstr("./setup.sh"),
                                                   HasSubstr("libcoconet_no_such_library.so.13"),
                                                   HasSubstr("/nonexistent/libcublasLt.so")));
}

TEST(CublasLtApi, NamesTheFunctionsThatALibraryLacks) {
  const absl::Status status = CublasLtIn({"libm.so.6"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "libm.so.6 lacks cublasLtGetStatusName, cublasLtGetStatusString, cublasLtGetVersion"));
}

TEST(CublasLtApi, OpensTheLibraryOrSaysWhatIsMissing) {
  const absl::StatusOr<const CublasLtApi*> api = OpenCublasLt();
  if (!api.ok()) {
    EXPECT_EQ(api.status().code(), absl::StatusCode::kUnavailable);
    GTEST_SKIP() << api.status().message();
  }
  EXPECT_GE((*api)->GetVersion(), 120000u);
  EXPECT_EQ(ToStatus(**api, CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmul"),
            absl::UnimplementedError("cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15): the "
                                     "requested functionality is not supported"));
}

}  // namespace
}  // namespace coconet
