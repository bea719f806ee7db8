#include "autotune/c/errors.h"

#include <string>

#include "autotune/command/version.h"

static_assert(COCONET_VERSION_MAJOR == coconet::kVersionMajor);
static_assert(COCONET_VERSION_MINOR == coconet::kVersionMinor);

namespace {

std::string& LastError() {
  thread_local std::string words;
  return words;
}

}  // namespace

namespace coconet {

int ReportFailure(const absl::Status& status) {
  LastError() = std::string(status.message());
  return static_cast<int>(status.code());
}

}  // namespace coconet

const char* coconet_last_error(void) { return LastError().c_str(); }

int coconet_version(void) { return 1000 * COCONET_VERSION_MAJOR + COCONET_VERSION_MINOR; }
