#include "autotune/session/preparation.h"

#include "absl/status/statusor.h"
#include "autotune/store/wire.h"

namespace coconet {

bool Preparation::GoOn() {
  if (ended_) return false;
  Packer mine;
  mine.Int(options_.interrupted && options_.interrupted());
  mine.Int(options_.seconds() > options_.end_s);
  const absl::StatusOr<std::string> said = exchange_.Broadcast(mine.bytes());
  status_ = said.status();
  if (said.ok()) {
    Unpacker in(*said);
    if (in.Int() != 0) status_ = options_.when_interrupted;
    ended_ = in.Int() != 0;
  }
  ended_ = ended_ || !status_.ok();
  return !ended_;
}

}  // namespace coconet
