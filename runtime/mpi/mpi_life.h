#ifndef COCONET_RUNTIME_MPI_MPI_LIFE_H_
#define COCONET_RUNTIME_MPI_MPI_LIFE_H_

#include "absl/status/status.h"

namespace coconet {

/// Initialises MPI where nobody has. Then it stays up between worlds, since it can be initialised
/// once a process, and is finalised when the process exits, provided that all ranks get there
/// within `timeout_s`.
absl::Status BeginMpi(double timeout_s);

/// A world has failed, so that maybe not all ranks get there: then this process waits for them for
/// `timeout_s` at most.
void HastenEnd(double timeout_s);

/// Collective: waits until all processes are here. DeadlineExceeded when one does not come: then
/// what blocks in MPI until all have come, like making communicators, would block for ever.
absl::Status MeetAll(double timeout_s);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_LIFE_H_
