#include "runtime/cuda/memory/freeing_exchange.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {
namespace {

constexpr int kRanks = 3;

struct Letters {
  std::vector<std::string> letters = std::vector<std::string>(kRanks);
  std::barrier<> barrier{kRanks};
};

class BarrierExchange final : public Exchange {
 public:
  BarrierExchange(int rank, Letters& letters) : rank_(rank), letters_(letters) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    letters_.letters[rank_] = std::string(mine);
    letters_.barrier.arrive_and_wait();
    const std::vector<std::string> all = letters_.letters;
    letters_.barrier.arrive_and_wait();
    return all;
  }

 private:
  int rank_;
  Letters& letters_;
};

/// Runs `body` on threads whose ranks share one GPU.
void OnOneGpu(const std::function<void(int rank, Device& device, Exchange& exchange)>& body) {
  SetHostDevices({.count = 1});
  const absl::StatusOr<std::shared_ptr<Device>> device = Device::Open(HostDriver(), 0);
  ASSERT_EQ(device.status(), absl::OkStatus());
  Letters letters;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      FreeingExchange exchange(std::make_unique<BarrierExchange>(rank, letters), *device);
      body(rank, **device, exchange);
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(FreeingExchange, NoRankGoesOnBeforeAllHaveFreed) {
  std::atomic<int> freed = 0;
  OnOneGpu([&](int rank, Device& device, Exchange& exchange) {
    for (int round = 1; round <= 3; ++round) {
      if (rank == round % kRanks) {
        device.Retire([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          ++freed;
        });
      }
      EXPECT_EQ(exchange.AllGather("").status(), absl::OkStatus());
      EXPECT_EQ(freed, round) << "rank " << rank;
      EXPECT_EQ(exchange.Barrier(), absl::OkStatus());  // before the next round retires
    }
  });
}

TEST(FreeingExchange, HandsLettersAroundWhole) {
  OnOneGpu([&](int rank, Device& device, Exchange& exchange) {
    for (const bool retires : {false, true}) {
      if (retires && rank == 1) device.Retire([] {});
      const absl::StatusOr<std::vector<std::string>> all =
          exchange.AllGather(std::string(rank, 'a' + static_cast<char>(rank)));
      ASSERT_EQ(all.status(), absl::OkStatus());
      EXPECT_EQ(*all, (std::vector<std::string>{"", "b", "cc"}));
    }
  });
}

}  // namespace
}  // namespace coconet
