#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// Identifies this process for others: boot, pid namespace, pid, and start time, which tells it
/// from an earlier process with its pid.
std::string OwnProcess();

enum class Life : uint8_t {
  kAlive,
  kDead,
  kUnknown,  // not visible from here: of another boot or pid namespace, such as another machine's
             // or a container's
};
Life LifeOf(absl::string_view process);

/// A digest that differs between machines and reveals nothing else about them.
std::string MachineDigest();

}  // namespace coconet
