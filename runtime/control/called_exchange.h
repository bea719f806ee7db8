#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/rank.h"

namespace coconet {

/// An exchange whose messages say in which call of CallLog a rank sends them. If the ranks are in
/// different calls, all of them leave, and return what each calls.
class CalledExchange final : public Exchange {
 public:
  CalledExchange(std::unique_ptr<Exchange> exchange, int rank, Board board)
      : exchange_(std::move(exchange)), rank_(rank), board_(std::move(board)) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  std::unique_ptr<Exchange> exchange_;
  int rank_;
  Board board_;
};

}  // namespace coconet
