#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace coconet::bench {

/// A peer: another library's AllReduce within a node, in a shared object with three C functions:
///   int coconet_peer_init(int rank, int size, const char* name);   name: the same on all ranks, of
///                                                                  this run alone
///   int coconet_peer_all_reduce(float* data, long n);              sums in place
///   void coconet_peer_destroy(void);
/// 0 means success. All ranks call each of them, from one thread.
class PeerReduce {
 public:
  /// Collective of the shared object's ranks. NotFound if the file or a function is not there,
  /// Internal if it fails.
  static absl::StatusOr<std::unique_ptr<PeerReduce>> Open(const std::string& path, int rank,
                                                          int size, const std::string& name);
  PeerReduce(const PeerReduce&) = delete;
  ~PeerReduce();

  absl::Status Run(float* data, int64_t n);

 private:
  PeerReduce() = default;
  std::string path_;
  int (*reduce_)(float*, long) = nullptr;  // NOLINT(runtime/int): C
  void (*destroy_)() = nullptr;            // once initialised
};

}  // namespace coconet::bench
