#ifndef COCONET_AUTOTUNE_STORE_PROCESS_IDENTITY_H_
#define COCONET_AUTOTUNE_STORE_PROCESS_IDENTITY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// Names this process for others: boot, pid namespace, pid and start time, so that a pid that was
/// given out again is another process.
std::string OwnProcess();

enum class Life : uint8_t {
  kAlive,
  kDead,
  kUnknown,  // of another boot or pid namespace (another machine, a container): cannot be seen from
             // here
};
Life LifeOf(absl::string_view process);

/// A digest that tells this machine from others, and nothing else about it.
std::string MachineDigest();

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_PROCESS_IDENTITY_H_
