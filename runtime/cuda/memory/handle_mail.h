#ifndef COCONET_RUNTIME_CUDA_MEMORY_HANDLE_MAIL_H_
#define COCONET_RUNTIME_CUDA_MEMORY_HANDLE_MAIL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/mesh.h"

namespace coconet {

/// An open file, closed with this.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Open files from process to process of one machine, through a socket of each without a name in
/// any file system. (Those of the driver cannot be opened as /proc/<pid>/fd/<fd>, as memory is that
/// is shared otherwise: that would be another opening of the device.) Who writes to it without the
/// number that its address tells is not heard.
class HandleMail {
 public:
  static absl::StatusOr<HandleMail> Open();
  /// For peers; `sends`: whether they are to get a file.
  std::string Address(bool sends) const;
  /// Sends `mine`, if open, to all others of `group`, and waits for the files of those of them that
  /// send one, for at most `timeout_s`. By rank. Unavailable where one does not come. None comes
  /// where a rank has no socket, and "" for its address: it says why.
  absl::StatusOr<std::vector<File>> Swap(const Members& group, int rank,
                                         absl::Span<const std::string> addresses, const File& mine,
                                         double timeout_s) const;

 private:
  HandleMail(File socket, std::string name, uint64_t secret)
      : socket_(std::move(socket)), name_(std::move(name)), secret_(secret) {}
  /// Whether it went; false: not now.
  absl::StatusOr<bool> Send(const std::string& address, int rank, const File& file) const;
  /// Takes what has come, until nothing more has. Returns how many files.
  int Receive(const Members& group, std::vector<File>& files) const;

  File socket_;
  std::string name_;
  uint64_t secret_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_HANDLE_MAIL_H_
