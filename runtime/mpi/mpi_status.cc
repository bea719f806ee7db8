#include "runtime/mpi/mpi_status.h"

#include <mpi.h>

namespace coconet {

absl::Status ToStatus(int code, absl::string_view call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return absl::InternalError(
      absl::StrCat(call, ": ", absl::string_view(text, length), " (code ", code, ")"));
}

}  // namespace coconet
