#ifndef COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_
#define COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "runtime/rank.h"

namespace coconet {

/// A communicator on host memory that reports the name of the library that plans use.
class NamedCommunicator final : public Communicator {
 public:
  NamedCommunicator(std::string name, std::shared_ptr<Communicator> host)
      : name_(std::move(name)), host_(std::move(host)) {}

  absl::string_view name() const override { return name_; }
  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype,
                         ReduceKind kind) override {
    return host_->AllReduce(in, out, count, dtype, kind);
  }
  absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                             int64_t stride) override {
    return host_->ReduceScatter(in, out, count, dtype, kind, stride);
  }
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype,
                         int64_t stride) override {
    return host_->AllGather(in, out, count, dtype, stride);
  }
  absl::Status Broadcast(const void* in, void* out, int64_t count, DType dtype, int root) override {
    return host_->Broadcast(in, out, count, dtype, root);
  }
  absl::Status Reduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                      int root) override {
    return host_->Reduce(in, out, count, dtype, kind, root);
  }
  absl::Status AllToAll(const void* in, void* out, int64_t count, DType dtype) override {
    return host_->AllToAll(in, out, count, dtype);
  }
  absl::Status Send(const void* in, void* out, int64_t count, DType dtype, int shift) override {
    return host_->Send(in, out, count, dtype, shift);
  }

 private:
  std::string name_;
  std::shared_ptr<Communicator> host_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_NAMED_COMMUNICATOR_H_
