#include "runtime/cuda/driver/driver_api.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CUresult NameOf(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : nullptr;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult WordsOf(CUresult result, const char** words) {
  *words = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : nullptr;
  return *words == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int version_of_driver = 0;
CUresult init_result = CUDA_SUCCESS;

/// A driver with a version, which starts or fails to.
DriverApi Fake() {
  DriverApi driver;
  driver.GetErrorName = NameOf;
  driver.GetErrorString = WordsOf;
  driver.Init = [](unsigned) { return init_result; };
  driver.DriverGetVersion = [](int* version) {
    *version = version_of_driver;
    return CUDA_SUCCESS;
  };
  return driver;
}

TEST(DriverApi, EveryErrorNamesTheCallAndTheDriversWords) {
  const absl::Status status = ToStatus(Fake(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  EXPECT_TRUE(ToStatus(Fake(), CUDA_SUCCESS, "cuMemAlloc").ok());
}

TEST(DriverApi, AnErrorOfALaterDriverHasItsNumber) {
  const absl::Status status = ToStatus(Fake(), static_cast<CUresult>(4242), "cuGraphLaunch");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("cuGraphLaunch"), HasSubstr("4242")));
}

TEST(DriverApi, EachKindOfErrorHasItsCode) {
  const std::map<CUresult, absl::StatusCode> codes = {
      {CUDA_ERROR_NO_DEVICE, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_STUB_LIBRARY, absl::StatusCode::kUnavailable},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, absl::StatusCode::kFailedPrecondition},
      {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, absl::StatusCode::kFailedPrecondition},
      {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, absl::StatusCode::kUnimplemented},
      {CUDA_ERROR_NOT_FOUND, absl::StatusCode::kNotFound},
      {CUDA_ERROR_ILLEGAL_ADDRESS, absl::StatusCode::kDataLoss}};
  for (const auto& [result, code] : codes)
    EXPECT_EQ(ToStatus(Fake(), result, "cuCall").code(), code) << result;
}

TEST(DriverApi, KnowsWhichErrorsLeaveTheContextUsable) {
  for (CUresult result :
       {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_MAP_FAILED, CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_NOT_READY, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_TIMEOUT, CUDA_ERROR_UNKNOWN}) {
    EXPECT_FALSE(EndsContext(result)) << result;
    EXPECT_NE(ToStatus(Fake(), result, "cuCall").code(), absl::StatusCode::kDataLoss) << result;
  }
}

TEST(DriverApi, AnErrorThatEndsTheContextSaysWhatToDo) {
  DriverApi driver = Fake();
  EXPECT_THAT(std::string(ToStatus(driver, CUDA_ERROR_ILLEGAL_ADDRESS, "cuCall").message()),
              HasSubstr("(700); a kernel failed and the GPU runs nothing more for this process: "
                        "start it again"));
  driver.explains_failures = true;
  EXPECT_THAT(std::string(ToStatus(driver, CUDA_ERROR_ILLEGAL_ADDRESS, "cuCall").message()),
              testing::EndsWith("(700)"));
}

TEST(DriverApi, OpensNoFileThatIsNotThere) {
  const absl::Status status =
      FindIn({"libcoconet_no_such_driver.so.1", "/nonexistent/libcuda.so"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("libcuda"), HasSubstr("libcoconet_no_such_driver.so.1"),
            HasSubstr("/nonexistent/libcuda.so"), HasSubstr("want an NVIDIA GPU and its driver")));
}

TEST(DriverApi, SaysThatALibraryIsNoDriver) {
  const absl::Status status = FindIn({"libm.so.6"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("libm.so.6: too old, want the driver of CUDA 12.4 or later"));
}

TEST(DriverApi, NamesTheFunctionsThatAreMissing) {
  static int function;
  const auto status =
      FillDriverApi([](const char* name, int) -> void* {
        const std::string text = name;
        return text == "cuLaunchKernelEx" || text == "cuFuncLoad" ? nullptr : &function;
      }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "the CUDA driver lacks cuFuncLoad, cuLaunchKernelEx: want that of CUDA 12.4 or later");
}

TEST(DriverApi, DoesWithoutGreenContexts) {
  static int function;
  const absl::StatusOr<DriverApi> driver = FillDriverApi([](const char* name, int) -> void* {
    return std::string(name).find("Green") != std::string::npos ? nullptr : &function;
  });
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ(driver->GreenCtxCreate, nullptr);
  EXPECT_NE(driver->DeviceGetDevResource, nullptr);
}

TEST(DriverApi, AsksAnOlderDriverForItsOwnVersion) {
  static int function;
  const absl::StatusOr<DriverApi> driver = FillDriverApi([](const char*, int version) -> void* {
    return version > kLeastDriver ? nullptr : &function;
  });
  EXPECT_TRUE(driver.ok()) << driver.status();
}

TEST(DriverApi, RefusesADriverThatIsTooOld) {
  version_of_driver = 12020;
  init_result = CUDA_SUCCESS;
  const absl::Status status = InitDriver(Fake());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "the CUDA driver is of CUDA 12.2: want one of CUDA 12.4 or later");
  version_of_driver = kLeastDriver;
  EXPECT_TRUE(InitDriver(Fake()).ok());
}

TEST(DriverApi, SaysWhyADriverDoesNotStart) {
  init_result = CUDA_ERROR_OUT_OF_MEMORY;
  const absl::Status status = InitDriver(Fake());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "the CUDA driver does not start: cuInit: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  init_result = CUDA_SUCCESS;
}

TEST(DriverApi, OpensTheDriverOrSaysWhatIsMissing) {
  const absl::StatusOr<const DriverApi*> driver = OpenDriver();
  if (!driver.ok()) {
    EXPECT_EQ(driver.status().code(), absl::StatusCode::kUnavailable);
    GTEST_SKIP() << driver.status().message();
  }
  int devices = -1;
  EXPECT_TRUE(ToStatus(**driver, (*driver)->DeviceGetCount(&devices), "cuDeviceGetCount").ok());
  EXPECT_GE(devices, 0);
}

}  // namespace
}  // namespace coconet
