#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"

namespace coconet {

/// OK for MPI_SUCCESS; else Internal: "MPI_Allreduce: <MPI's error string>".
absl::Status ToStatus(int code, absl::string_view call);

#define RETURN_IF_MPI(fn, ...) \
  RETURN_IF_ERROR(::coconet::ToStatus(MPI_##fn(__VA_ARGS__), "MPI_" #fn))

}  // namespace coconet
