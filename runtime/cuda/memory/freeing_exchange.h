#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// The exchange of a rank that is a thread; also frees retired memory (Device::Retire). When all
/// ranks have reached an exchange, each has enqueued all earlier steps of the program, so all
/// kernels on the GPUs end by themselves, and the driver can wait for them. No rank returns before
/// all have freed: it could launch a kernel that waits for a rank which the driver keeps waiting
/// for that kernel. What is retired later is freed by the destructor, when the peers know that this
/// rank is done.
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
    ASSIGN_OR_RETURN(std::vector<std::string> all,
                     exchange_->AllGather(absl::StrCat(device_->HasRetired() ? "1" : "0", mine)));
    bool any_retired = false;
    for (std::string& letter : all) {
      any_retired |= letter[0] == '1';
      letter.erase(0, 1);
    }
    if (any_retired) {
      device_->FreeRetired();
      RETURN_IF_ERROR(exchange_->Barrier());
    }
    return all;
  }

 private:
  std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<Device> device_;
};

}  // namespace coconet
