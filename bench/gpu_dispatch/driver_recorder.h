#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet::bench {

/// A call of the driver that a dispatch has made. Polls of one stream or event are one call.
struct DriverCall {
  const char* name;  // "cuStreamQuery"
  /// Makes it on a driver with the same arguments, but for the places of results; polls until what
  /// is asked for is done.
  std::function<CUresult(const DriverApi& driver)> again;
};

/// The calls by name, equal neighbours as one: "cuCtxGetCurrent, 2 x cuEventRecord".
std::string Words(absl::Span<const DriverCall> calls);

/// A driver that passes all calls to `driver`, and notes them while Record runs. One a process:
/// later calls must name the same driver, which outlives the process's use of it.
const DriverApi& Recorded(const DriverApi& driver);

/// The calling thread's calls of the recorded driver while `body` runs. Unimplemented, with the
/// name, for a call that Repeat does not know.
absl::StatusOr<std::vector<DriverCall>> Record(const std::function<absl::Status()>& body);

/// Makes the calls again, on `driver`, with the same arguments.
absl::Status Repeat(const DriverApi& driver, absl::Span<const DriverCall> calls);

}  // namespace coconet::bench
