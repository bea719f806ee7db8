#include "runtime/control/fabric/fabric_wire.h"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr uint32_t kVersion = FI_VERSION(1, 9);

/// OK for codes from 0 on; else Internal: "fi_tsend: <libfabric's words>".
absl::Status ToStatus(int64_t code, absl::string_view call) {
  if (code >= 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", fi_strerror(static_cast<int>(-code))));
}

#define RETURN_IF_FABRIC(fn, ...) RETURN_IF_ERROR(ToStatus(fi_##fn(__VA_ARGS__), "fi_" #fn))

/// Whether other machines may reach a rank there.
bool IsReachable(const fi_info& info) {
  if (info.src_addr == nullptr) return false;
  if (info.addr_format == FI_SOCKADDR_IN) {
    const uint32_t host = ntohl(static_cast<const sockaddr_in*>(info.src_addr)->sin_addr.s_addr);
    return host >> 24 != 127;
  }
  if (info.addr_format != FI_SOCKADDR_IN6) return false;
  const in6_addr& host = static_cast<const sockaddr_in6*>(info.src_addr)->sin6_addr;
  return !IN6_IS_ADDR_LINKLOCAL(&host) && !IN6_IS_ADDR_LOOPBACK(&host);
}

}  // namespace

struct FabricWire::Message {
  fi_context2 context;  // first: completions name it
  int peer;
  uint64_t tag;  // the sender's rank and the caller's tag
  const char* sent;
  char* received;
  int64_t bytes;
  bool done = false;
  absl::Status status = {};
};

absl::StatusOr<std::unique_ptr<FabricWire>> FabricWire::Open() {
  RETURN_IF_ERROR(OpenLibfabric());
  std::unique_ptr<FabricWire> wire(new FabricWire);
  RETURN_IF_ERROR(WithContext(wire->OpenEndpoint(), "libfabric"));
  return wire;
}

absl::Status FabricWire::OpenEndpoint() {
  fi_info* hints = fi_dupinfo(nullptr);
  hints->caps = FI_TAGGED;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
  const int found = fi_getinfo(kVersion, nullptr, nullptr, 0, hints, &info_);
  fi_freeinfo(hints);
  RETURN_IF_ERROR(ToStatus(found, "fi_getinfo of tcp;ofi_rxm"));
  fi_info* used = info_;
  while (used != nullptr && !IsReachable(*used)) used = used->next;
  if (used == nullptr) used = info_;

  RETURN_IF_ERROR(ToStatus(fi_fabric(used->fabric_attr, &fabric_, nullptr), "fi_fabric"));
  RETURN_IF_FABRIC(domain, fabric_, used, &domain_, nullptr);
  fi_av_attr peers = {};
  peers.type = FI_AV_TABLE;
  RETURN_IF_FABRIC(av_open, domain_, &peers, &peers_, nullptr);
  fi_cq_attr completions = {};
  completions.format = FI_CQ_FORMAT_CONTEXT;
  completions.wait_obj = FI_WAIT_NONE;
  RETURN_IF_FABRIC(cq_open, domain_, &completions, &completions_, nullptr);
  RETURN_IF_FABRIC(endpoint, domain_, used, &endpoint_, nullptr);
  RETURN_IF_FABRIC(ep_bind, endpoint_, &peers_->fid, 0);
  RETURN_IF_FABRIC(ep_bind, endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV);
  RETURN_IF_FABRIC(enable, endpoint_);
  std::array<char, 256> address;
  size_t size = address.size();
  RETURN_IF_FABRIC(getname, &endpoint_->fid, address.data(), &size);
  address_.assign(address.data(), size);
  return absl::OkStatus();
}

FabricWire::~FabricWire() {
  const auto close = [](auto* object) {
    if (object != nullptr) fi_close(&object->fid);
  };
  close(endpoint_);
  close(completions_);
  close(peers_);
  close(domain_);
  close(fabric_);
  if (info_ != nullptr) fi_freeinfo(info_);
}

