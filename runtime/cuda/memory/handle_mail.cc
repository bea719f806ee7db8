#include "runtime/cuda/memory/handle_mail.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

/// The message that a file is attached to.
struct Note {
  uint64_t secret;  // the receiver's
  int64_t rank;     // the sender's
};

/// The content of an address.
struct Box {
  uint64_t secret;
  int64_t sends, size;
  char name[sizeof(sockaddr_un::sun_path)];
};

absl::Status Failed(absl::string_view call, int error) {
  return absl::UnavailableError(
      absl::StrCat("passing files between processes: ", call, ": ", strerror(error)));
}

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

/// The file attached to a message, if any; the control buffer has room for one.
Descriptor FileOf(msghdr& message) {
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
    return Descriptor();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return Descriptor(fd);
}

}  // namespace

absl::StatusOr<HandleMail> HandleMail::Open() {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Failed("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address.sun_family;  // no name: the system assigns one
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
    return Failed("bind", errno);
  size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return Failed("getsockname", errno);
  std::random_device random;
  const uint64_t secret = uint64_t{random()} << 32 | random();
  return HandleMail(std::move(socket),
                    std::string(address.sun_path, size - offsetof(sockaddr_un, sun_path)), secret);
}

std::string HandleMail::Address(bool sends) const {
  Box box{
      .secret = secret_, .sends = sends, .size = static_cast<int64_t>(name_.size()), .name = {}};
  std::memcpy(box.name, name_.data(), name_.size());
  return {reinterpret_cast<const char*>(&box), sizeof box};
}

absl::StatusOr<bool> HandleMail::Send(const std::string& address, int rank,
                                      const Descriptor& file) const {
  Box box;
  std::memcpy(&box, address.data(), sizeof box);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, box.name, sizeof box.name);
  Note note{box.secret, rank};
  iovec data{&note, sizeof note};
  Control control{};
  control.header = {
      .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  const int fd = file.get();
  std::memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
  const msghdr message{.msg_name = &to,
                       .msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                                             static_cast<size_t>(box.size)),
                       .msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control,
                       .msg_flags = 0};
  if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return false;
  return Failed("sendmsg", errno);
}

int HandleMail::Receive(const Members& group, std::vector<Descriptor>& files) const {
  for (int count = 0;;) {
    Note note{};
    iovec data{&note, sizeof note};
    Control control{};
    msghdr message{.msg_name = nullptr,
                   .msg_namelen = 0,
                   .msg_iov = &data,
                   .msg_iovlen = 1,
                   .msg_control = &control,
                   .msg_controllen = sizeof control,
                   .msg_flags = 0};
    const ssize_t bytes = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return count;
    Descriptor file = FileOf(message);
    const bool from_group = note.rank >= group.first &&
                            note.rank < static_cast<int64_t>(files.size()) &&
                            (note.rank - group.first) % group.stride == 0 &&
                            (note.rank - group.first) / group.stride < group.size;
    if (bytes != sizeof note || note.secret != secret_ || !file || !from_group || files[note.rank])
      continue;
    files[note.rank] = std::move(file);
    ++count;
  }
}

absl::StatusOr<std::vector<Descriptor>> HandleMail::Swap(const Members& group, int rank,
                                                         absl::Span<const std::string> addresses,
                                                         const Descriptor& mine,
                                                         double timeout_s) const {
  std::vector<Descriptor> files(addresses.size());
  if (absl::c_any_of(addresses,
                     [](const std::string& address) { return address.size() != sizeof(Box); }))
    return files;
  std::vector<int> to;
  int missing = 0;
  for (int i = 0; i < group.size; ++i) {
    const int peer = group.Rank(i);
    if (peer == rank) continue;
    Box box;
    std::memcpy(&box, addresses[peer].data(), sizeof box);
    missing += box.sends != 0 ? 1 : 0;
    if (mine) to.push_back(peer);
  }
  absl::Status failed;
  const auto done = [&] {
    // In every round, because peers may be waiting for room in this rank's queue.
    missing -= Receive(group, files);
    while (!to.empty() && failed.ok()) {
      const absl::StatusOr<bool> sent = Send(addresses[to.back()], rank, mine);
      failed = sent.status();
      if (!sent.ok() || !*sent) break;
      to.pop_back();
    }
    return !failed.ok() || (missing == 0 && to.empty());
  };
  const WaitTerms terms{.spins = 10, .timeout_ns = static_cast<int64_t>(timeout_s * 1e9)};
  if (WaitUntil(terms, done, [] { return false; }) == WaitEnd::kReady) {
    RETURN_IF_ERROR(failed);
    return files;
  }
  return absl::UnavailableError(absl::StrCat("passing files between processes: waited ", timeout_s,
                                             " s for ", missing, " of them and for room for ",
                                             to.size()));
}

}  // namespace coconet
