#include "runtime/mpi/mpi_farewells.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr int kTag = 1;
constexpr size_t kMostBytes = 1000;  // goes out at once, and fits a board

}  // namespace

void MpiFarewells::Tell(const absl::Status& why) const {
  // Kept until the process ends: whether, and when, the others listen is not known.
  const auto* letter = new std::string(
      absl::StrCat(std::string(1, static_cast<char>(why.code())), why.message().substr(0, kMostBytes)));
  for (int peer = 0; peer < size_; ++peer) {
    if (node_.first <= peer && peer < node_.first + node_.size) continue;
    MPI_Request request;
    const int sent = MPI_Isend(letter->data(), static_cast<int>(letter->size()), MPI_BYTE, peer, kTag, comm_, &request);
    if (sent == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

void MpiFarewells::Listen(Board& board) const {
  int found = 0;
  MPI_Message message;
  MPI_Status status;
  while (MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status) == MPI_SUCCESS && found) {
    int size = 0;
    if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS) return;
    std::string letter(size, '\0');
    if (MPI_Mrecv(letter.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS || size == 0) return;
    board.Leave(status.MPI_SOURCE,
                absl::Status(static_cast<absl::StatusCode>(letter[0]), absl::string_view(letter).substr(1)));
  }
}

}  // namespace coconet
