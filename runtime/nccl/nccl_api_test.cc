#include "runtime/nccl/nccl_api.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int version_of_fake = NCCL_VERSION_CODE;

ncclResult_t GetVersion(int* version) {
  *version = version_of_fake;
  return ncclSuccess;
}

/// A library with every function, none of which is called, and a version.
void* Find(const char* name) {
  if (std::string(name) == "ncclGetVersion") return reinterpret_cast<void*>(GetVersion);
  return reinterpret_cast<void*>(Find);
}

TEST(NcclApi, IsFilledByName) {
  version_of_fake = 22809;
  const absl::StatusOr<NcclApi> nccl = FillNcclApi(Find);
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_EQ(nccl->version, "2.28.9");
  EXPECT_EQ(nccl->version_code, 22809);
  const absl::StatusOr<NcclApi> old = FillNcclApi([](const char* name) {
    return std::string(name).rfind("ncclCommWindow", 0) == 0 ? nullptr : Find(name);
  });
  ASSERT_TRUE(old.ok()) << "windows are not needed: " << old.status();
  EXPECT_EQ(old->CommWindowRegister, nullptr);
}

TEST(NcclApi, SaysWhatAnOldOneLacks) {
  const absl::Status lacks = FillNcclApi([](const char* name) {
                               const bool there = std::string(name) != "ncclCommInitRankConfig" &&
                                                  std::string(name) != "ncclCommFinalize";
                               return there ? Find(name) : nullptr;
                             }).status();
  EXPECT_EQ(
      lacks,
      absl::UnavailableError(
          "NCCL lacks ncclCommInitRankConfig, ncclCommFinalize: want version 2.17.0 or later"));
  version_of_fake = 21600;
  EXPECT_EQ(FillNcclApi(Find).status(),
            absl::UnavailableError("NCCL has version 2.16.0: want 2.17.0 or later"));
  version_of_fake = 2804;
  EXPECT_EQ(FillNcclApi(Find).status(),
            absl::UnavailableError("NCCL has version 2.8.4: want 2.17.0 or later"));
}

TEST(NcclApi, SaysWhereItLooked) {
  const absl::Status status = FindNcclIn({"libno-such-nccl.so", "/none/libnccl.so.2"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("libno-such-nccl.so"), HasSubstr("/none/libnccl.so.2"),
                    HasSubstr("install libnccl2")));
}

TEST(NcclApi, ErrorsAreInItsWords) {
  NcclApi nccl;
  nccl.GetErrorString = [](ncclResult_t) { return "unhandled system error"; };
  nccl.GetLastError = [](ncclComm_t) { return "no route to host"; };
  EXPECT_EQ(ToStatus(nccl, ncclSuccess, "ncclSend"), absl::OkStatus());
  EXPECT_EQ(ToStatus(nccl, ncclSystemError, "ncclSend"),
            absl::InternalError("ncclSend: unhandled system error (2): no route to host"));
  EXPECT_EQ(ToStatus(nccl, ncclRemoteError, "ncclSend").code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(ToStatus(nccl, ncclInProgress, "ncclSend").ok());
  EXPECT_EQ(ToStatusOfBegun(nccl, ncclInProgress, "ncclSend"), absl::OkStatus());
  nccl.GetLastError = [](ncclComm_t) { return ""; };
  EXPECT_EQ(ToStatus(nccl, ncclSystemError, "ncclSend"),
            absl::InternalError("ncclSend: unhandled system error (2)"));
}

TEST(NcclApi, OpensWhatTheMachineHas) {
  const absl::StatusOr<const NcclApi*> nccl = OpenNccl();
  if (!nccl.ok()) {
    EXPECT_EQ(nccl.status().code(), absl::StatusCode::kUnavailable);
    GTEST_SKIP() << nccl.status().message();
  }
  EXPECT_THAT((*nccl)->version, AllOf(HasSubstr("."), Not(HasSubstr(" "))));
  EXPECT_THAT(std::string((*nccl)->GetErrorString(ncclInvalidUsage)), HasSubstr("invalid usage"));
  if ((*nccl)->version_code < 22800) return;
  EXPECT_TRUE((*nccl)->MemAlloc != nullptr && (*nccl)->MemFree != nullptr &&
              (*nccl)->CommWindowRegister != nullptr && (*nccl)->CommWindowDeregister != nullptr);
  EXPECT_NE((*nccl)->TeamLsa, nullptr);
  EXPECT_EQ((*nccl)->GetPeerDevicePointer != nullptr, (*nccl)->version_code >= 22900);
}

}  // namespace
}  // namespace coconet
