// A package that depends on //:coconet alone has sessions, programs as text, and Abseil.
#include <cstdio>

#include "autotune/session/session.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"

int main() {
  const absl::Status status = coconet::RunRanks(1, [](coconet::Session&) -> absl::Status {
    return coconet::Parse("coconet 1\nprogram p\nstate x : f32[N]\nupdate(x, 2 * x)\n").status();
  });
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
