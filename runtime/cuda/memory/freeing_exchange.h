#ifndef COCONET_RUNTIME_CUDA_MEMORY_FREEING_EXCHANGE_H_
#define COCONET_RUNTIME_CUDA_MEMORY_FREEING_EXCHANGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// An exchange of a rank that is a thread. When all have come to it, each has enqueued all steps
/// that stand before it in the program, so what runs on the GPUs ends by itself: then memory goes
/// back to the driver, which waits for that (Device::Retire). The rest of it does when the rank is
/// no more, of which its peers have heard before.
class FreeingExchange final : public Exchange {
 public:
  FreeingExchange(std::unique_ptr<Exchange> exchange, std::shared_ptr<Device> device)
      : exchange_(std::move(exchange)), device_(std::move(device)) {
    device_->DeferFrees();
  }
  ~FreeingExchange() override { device_->FreeRetired(); }
  FreeingExchange(const FreeingExchange&) = delete;
  FreeingExchange& operator=(const FreeingExchange&) = delete;

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    absl::StatusOr<std::vector<std::string>> all = exchange_->AllGather(mine);
    if (all.ok()) device_->FreeRetired();
    return all;
  }

 private:
  std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<Device> device_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_FREEING_EXCHANGE_H_
