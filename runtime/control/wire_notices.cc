#include "runtime/control/wire_notices.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

// Kinds of notices; any other kind is the status code of an abort notice, which is smaller.
constexpr char kWait = 'n', kCalls = 'c';
constexpr int64_t kAbortNs = 1'000'000'000;

}  // namespace

struct WireNotices::Notice {
  char kind = 0;
  char text[1000] = {};  // ends with a zero
  Wire::Ticket ticket = {};
};

struct WireNotices::Inbox {
  int peer;
  Notice notice = {};
  bool broken = false;
};

absl::StatusOr<std::shared_ptr<WireNotices>> WireNotices::Begin(std::shared_ptr<Wire> wire, int tag,
                                                                int rank, const Board& board,
                                                                const Members& node) {
  std::shared_ptr<WireNotices> notices(new WireNotices(std::move(wire), tag, board));
  for (int peer = 0; peer < board.ranks(); ++peer) {
    const bool here = node.first <= peer && peer < node.first + node.size;
    if (here || peer == rank) continue;
    RETURN_IF_ERROR(notices->Await(*notices->inboxes_.emplace_back(new Inbox{.peer = peer})));
  }
  return notices;
}

void WireNotices::Abort(const absl::Status& why) {
  Send(static_cast<char>(why.code()), why.message());
  // A process that ends at once would take the notices with it.
  const auto sent = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool all = true;
    for (Notice* notice : sent_) {
      bool done = false;
      all &= !wire_->Test(notice->ticket, done).ok() || done;
    }
    return all;
  };
  WaitUntil({.spins = 0, .timeout_ns = kAbortNs}, sent, [] { return false; });
}

void WireNotices::ShowWait(int peer) { Send(kWait, absl::StrCat(peer)); }

void WireNotices::ShowCalls(const CallLog& mine) { Send(kCalls, mine.Print()); }

void WireNotices::Send(char kind, absl::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropSent();
  for (const Inbox* inbox : inboxes_) {
    auto* notice = sent_.emplace_back(new Notice{.kind = kind});
    text.copy(notice->text, sizeof notice->text - 1);
    if (!wire_
             ->Send(inbox->peer, tag_, reinterpret_cast<const char*>(notice),
                    offsetof(Notice, ticket), notice->ticket)
             .ok())
      notice->ticket = {};
  }
}

void WireNotices::DropSent() {
  const auto is_sent = [&](Notice* notice) {
    bool done = false;
    if (!wire_->Test(notice->ticket, done).ok() || !done) return false;
    delete notice;
    return true;
  };
  sent_.erase(std::remove_if(sent_.begin(), sent_.end(), is_sent), sent_.end());
}

absl::Status WireNotices::Await(Inbox& inbox) {
  return wire_->Receive(inbox.peer, tag_, reinterpret_cast<char*>(&inbox.notice),
                        offsetof(Notice, ticket), inbox.notice.ticket);
}

void WireNotices::Receive() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Inbox* inbox : inboxes_) {
    while (!inbox->broken) {
      bool done = false;
      if (!wire_->Test(inbox->notice.ticket, done).ok()) inbox->broken = true;
      if (!done || inbox->broken) break;
      Take(inbox->peer, inbox->notice);
      inbox->broken = !Await(*inbox).ok();
    }
  }
}

void WireNotices::Take(int sender, Notice& notice) {
  notice.text[sizeof notice.text - 1] = '\0';
  if (notice.kind == kCalls) {
    board_.calls(sender).Set(notice.text);
  } else if (int peer = 0; notice.kind == kWait) {
    if (absl::SimpleAtoi(notice.text, &peer) && peer < board_.ranks())
      board_.NoteWait(sender, peer);
  } else {
    board_.Leave(sender, absl::Status(static_cast<absl::StatusCode>(notice.kind), notice.text));
  }
}

void WireNotices::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Inbox* inbox : inboxes_) wire_->Cancel(inbox->notice.ticket);
}

}  // namespace coconet
