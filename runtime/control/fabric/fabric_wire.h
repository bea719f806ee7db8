#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/control/wire.h"

namespace coconet {

/// Messages over TCP by libfabric: a reliable endpoint with tagged messages ("tcp;ofi_rxm"), whose
/// progress is made in Test.
class FabricWire final : public Wire {
 public:
  /// Opens an endpoint on the first network that is neither loopback nor link-local (FI_TCP_IFACE
  /// chooses another), or on loopback, where there is no other.
  static absl::StatusOr<std::unique_ptr<FabricWire>> Open();
  ~FabricWire() override;

  /// Where peers find this rank.
  const std::string& address() const { return address_; }
  /// By rank; before the first message. `rank`: this one's.
  absl::Status Connect(int rank, const std::vector<std::string>& addresses);

  absl::string_view name() const override { return "tcp"; }
  absl::Status Send(int peer, int tag, const char* data, int64_t bytes, Ticket& ticket) override;
  absl::Status Receive(int peer, int tag, char* data, int64_t bytes, Ticket& ticket) override;
  absl::Status Test(Ticket& ticket, bool& done) override;

 private:
  struct Message;

  FabricWire() = default;
  absl::Status OpenEndpoint();
  absl::Status Begin(std::unique_ptr<Message> message, Ticket& ticket);
  /// Hands a message to the endpoint; false where it cannot take it yet.
  absl::StatusOr<bool> Post(Message& message);
  absl::Status Progress();

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* peers_ = nullptr;
  fid_cq* completions_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  std::string address_;
  std::vector<fi_addr_t> addresses_;  // by rank
  int rank_ = 0;
  std::mutex mutex_;  // of all that follows, and of the endpoint
  /// By peer, in their order: those that the endpoint could not take yet.
  std::vector<std::deque<Message*>> waiting_;
};

}  // namespace coconet