absl::Status FabricWire::Connect(int rank, const std::vector<std::string>& addresses) {
  rank_ = rank;
  waiting_.resize(addresses.size());
  for (size_t peer = 0; peer < addresses.size(); ++peer) {
    fi_addr_t found = FI_ADDR_UNSPEC;
    if (fi_av_insert(peers_, addresses[peer].data(), 1, &found, 0, nullptr) != 1) {
      return absl::UnavailableError(
          absl::StrCat("libfabric: the address of rank ", peer, " makes no sense here"));
    }
    addresses_.push_back(found);
  }
  return absl::OkStatus();
}

absl::Status FabricWire::Send(int peer, int tag, const char* data, int64_t bytes, Ticket& ticket) {
  return Begin(
      std::make_unique<Message>(Message{.context = {},
                                        .peer = peer,
                                        .tag = uint64_t(tag) << 32 | static_cast<uint32_t>(rank_),
                                        .sent = data,
                                        .received = nullptr,
                                        .bytes = bytes}),
      ticket);
}

absl::Status FabricWire::Receive(int peer, int tag, char* data, int64_t bytes, Ticket& ticket) {
  return Begin(
      std::make_unique<Message>(Message{.context = {},
                                        .peer = peer,
                                        .tag = uint64_t(tag) << 32 | static_cast<uint32_t>(peer),
                                        .sent = nullptr,
                                        .received = data,
                                        .bytes = bytes}),
      ticket);
}

absl::Status FabricWire::Begin(std::unique_ptr<Message> message, Ticket& ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Message*>& before = waiting_[message->peer];
  bool posted = false;
  if (before.empty()) {
    ASSIGN_OR_RETURN(posted, Post(*message));
  }
  if (!posted) before.push_back(message.get());
  ticket.handle = reinterpret_cast<uintptr_t>(message.release());
  return absl::OkStatus();
}

absl::StatusOr<bool> FabricWire::Post(Message& message) {
  const int64_t code = message.sent != nullptr
                           ? fi_tsend(endpoint_, message.sent, message.bytes, nullptr,
                                      addresses_[message.peer], message.tag, &message.context)
                           : fi_trecv(endpoint_, message.received, message.bytes, nullptr,
                                      addresses_[message.peer], message.tag, 0, &message.context);
  if (code == -FI_EAGAIN) return false;
  RETURN_IF_ERROR(ToStatus(code, message.sent != nullptr ? "fi_tsend" : "fi_trecv"));
  return true;
}

absl::Status FabricWire::Progress() {
  std::array<fi_cq_entry, 16> entries;
  const int64_t count = fi_cq_read(completions_, entries.data(), entries.size());
  for (int64_t i = 0; i < count; ++i) static_cast<Message*>(entries[i].op_context)->done = true;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry error = {};
    if (fi_cq_readerr(completions_, &error, 0) == 1 && error.op_context != nullptr) {
      auto& message = *static_cast<Message*>(error.op_context);
      message.done = true;
      message.status = absl::UnavailableError(
          absl::StrCat("message with rank ", message.peer, ": ", fi_strerror(error.err)));
    }
  } else if (count != -FI_EAGAIN) {
    RETURN_IF_ERROR(ToStatus(count, "fi_cq_read"));
  }
  for (std::deque<Message*>& messages : waiting_) {
    while (!messages.empty()) {
      ASSIGN_OR_RETURN(const bool posted, Post(*messages.front()));
      if (!posted) break;
      messages.pop_front();
    }
  }
  return absl::OkStatus();
}

absl::Status FabricWire::Test(Ticket& ticket, bool& done) {
  done = true;
  if (ticket.handle == 0) return absl::OkStatus();
  auto* message = reinterpret_cast<Message*>(ticket.handle);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!message->done) RETURN_IF_ERROR(Progress());
  done = message->done;
  if (!done) return absl::OkStatus();
  ticket.handle = 0;
  return std::unique_ptr<Message>(message)->status;
}

}  // namespace coconet
