#ifndef COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_
#define COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "runtime/rank.h"

namespace coconet {

/// A communicator on host memory that reports the name of the library that plans use.
class NamedCommunicator final : public Communicator {
 public:
  NamedCommunicator(std::string name, std::shared_ptr<Communicator> host)
      : name_(std::move(name)), host_(std::move(host)) {}
  absl::string_view name() const override { return name_; }
  absl::Status Run(const CollectiveStep& step, const void* in, void* out) override {
    return host_->Run(step, in, out);
  }

 private:
  std::string name_;
  std::shared_ptr<Communicator> host_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_
