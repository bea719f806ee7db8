#pragma once

#include "absl/status/statusor.h"
#include "autotune/c/coconet.h"
#include "autotune/session/session.h"
#include "runtime/join.h"

namespace coconet {

/// What coconet_options means; NULL: the default of each.
struct OptionsOfC {
  WorldOptions world;
  SessionOptions session;
};
absl::StatusOr<OptionsOfC> ReadOptions(const coconet_options* options);

absl::StatusOr<OutOfBand> ReadOutOfBand(const coconet_out_of_band* oob);

}  // namespace coconet
