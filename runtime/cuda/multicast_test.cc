#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/cuda/testing/host_virtual.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/multicast_checks.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

absl::Status OnHost(int ranks, const WorldShape& shape, bool multicast, const RankBody& body) {
  return RunCudaWorldOver(
      {.driver = HostDriver(), .multicast = multicast, .control = ControlOfHostKernels()},
      {ranks, shape}, body);
}

void ExpectNothingLeft(const std::string& when = "") {
  const HostVirtual left = SeeHostVirtual();
  EXPECT_EQ(left.handles + left.reservations + left.mappings + left.bindings, 0) << when;
  EXPECT_EQ(left.wrong, 0) << when;
}

struct Case {
  int ranks;
  WorldShape shape = {};
};

TEST(Multicast, AddressesReachTheMemoryOfAllRanksOfTheNode) {
  for (const Case& c : {Case{2}, Case{3}, Case{8}, Case{4, {.stages = 1, .nodes = 2}},
                        Case{6, {.stages = 3, .nodes = 0}}, Case{8, {.stages = 2, .nodes = 4}}}) {
    SetHostDevices({.count = 8, .multicast = true});
    const auto check = [](Rank& rank) -> absl::Status {
      EXPECT_TRUE(rank.topology().multicast);
      EXPECT_THAT(rank.topology().note, testing::Not(HasSubstr("multicast")));
      RETURN_IF_ERROR(CheckMulticast(rank));
      RETURN_IF_ERROR(CheckMemory(rank));
      return CheckPlans(rank);
    };
    EXPECT_EQ(OnHost(c.ranks, c.shape, true, check), absl::OkStatus());
    ExpectNothingLeft();
  }
}

TEST(Multicast, MemoryIsInUnitsOfTheDriver) {
  const auto size = [](int64_t unit, int64_t best, int64_t bytes) {
    SetHostDevices({.multicast = true, .multicast_unit = unit, .best_multicast_unit = best});
    return RoundedForMulticast(*Device::Open(HostDriver(), 0).value(), 2, bytes,
                               CU_MEM_HANDLE_TYPE_NONE)
        .value();
  };
  EXPECT_EQ(size(2 * kMiB, 4 * kMiB, 1), 2 * kMiB);
  EXPECT_EQ(size(2 * kMiB, 4 * kMiB, 3 * kMiB), 4 * kMiB);
  EXPECT_EQ(size(2 * kMiB, 512 * kMiB, 3 * kMiB), 4 * kMiB) << "not 170 times what is asked for";
  EXPECT_EQ(size(2 * kMiB, 512 * kMiB, 5000 * kMiB), 5120 * kMiB);
  EXPECT_EQ(size(kMiB, kMiB, 1), 2 * kMiB) << "memory's own";
}

/// Rank 0's note in a world of two ranks, and whether there is multicast.
std::pair<std::string, bool> Told(const HostDevices& devices, bool wanted) {
  SetHostDevices(devices);
  std::pair<std::string, bool> told;
  EXPECT_EQ(OnHost(2, {}, wanted,
                   [&](Rank& rank) {
                     if (rank.rank() == 0) told = {rank.topology().note, rank.topology().multicast};
                     return CheckMemory(rank);
                   }),
            absl::OkStatus());
  ExpectNothingLeft();
  return told;
}

TEST(Multicast, IsThereWhereEachRankHasAGpuBehindASwitch) {
  EXPECT_EQ(Told({.count = 2, .multicast = true}, true), std::pair(std::string(), true));
  EXPECT_EQ(Told({.count = 2, .multicast = true}, false),
            std::pair(std::string("no multicast: COCONET_MULTICAST=0"), false));
  EXPECT_EQ(Told({.count = 2, .multicast = false}, false), std::pair(std::string(), false))
      << "nothing is missed";
  const auto shared = Told({.count = 1, .multicast = true}, true);
  EXPECT_FALSE(shared.second);
  EXPECT_FALSE(absl::StrContains(shared.first, "multicast")) << shared.first;
}

/// Fails each driver call named `name` in turn. Returns how many failures left the world without
/// multicast, and how many left one allocation without it.
std::pair<int, int> FailEach(const std::string& name) {
  SetHostDevices({.count = 3, .multicast = true});
  std::pair<int, int> without;
  for (int call = 1;; ++call) {
    FailCall(call, CUDA_ERROR_UNKNOWN, name);
    std::vector<std::string> notes(3);
    std::vector<char> had(3), have(3);
    const absl::Status status = OnHost(3, {}, true, [&](Rank& rank) -> absl::Status {
      had[rank.rank()] = rank.topology().multicast;
      ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(100, true));
      have[rank.rank()] = memory->multicast() != nullptr;
      notes[rank.rank()] = rank.topology().note;
      std::memset(memory->own(), rank.rank(), 100);
      RETURN_IF_ERROR(rank.exchange().Barrier());
      return static_cast<const char*>(memory->peer(1))[99] == 1
                 ? absl::OkStatus()
                 : absl::InternalError("another's memory");
    });
    const std::string failed = FailedCall();
    FailCall(0, CUDA_SUCCESS);
    EXPECT_EQ(status, absl::OkStatus()) << name;
    ExpectNothingLeft(name);
    EXPECT_EQ(had, std::vector<char>(3, had[0])) << name;
    EXPECT_EQ(have, std::vector<char>(3, failed.empty())) << name;
    if (failed.empty() || !status.ok()) return without;
    (had[0] ? without.second : without.first) += 1;
    for (const std::string& note : notes) {
      EXPECT_THAT(
          note, AllOf(HasSubstr(had[0] ? "memory without multicast: rank " : "no multicast: rank "),
                      HasSubstr(name), HasSubstr("what a driver says")));
    }
  }
}

TEST(Multicast, EachCallThatFailsLeavesAllRanksWithout) {
  for (const char* each_rank : {"cuMemCreate", "cuMulticastAddDevice", "cuMulticastBindMem",
                                "cuMemsetD8Async", "cuMemGetAllocationGranularity"}) {
    EXPECT_EQ(FailEach(each_rank), std::pair(3, 3)) << each_rank;
  }
  for (const char* each_mapping : {"cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"})
    EXPECT_EQ(FailEach(each_mapping), std::pair(12, 12)) << each_mapping;
  EXPECT_EQ(FailEach("cuMulticastGetGranularity"), std::pair(6, 6));
  EXPECT_EQ(FailEach("cuMulticastCreate"), std::pair(1, 1));
}

TEST(Multicast, MemoryThatIsUsedByOthersIsNotTakenFromThem) {
  SetHostDevices({.count = 3, .multicast = true});
  const absl::Status status = OnHost(3, {}, true, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, rank.Allocate(100, true));
    if (rank.rank() == 2) return absl::DataLossError("bad page");
    while (rank.exchange().Barrier().ok()) continue;  // until rank 0 has left
    EXPECT_EQ(SeeHostVirtual().bindings, 3);
    std::vector<char> read(100);
    std::memcpy(read.data(), memory->peer(2), read.size());
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::DataLossError("bad page"));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace coconet
