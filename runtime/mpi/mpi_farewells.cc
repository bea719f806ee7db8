#include "runtime/mpi/mpi_farewells.h"

#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

constexpr int kTag = 1;
constexpr char kNote = 'n',
               kCalls = 'c';         // first bytes; those of farewells, status codes, are smaller
constexpr size_t kMostBytes = 1000;  // small enough to be sent eagerly, and for a board

}  // namespace

void MpiFarewells::Tell(const absl::Status& why) const {
  Post(absl::StrCat(std::string(1, static_cast<char>(why.code())),
                    why.message().substr(0, kMostBytes)));
}

void MpiFarewells::Note(int peer) const { Post(absl::StrCat(std::string(1, kNote), peer)); }

void MpiFarewells::Post(std::string letter) const {
  struct Sent {
    std::string text;
    std::vector<MPI_Request> requests;
  };
  // Kept until the peers have received them, or else leaked: MPI may read them until the process
  // ends.
  static auto& mutex = *new std::mutex;
  static auto& under_way = *new std::list<Sent>;
  const std::lock_guard<std::mutex> lock(mutex);
  under_way.remove_if([](Sent& sent) {
    int done = 0;
    return MPI_Testall(static_cast<int>(sent.requests.size()), sent.requests.data(), &done,
                       MPI_STATUSES_IGNORE) == MPI_SUCCESS &&
           done != 0;
  });
  Sent& sent = under_way.emplace_back(Sent{std::move(letter), {}});
  for (int peer = 0; peer < size_; ++peer) {
    if (node_.first <= peer && peer < node_.first + node_.size) continue;
    MPI_Request request;
    if (MPI_Isend(sent.text.data(), static_cast<int>(sent.text.size()), MPI_BYTE, peer, kTag, comm_,
                  &request) == MPI_SUCCESS)
      sent.requests.push_back(request);
  }
}

void MpiFarewells::Listen(Board& board) const {
  int found = 0;
  MPI_Message message;
  MPI_Status status;
  while (MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &found, &message, &status) == MPI_SUCCESS &&
         found) {
    int size = 0;
    if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS) return;
    std::string letter(size, '\0');
    if (MPI_Mrecv(letter.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        size == 0)
      return;
    const absl::string_view text = absl::string_view(letter).substr(1);
    if (letter[0] == kCalls) {
      board.calls(status.MPI_SOURCE).Set(text);
    } else if (int peer = 0; letter[0] == kNote) {
      if (absl::SimpleAtoi(text, &peer) && peer < board.ranks())
        board.NoteWait(status.MPI_SOURCE, peer);
    } else {
      board.Leave(status.MPI_SOURCE, absl::Status(static_cast<absl::StatusCode>(letter[0]), text));
    }
  }
}

}  // namespace coconet
