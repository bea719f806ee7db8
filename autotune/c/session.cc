#include <utility>

#include "autotune/c/dlpack.h"
#include "autotune/c/errors.h"
#include "autotune/c/handles.h"
#include "autotune/c/options.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

absl::Status OpenSession(const JoinOptions& join, OptionsOfC& options, coconet_session** session) {
  ASSIGN_OR_RETURN(std::unique_ptr<Session> opened,
                   Session::Join(join, std::move(options.session)));
  *session = new coconet_session{std::move(opened)};
  return absl::OkStatus();
}

/// Frees the session, unless a call is in progress.
absl::Status EndSession(coconet_session* session, const absl::Status& ended) {
  if (!absl::IsFailedPrecondition(ended)) delete session;
  return ended;
}

}  // namespace
}  // namespace coconet

using namespace coconet;  // NOLINT: definitions of functions of C

int coconet_session_open(const coconet_options* options, coconet_session** session) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_session_open, session);
    ASSIGN_OR_RETURN(OptionsOfC read, ReadOptions(options));
    return OpenSession(JoinOptions{.world = read.world}, read, session);
  });
}

int coconet_session_join(const coconet_out_of_band* oob, const coconet_options* options,
                         coconet_session** session) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_session_join, session);
    RETURN_IF_NULL(coconet_session_join, oob);
    ASSIGN_OR_RETURN(const OutOfBand out_of_band, ReadOutOfBand(oob));
    ASSIGN_OR_RETURN(OptionsOfC read, ReadOptions(options));
    return OpenSession(JoinOptions{.world = read.world, .out_of_band = out_of_band}, read, session);
  });
}

int coconet_session_join_mpi(const void* comm, const coconet_options* options,
                             coconet_session** session) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_session_join_mpi, session);
    RETURN_IF_NULL(coconet_session_join_mpi, comm);
    ASSIGN_OR_RETURN(OptionsOfC read, ReadOptions(options));
    return OpenSession(JoinOptions{.world = read.world, .mpi_comm = comm}, read, session);
  });
}

int coconet_session_close(coconet_session* session) {
  return AtBorder([&]() -> absl::Status {
    if (session == nullptr) return absl::OkStatus();
    return EndSession(session, session->session->Close());
  });
}

int coconet_session_leave(coconet_session* session, const char* why) {
  return AtBorder([&]() -> absl::Status {
    if (session == nullptr) return absl::OkStatus();
    const absl::Status error = why == nullptr ? absl::OkStatus() : absl::CancelledError(why);
    return EndSession(session, session->session->Leave(error));
  });
}

int coconet_session_meet(coconet_session* session, const char* what) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_session_meet, session);
    RETURN_IF_NULL(coconet_session_meet, what);
    return session->session->Meet(what);
  });
}

int coconet_session_rank(const coconet_session* session) {
  return session == nullptr ? -1 : session->session->rank();
}
int coconet_session_ranks(const coconet_session* session) {
  return session == nullptr ? -1 : session->session->world();
}
int coconet_session_stage(const coconet_session* session) {
  return session == nullptr ? -1 : session->session->stage();
}
int coconet_session_stages(const coconet_session* session) {
  return session == nullptr ? -1 : session->session->stages();
}
void* coconet_session_stream(const coconet_session* session) {
  return session == nullptr ? nullptr : session->session->stream();
}

int coconet_allocate(coconet_session* session, DLDataType dtype, int ndim, const int64_t* shape,
                     DLManagedTensor** tensor) {
  return AtBorder([&]() -> absl::Status {
    RETURN_IF_NULL(coconet_allocate, session);
    RETURN_IF_NULL(coconet_allocate, tensor);
    DLTensor wanted = {};
    wanted.device.device_type = kDLCPU;
    wanted.ndim = ndim;
    wanted.dtype = dtype;
    wanted.shape = const_cast<int64_t*>(shape);
    const ForeignTensor read = FromDlpack(&wanted);
    RETURN_IF_ERROR(session->session->Agree(WithContext(read.error, "coconet_allocate")));
    ASSIGN_OR_RETURN(const DeviceBuffer buffer,
                     session->session->Allocate(*read.dtype, ElementsOf(read.shape)));
    *tensor = ToDlpack(buffer, dtype, read.shape, {});
    return absl::OkStatus();
  });
}
