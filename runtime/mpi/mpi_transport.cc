#include "runtime/mpi/mpi_transport.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "runtime/control/wire_exchange.h"
#include "runtime/mpi/mpi_status.h"
#include "runtime/mpi/mpi_wire.h"
#include "runtime/processes/collectives/message_traffic.h"

namespace coconet {
namespace {

constexpr int kExchangeTag = 0, kNoticeTag = 1;

absl::Status DuplicateInto(MPI_Comm comm, MPI_Comm& copy) {
  RETURN_IF_MPI(Comm_dup, comm, &copy);
  RETURN_IF_MPI(Comm_set_errhandler, copy, MPI_ERRORS_RETURN);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MpiTransport::Over(MPI_Comm comm) {
  std::unique_ptr<MpiTransport> transport(new MpiTransport);
  RETURN_IF_ERROR(transport->Duplicate(comm));
  return transport;
}

absl::Status MpiTransport::Duplicate(MPI_Comm comm) {
  RETURN_IF_ERROR(DuplicateInto(comm, exchange_));
  RETURN_IF_ERROR(DuplicateInto(comm, traffic_));
  RETURN_IF_MPI(Comm_rank, comm, &rank_);
  RETURN_IF_MPI(Comm_size, comm, &size_);
  ASSIGN_OR_RETURN(meeting_, Region::Map(Board::Bytes(size_), -1));
  return absl::OkStatus();
}

/// "mpi Open MPI v4.1.4"
std::string MpiTransport::library() const {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) length = 0;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(text, length), absl::ByAnyChar(",\n"));
  return absl::StrCat("mpi ", parts[0]);
}

LibraryThreads MpiTransport::threads() const {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Query_thread(&provided) != MPI_SUCCESS) return LibraryThreads::kFirst;
  if (provided == MPI_THREAD_MULTIPLE) return LibraryThreads::kAny;
  return provided == MPI_THREAD_SERIALIZED ? LibraryThreads::kOneAtATime : LibraryThreads::kFirst;
}

std::unique_ptr<Exchange> MpiTransport::Meet(const WaitTerms& terms) {
  return MakeExchange(Board(meeting_->base(), size_), {.first = rank_, .size = 1}, terms);
}

std::unique_ptr<Exchange> MpiTransport::MakeExchange(const Board& board, const Members& node,
                                                     const WaitTerms& terms) const {
  return std::make_unique<WireExchange>(std::make_shared<MpiWire>(exchange_), kExchangeTag, rank_,
                                        size_, board, node, terms);
}

/// The lowest rank on the machine.
absl::StatusOr<std::string> MpiTransport::Machine() {
  MPI_Comm machine;
  RETURN_IF_MPI(Comm_split_type, traffic_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
  int lowest = rank_;
  const absl::Status status = ToStatus(MPI_Bcast(&lowest, 1, MPI_INT, 0, machine), "MPI_Bcast");
  MPI_Comm_free(&machine);
  RETURN_IF_ERROR(status);
  return absl::StrCat(lowest);
}

absl::StatusOr<Transport::Settled> MpiTransport::Settle(std::unique_ptr<Exchange> /*met*/,
                                                        const Site& site) {
  timeout_s_ = site.timeout_s;
  const Members node = BoardGroup(site.mesh);
  ASSIGN_OR_RETURN(notices_, WireNotices::Begin(std::make_shared<MpiWire>(exchange_), kNoticeTag,
                                                rank_, site.board, node));
  board_ = site.board.With(notices_);
  return Settled{.exchange = MakeExchange(*board_, node, site.terms), .board = *board_};
}

std::unique_ptr<PeerTraffic> MpiTransport::MakeTraffic(int lane, Group group, int most) {
  const int tag = lane * kGroups + static_cast<int>(group);
  return std::make_unique<MessageTraffic>(std::make_shared<MpiWire>(traffic_), tag, rank_, most,
                                          timeout_s_, *board_);
}

void MpiTransport::End(bool failed) {
  if (failed) return;
  notices_->Close();
  MPI_Comm_free(&traffic_);
  MPI_Comm_free(&exchange_);
}

}  // namespace coconet
