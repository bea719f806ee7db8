#ifndef COCONET_RUNTIME_MPI_MPI_LIFE_H_
#define COCONET_RUNTIME_MPI_MPI_LIFE_H_

#include "absl/status/status.h"

namespace coconet {

/// Initialises MPI unless it already has been. MPI can be initialised once per process,
/// so it stays up between worlds; it is finalised at exit, provided that all ranks get
/// there within `timeout_s`.
absl::Status BeginMpi(double timeout_s);

/// Shortens that timeout after a world has failed, when some ranks may never get there.
void HastenEnd(double timeout_s);

/// Collective: waits until all processes are here; DeadlineExceeded if one does not come. Called
/// before MPI functions that block without a deadline, such as those that make communicators.
absl::Status MeetAll(double timeout_s);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_LIFE_H_
