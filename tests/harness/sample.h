#pragma once

#include <cstdint>
#include <random>

#include "absl/strings/string_view.h"

namespace coconet {

/// --one_in: a test takes one in so many things; `usual` if the flag is not given.
uint64_t OneInFlag(uint64_t usual);

/// Takes every so-many-th of the things that it is asked about, from one on that is drawn.
class OneIn {
 public:
  OneIn(uint64_t one_in, std::mt19937_64& random) : one_in_(one_in), next_(random() % one_in) {}
  bool Takes() { return next_++ % one_in_ == 0; }

 private:
  uint64_t one_in_;
  uint64_t next_;
};

/// Whether the thing of that name is taken, one in so many; which ones they are follows from
/// `seed`.
bool TakesName(uint64_t one_in, uint64_t seed, absl::string_view name);

}  // namespace coconet
