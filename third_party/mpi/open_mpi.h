#pragma once

#include "absl/status/status.h"
#include "third_party/dynamic/dynamic_library.h"

namespace coconet {

extern DynamicLibrary open_mpi_library;

/// Opens Open MPI: the one that the process uses already; else libmpi.so.40 where the linker looks,
/// or in $MPI_HOME/lib. Functions of <mpi.h> may be called once it has returned OK. Unavailable if
/// there is none, or if the process uses another MPI. Thread-safe; opened once.
absl::Status OpenMpi();

}  // namespace coconet
