#ifndef COCONET_RUNTIME_CUDA_MEMORY_FREEING_EXCHANGE_H_
#define COCONET_RUNTIME_CUDA_MEMORY_FREEING_EXCHANGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// The exchange of a rank that is a thread; also frees retired memory. When all ranks have reached
/// an exchange, each has enqueued all earlier steps of the program, so all kernels on the GPUs end
/// by themselves, and the driver can wait for them (Device::Retire). The rest is freed by the
/// destructor, when the peers know that this rank is done.
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
