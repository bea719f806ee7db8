#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/rank.h"

namespace coconet {

/// An exchange over a transport that gathers bytes only if their sizes are known: first come frames
/// of one size, each with a message's size and first bytes, and then, unless all messages fit in
/// their frames, which most do, the messages.
class FramedExchange : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) final;

 protected:
  explicit FramedExchange(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }

 private:
  /// Collective. The bytes of all ranks, by rank: of rank r, sizes[r] bytes, which all ranks know.
  virtual absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine,
                                                          const std::vector<int64_t>& sizes) = 0;

  int ranks_;
};

}  // namespace coconet
