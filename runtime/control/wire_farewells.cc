#include "runtime/control/wire_farewells.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

constexpr char kNote = 'n', kCalls = 'c';  // not farewells, whose status codes are smaller
constexpr double kTellSeconds = 1;

}  // namespace

struct WireFarewells::Letter {
  char kind = 0;
  char text[1000] = {};  // ends with a zero
  Wire::Ticket ticket = {};
};

struct WireFarewells::Mailbox {
  int peer;
  Letter letter = {};
  bool broken = false;
};

absl::StatusOr<std::shared_ptr<WireFarewells>> WireFarewells::Begin(std::shared_ptr<Wire> wire,
                                                                    int tag, int rank, int size,
                                                                    const Members& node) {
  std::shared_ptr<WireFarewells> farewells(new WireFarewells(std::move(wire), tag));
  for (int peer = 0; peer < size; ++peer) {
    const bool here = node.first <= peer && peer < node.first + node.size;
    if (here || peer == rank) continue;
    auto* mailbox = farewells->mailboxes_.emplace_back(new Mailbox{.peer = peer});
    RETURN_IF_ERROR(farewells->wire_->Receive(peer, tag, reinterpret_cast<char*>(&mailbox->letter),
                                              offsetof(Letter, ticket), mailbox->letter.ticket));
  }
  return farewells;
}

void WireFarewells::Tell(const absl::Status& why) {
  Post(static_cast<char>(why.code()), why.message());
  // A process that ends at once would take the letters with it.
  const auto sent = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool all = true;
    for (Letter* letter : sent_) {
      bool done = false;
      all &= !wire_->Test(letter->ticket, done).ok() || done;
    }
    return all;
  };
  WaitUntil({.spins = 0, .timeout_ns = static_cast<int64_t>(kTellSeconds * 1e9)}, sent,
            [] { return false; });
}

void WireFarewells::Note(int peer) { Post(kNote, absl::StrCat(peer)); }

void WireFarewells::Show(const CallLog& mine) { Post(kCalls, mine.Print()); }

void WireFarewells::Post(char kind, absl::string_view text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropSent();
  for (const Mailbox* mailbox : mailboxes_) {
    auto* letter = sent_.emplace_back(new Letter{.kind = kind});
    text.copy(letter->text, sizeof letter->text - 1);
    if (!wire_
             ->Send(mailbox->peer, tag_, reinterpret_cast<const char*>(letter),
                    offsetof(Letter, ticket), letter->ticket)
             .ok())
      letter->ticket = {};
  }
}

void WireFarewells::DropSent() {
  const auto is_sent = [&](Letter* letter) {
    bool done = false;
    if (!wire_->Test(letter->ticket, done).ok() || !done) return false;
    delete letter;
    return true;
  };
  sent_.erase(std::remove_if(sent_.begin(), sent_.end(), is_sent), sent_.end());
}

void WireFarewells::Listen(Board& board) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Mailbox* mailbox : mailboxes_) {
    while (!mailbox->broken) {
      bool done = false;
      Letter& letter = mailbox->letter;
      if (!wire_->Test(letter.ticket, done).ok()) mailbox->broken = true;
      if (!done || mailbox->broken) break;
      letter.text[sizeof letter.text - 1] = '\0';
      if (letter.kind == kCalls) {
        board.calls(mailbox->peer).Set(letter.text);
      } else if (int peer = 0; letter.kind == kNote) {
        if (absl::SimpleAtoi(letter.text, &peer) && peer < board.ranks())
          board.NoteWait(mailbox->peer, peer);
      } else {
        board.Leave(mailbox->peer,
                    absl::Status(static_cast<absl::StatusCode>(letter.kind), letter.text));
      }
      mailbox->broken = !wire_
                             ->Receive(mailbox->peer, tag_, reinterpret_cast<char*>(&letter),
                                       offsetof(Letter, ticket), letter.ticket)
                             .ok();
    }
  }
}

}  // namespace coconet
