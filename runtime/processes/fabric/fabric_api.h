#pragma once

#include <rdma/fabric.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// libfabric's functions that are not in tables of its objects.
struct FabricApi {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// Opens libfabric, once a process. Unavailable, naming the Debian package, where there is none.
/// Thread-safe.
absl::StatusOr<const FabricApi*> OpenFabric();

/// OK for codes from 0 on; else Internal: "fi_tsend: <libfabric's words>".
absl::Status FabricStatus(const FabricApi& api, int64_t code, absl::string_view call);

}  // namespace coconet
