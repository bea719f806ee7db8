#include "runtime/mpi/mpi_exchange.h"

#include <cstring>
#include <limits>

#include "coconet/base/status.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

// A message and its size in one: most messages fit, and need one collective only.
struct Envelope {
  static constexpr int kRoom = 248;
  int64_t size;
  char text[kRoom];
};

}  // namespace

absl::StatusOr<std::vector<std::string>> MpiExchange::AllGather(absl::string_view mine) {
  RETURN_IF_ERROR(first_error_);
  if (board_.has_value()) RETURN_IF_ERROR(CheckAllHere(*board_, rank_, "exchange"));
  auto round = std::make_unique<Round>();
  absl::StatusOr<std::vector<std::string>> all = Gather(mine, *round);
  if (all.ok()) return all;
  // MPI has no way to take back a collective: it may write to its buffers until the process ends.
  static auto& kept = *new std::vector<std::unique_ptr<Round>>();
  kept.push_back(std::move(round));
  first_error_ = WithContext(all.status(), absl::StrCat("exchange on rank ", rank_));
  if (board_.has_value()) board_->Leave(rank_, first_error_);
  return first_error_;
}

absl::StatusOr<std::vector<std::string>> MpiExchange::Gather(absl::string_view mine, Round& round) {
  Envelope own{.size = static_cast<int64_t>(mine.size()), .text = {}};
  std::memcpy(own.text, mine.data(), std::min<size_t>(mine.size(), Envelope::kRoom));
  round.sent.assign(reinterpret_cast<char*>(&own), reinterpret_cast<char*>(&own + 1));
  round.envelopes.resize(size_ * sizeof(Envelope));
  RETURN_IF_MPI(Iallgather, round.sent.data(), sizeof(Envelope), MPI_BYTE, round.envelopes.data(), sizeof(Envelope), MPI_BYTE,
                comm_, &round.request);
  RETURN_IF_ERROR(Await(round));

  std::vector<std::string> all;
  std::vector<int> sizes, begins;
  int64_t end = 0;
  bool fits = true;
  for (int peer = 0; peer < size_; ++peer) {
    Envelope theirs;
    std::memcpy(&theirs, round.envelopes.data() + peer * sizeof theirs, sizeof theirs);
    fits &= theirs.size <= Envelope::kRoom;
    all.emplace_back(theirs.text, std::min<int64_t>(theirs.size, Envelope::kRoom));
    sizes.push_back(static_cast<int>(theirs.size));
    begins.push_back(static_cast<int>(end));
    end += theirs.size;
  }
  if (fits) return all;
  if (end > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("messages of ", end, " bytes; want less than 2 GiB together"));
  }
  round.sent.assign(mine.begin(), mine.end());
  round.letters.resize(end);
  RETURN_IF_MPI(Iallgatherv, round.sent.data(), sizes[rank_], MPI_BYTE, round.letters.data(), sizes.data(), begins.data(),
                MPI_BYTE, comm_, &round.request);
  RETURN_IF_ERROR(Await(round));
  for (int peer = 0; peer < size_; ++peer) all[peer].assign(round.letters.data() + begins[peer], sizes[peer]);
  return all;
}

absl::Status MpiExchange::Await(Round& round) {
  absl::Status status;
  int done = 0;
  const WaitEnd end = WaitUntil(
      terms_,
      [&] {
        status = ToStatus(MPI_Test(&round.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0 || !status.ok();
      },
      [&] { return board_.has_value() && !board_->Left().ok(); });
  switch (end) {
    case WaitEnd::kReady: return status;
    case WaitEnd::kInVain: return board_->Left();
    case WaitEnd::kDeadline:
      return absl::DeadlineExceededError(
          absl::StrCat("waited ", terms_.timeout_ns * 1e-9, " s for the other ranks; one ", kDeadlineAdvice));
  }
  CC_CHECK(false);
}

}  // namespace coconet
