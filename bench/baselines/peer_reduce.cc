#include "bench/baselines/peer_reduce.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace coconet::bench {

absl::StatusOr<std::unique_ptr<PeerReduce>> PeerReduce::Open(const std::string& path, int rank,
                                                             int size, const std::string& name) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays until the process ends
  if (handle == nullptr) return absl::NotFoundError(absl::StrCat("--peer: ", dlerror()));
  const auto function = [&](const char* symbol, auto& to) {
    using Pointer = std::remove_reference_t<decltype(to)>;
    to = reinterpret_cast<Pointer>(dlsym(handle, symbol));
    return to != nullptr;
  };
  std::unique_ptr<PeerReduce> peer(new PeerReduce);
  peer->path_ = path;
  int (*init)(int, int, const char*) = nullptr;
  void (*destroy)() = nullptr;
  if (!function("coconet_peer_init", init) || !function("coconet_peer_all_reduce", peer->reduce_) ||
      !function("coconet_peer_destroy", destroy)) {
    return absl::NotFoundError(
        absl::StrCat("--peer: ", path,
                     ": want coconet_peer_init, coconet_peer_all_reduce and coconet_peer_destroy"));
  }
  const int error = init(rank, size, name.c_str());
  if (error != 0)
    return absl::InternalError(absl::StrCat("--peer: ", path, ": coconet_peer_init: ", error));
  peer->destroy_ = destroy;
  return peer;
}

PeerReduce::~PeerReduce() {
  if (destroy_ != nullptr) destroy_();
}

absl::Status PeerReduce::Run(float* data, int64_t n) {
  const int error = reduce_(data, static_cast<long>(n));  // NOLINT(runtime/int): C
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("--peer: ", path_, ": coconet_peer_all_reduce: ", error));
}

}  // namespace coconet::bench
